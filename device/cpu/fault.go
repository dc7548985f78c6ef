package cpu

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/leat-go/leat/device/driver"
)

// Fault is why a device ended: what failed and where. errors.Is finds
// driver.ErrFault in it, errors.As a *Panic, a *Goexit or a *Race.
type Fault struct {
	// Op is the call that submitted the work: "Launch", "CopyH2D".
	Op string
	// Kernel is the kernel's name, for a Launch.
	Kernel string
	// Stream is the stream's name.
	Stream string
	Err    error
}

func newFault(o *op, err error) *Fault {
	f := &Fault{Op: o.kind.String(), Stream: o.stream.name, Err: err}
	if o.kind == launch {
		f.Kernel = o.launch.Kernel.Name
	}
	return f
}

func (f *Fault) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %s", driver.ErrFault, f.Op)
	if f.Kernel != "" {
		fmt.Fprintf(&b, " of kernel %q", f.Kernel)
	}
	fmt.Fprintf(&b, " on stream %q: %v", f.Stream, f.Err)
	return b.String()
}

// Format implements fmt.Formatter: %+v adds the stack of what panicked.
func (f *Fault) Format(s fmt.State, verb rune) { driver.FormatError(s, verb, f) }

func (f *Fault) Unwrap() []error { return []error{driver.ErrFault, f.Err} }

// Panic is the fault of a kernel or a host function that panicked.
type Panic = driver.Panic

// Goexit is the fault of a kernel or a host function that called runtime.Goexit.
type Goexit = driver.Goexit

// guard runs o's body and turns a panic into an error.
func guard(o *op) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Panic{Value: v, Stack: debug.Stack()}
		}
	}()
	o.body()
	return nil
}

// fail is an error of the call. The hint may be empty.
func (d *Device) fail(call string, err error, hint string) error {
	return &driver.Error{Op: call, Device: d.name, Err: err, Hint: hint}
}

// ended reports whether nothing will run on the device any more.
func (d *Device) ended() bool { return d.closed || d.fault != nil }

// endedError is what calls get once the device has ended; nil before.
func (d *Device) endedError(call string) error {
	switch {
	case d.closed:
		return d.fail(call, driver.ErrClosed, "")
	case d.fault != nil:
		return &driver.Error{Op: call, Device: d.name, Async: true, Err: d.fault,
			Hint: "nothing runs on this device any more; open another"}
	}
	return nil
}

// abandon drops all queued work of a device that has ended: host functions don't
// run, events don't complete, and whoever waits gets the error. What is running
// goes on to its end, and finish lets go of it.
func (d *Device) abandon() {
	for s := range d.working {
		for s.head != nil {
			o := s.head
			s.pop()
			if o.running {
				continue
			}
			if o.kind == record {
				o.recording.state = lost
				o.recording.streams = streamList{}
				o.recording.wakeAll()
				d.post(o.recording)
			}
			d.release(o)
		}
		s.next = nil
		d.forget(s)
	}
	d.runnable = streamList{}
	d.host.clear()
	d.engines.clear()
}
