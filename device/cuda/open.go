package cuda

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/device/order"
)

// Options says which GPU to open. The zero value is the first one.
type Options struct {
	// Index is the GPU's number among those the driver shows, which
	// CUDA_VISIBLE_DEVICES may restrict and reorder.
	Index int
	// UUID picks the GPU by its UUID ("GPU-…" or "MIG-…", as nvidia-smi -L prints
	// it) instead, whatever its number.
	UUID string
	// Sync waits after every call for the work that it submitted, so that a fault
	// is reported by the call that caused it. LEAT_SYNC=1 in the environment does
	// the same. It is for finding a fault: nothing overlaps any more, and a call
	// whose work waits for something that its caller does later never returns.
	Sync bool
}

func (o Options) validate() error {
	var errs []error
	if o.Index < 0 {
		errs = append(errs, &device.OptionError{Option: "Index", Value: o.Index, Want: "0 or more"})
	}
	if o.UUID != "" && o.Index != 0 {
		errs = append(errs, &device.OptionError{Option: "Index", Value: o.Index, Want: "0, since UUID names the GPU"})
	}
	if o.UUID != "" && !strings.HasPrefix(o.UUID, "GPU-") && !strings.HasPrefix(o.UUID, "MIG-") {
		errs = append(errs, &device.OptionError{Option: "UUID", Value: o.UUID, Want: "one that begins with GPU- or MIG-"})
	}
	return errors.Join(errs...)
}

// name is the device's name in errors before it is known.
func (o Options) name() string {
	if o.UUID != "" {
		return "cuda:" + o.UUID
	}
	return fmt.Sprintf("cuda:%d", o.Index)
}

// Open opens a GPU: it retains the device's primary context, which it shares with
// other libraries in this process, and loads every module registered so far. The
// caller owns the device until Close. Where there is no GPU or no driver the error
// is a *device.Error with ErrUnavailable and the reason, ErrNoDriver for example. With LEAT_ORDER=1 in the
// environment the order of every access is checked; see package order.
func Open(o Options) (*device.Device, error) {
	if err := o.validate(); err != nil {
		return nil, &device.Error{Op: "Open", Device: o.name(), Err: err}
	}
	cu, err := load()
	if err != nil {
		return nil, unavailable("Open", o.name(), err)
	}
	o.Sync = o.Sync || os.Getenv("LEAT_SYNC") == "1"
	d, err := open(cu, o, driver.Modules())
	if err != nil {
		return nil, err
	}
	watched, err := order.FromEnvironment(d)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	dev := device.New(watched)
	d.forwardNotes(dev.Note)
	return dev, nil
}

// List describes the GPUs that the driver shows, in order of their Index. It makes
// no context, so it costs no device memory; the range of priorities, which needs
// one, is left 0.
func List() ([]device.Properties, error) {
	cu, err := load()
	if err != nil {
		return nil, unavailable("List", "cuda", err)
	}
	return list(cu)
}

func unavailable(op, name string, reason error) error {
	e := &driver.Error{Op: op, Device: name, Err: driver.ErrUnavailable, Hint: reason.Error()}
	if errors.Is(reason, ErrNoDriver) {
		e.Err = fmt.Errorf("%w: %w", driver.ErrUnavailable, ErrNoDriver)
		e.Hint = strings.TrimPrefix(e.Hint, ErrNoDriver.Error()+": ")
	}
	return e
}

func list(cu *symbols) ([]driver.Properties, error) {
	g := newGroup(&gpu{cu: cu, name: "cuda"}, "List")
	defer g.end()
	if err := g.start(); err != nil {
		return nil, err
	}
	n, err := g.deviceCount()
	if err != nil {
		return nil, err
	}
	all := make([]driver.Properties, n)
	for i := range all {
		if _, err := g.describe(i, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// open makes a device over the functions of cu, with modules loaded.
func open(cu *symbols, o Options, modules []*driver.Module) (*gpu, error) {
	return newGPU(cu, o).open(o, modules)
}

func (d *gpu) open(o Options, modules []*driver.Module) (*gpu, error) {
	cu := d.cu
	g := newGroup(d, "Open")
	defer g.end()
	if err := g.start(); err != nil {
		return nil, err
	}
	if err := g.choose(o); err != nil {
		return nil, err
	}
	if r := g.call(cu.primaryCtxRetain, g.result0(), uintptr(d.ordinal)); r != success {
		return nil, g.noContext(r)
	}
	d.ctx = g.handle()
	if err := d.prepare(modules); err != nil {
		g.call(cu.primaryCtxRelease, uintptr(d.ordinal))
		return nil, err
	}
	return d, nil
}

func (g *group) noContext(r result) error {
	if r == outOfMemory {
		return g.refine(r, driver.ErrOutOfMemory, "the GPU has no memory left for a context: which other processes use it?")
	}
	return g.unavailable(r)
}

// start initialises the driver, once for the process however often it is called.
func (g *group) start() error {
	cu := g.gpu.cu
	if r := g.call(cu.initialise, 0); r != success {
		return g.unavailable(r)
	}
	const oldest = 11000
	if r := g.call(cu.driverGetVersion, g.result0()); r != success {
		return g.unavailable(r)
	}
	if v := g.number(0); v < oldest {
		return unavailable(g.op, g.gpu.name, fmt.Errorf("the driver is too old: it supports CUDA %d.%d, and 11.0 is needed", v/1000, v%1000/10))
	}
	return nil
}

// unavailable is r as the reason for which no device can be opened. What would end
// a device that is open ends nothing yet.
func (g *group) unavailable(r result) error {
	hint := causes[r].hint
	if hint == "" || causes[r].err == driver.ErrFault {
		hint = "the driver can't be initialised: are its kernel modules loaded and its device files in place?"
	}
	return &driver.Error{Op: g.op, Device: g.gpu.name, Code: int(r), Name: g.errorName(r),
		Err: driver.ErrUnavailable, Hint: hint}
}

func (g *group) deviceCount() (int, error) {
	if r := g.call(g.gpu.cu.deviceGetCount, g.result0()); r != success {
		return 0, g.unavailable(r)
	}
	return g.number(0), nil
}

// choose finds the device that o asks for and describes it.
func (g *group) choose(o Options) error {
	d := g.gpu
	n, err := g.deviceCount()
	if err != nil {
		return err
	}
	if n == 0 {
		return g.unavailable(noDevice)
	}
	first, last := o.Index, o.Index
	if o.UUID != "" {
		first, last = 0, n-1
	}
	for i := first; i <= last && i < n; i++ {
		ordinal, err := g.describe(i, &d.props)
		if err != nil {
			return err
		}
		if o.UUID == "" || strings.EqualFold(uuidDigits(o.UUID), uuidDigits(d.props.UUID)) {
			d.ordinal, d.name = ordinal, driver.DeviceName(d.props)
			return nil
		}
	}
	return unavailable(g.op, d.name, fmt.Errorf("no such device among the %d that the driver shows", n))
}

// uuidDigits leaves the kind off: the driver does not say which of the two a UUID is.
func uuidDigits(uuid string) string { return uuid[min(len(uuid), len("GPU-")):] }
