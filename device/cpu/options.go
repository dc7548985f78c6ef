package cpu

import (
	"errors"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/device/internal/pages"
	"github.com/leat-go/leat/device/order"
)

// Options make a CPU device. The zero value is a plain device that uses what the
// machine has.
type Options struct {
	// Index is the device's number, for programs that open several.
	Index int
	// MemoryBytes limits device memory. 0 means the Model's memory, or else all of
	// the machine's.
	MemoryBytes int64
	// PinnedBytes limits pinned host memory. 0 means all of the machine's.
	PinnedBytes int64
	// GoMemory makes AllocHost return Go memory, which lives for as long as anything
	// refers to it, after FreeHost too: for host code that may keep a slice of
	// it. Other memory is unmapped, and reading it then ends the process.
	GoMemory bool
	// Model, if not nil, gives operations the durations of a modelled card.
	Model *Model
	// Adversary, if not nil, makes the device as unkind as the rules allow.
	Adversary *Adversary
	// Trace, if not nil, is called for every finished copy, memset, kernel and host
	// function, from several goroutines. It must not call the device.
	Trace func(Span)
}

func (o Options) validate() error {
	var errs []error
	for _, f := range []struct {
		name  string
		value int64
	}{{"Index", int64(o.Index)}, {"MemoryBytes", o.MemoryBytes}, {"PinnedBytes", o.PinnedBytes}} {
		if f.value < 0 {
			errs = append(errs, &device.OptionError{Option: f.name, Value: f.value, Want: "0 or more"})
		}
	}
	if o.Model != nil {
		errs = append(errs, o.Model.validate()...)
	}
	if o.Adversary != nil {
		errs = append(errs, o.Adversary.validate()...)
	}
	return errors.Join(errs...)
}

// memoryBytes is the limit in force, 0 where there is none.
func (o Options) memoryBytes() int64 {
	switch {
	case o.MemoryBytes > 0:
		return o.MemoryBytes
	case o.Model != nil && o.Model.MemoryBytes > 0:
		return o.Model.MemoryBytes
	}
	return pages.Total()
}

// memoryHint and pinnedHint say which limit is in force and what to do about it.
func (o Options) memoryHint() string {
	limit := "the machine has no more"
	switch {
	case o.MemoryBytes > 0:
		limit = "cpu.Options.MemoryBytes sets the limit"
	case o.Model != nil && o.Model.MemoryBytes > 0:
		limit = "the Model's MemoryBytes sets the limit"
	}
	return limit + "; fewer or smaller buffers need less"
}

func (o Options) pinnedHint() string {
	limit := "the machine has no more"
	if o.PinnedBytes > 0 {
		limit = "cpu.Options.PinnedBytes sets the limit"
	}
	return limit + "; fewer or smaller host buffers need less, and with HostOptions.Pageable no pinned memory is needed"
}

func (o Options) pinnedBytes() int64 {
	if o.PinnedBytes > 0 {
		return o.PinnedBytes
	}
	return pages.Total()
}

// Open opens a CPU device. Several may be open at once; handles and addresses of
// one are never valid for another. With LEAT_ORDER=1 in the environment the order of
// every access is checked; see package order.
func Open(o Options) (*device.Device, error) {
	d, err := New(o)
	if err != nil {
		return nil, err
	}
	watched, err := order.FromEnvironment(d)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return device.New(watched), nil
}

// New opens a CPU device as a driver, for wrappers. Mistakes in o are all
// reported at once, each a *device.OptionError.
func New(o Options) (*Device, error) {
	if err := o.validate(); err != nil {
		return nil, &driver.Error{
			Op:     "Open",
			Device: driver.DeviceName(driver.Properties{Kind: kind, Index: o.Index}),
			Err:    err,
		}
	}
	return newDevice(o), nil
}
