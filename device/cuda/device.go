package cuda

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/device/internal/topology"
)

// A gpu is one open device.
//
// Its goroutines are the waits of Synchronize and its kin whose callers left
// early; each ends with the work that it waits for, and Close joins them.
type gpu struct {
	cu      *symbols
	sync    bool // wait after every call
	name    string
	ordinal int     // CUdevice
	ctx     uintptr // CUcontext, the device's primary one
	host    topology.System
	place   topology.Place // where host memory comes from

	closing sync.Once
	closed  atomic.Bool
	fault   atomic.Pointer[driver.Error] // the first; never changes again

	streams handles[driver.Stream, stream]
	events  handles[driver.Event, event]
	kernels kernels
	pinned  pinned
	waits   waits
	peers   peers

	captures   captures
	graphsMade handles[driver.Graph, graph]
	execs      handles[driver.Exec, instance]

	notes struct {
		sync.Mutex
		forward func(string)
	}
	props driver.Properties // Notes under notes; all else constant
}

func newGPU(cu *symbols, o Options) *gpu {
	return &gpu{cu: cu, sync: o.Sync, name: o.name(), host: topology.Host(), place: topology.Place{Node: -1}}
}

// prepare does all that must not happen once work flows: it asks for the range of
// priorities, loads the modules and decides how to pin.
func (d *gpu) prepare(modules []*driver.Module) error {
	g, err := d.enter("Open")
	if err != nil {
		return err
	}
	p := &d.props
	p.Notes = append(p.Notes, d.cu.notes()...)
	if d.sync {
		p.Notes = append(p.Notes, "LEAT_SYNC: every call waits for its work, and nothing overlaps")
	}
	if fn := d.cu.ctxGetPriorityRange; fn != 0 && g.call(fn, g.result0(), g.result1()) == success {
		p.LowestPriority, p.HighestPriority = g.number(0), g.number(1)
	}
	d.place = d.host.Near(g.hangs())
	p.Processors, p.Node = d.place.Processors, d.place.Node
	if d.place.Why != "" {
		p.Notes = append(p.Notes, d.place.Why)
	}
	p.Notes = append(p.Notes, d.pinningNote())
	err = g.loadModules(modules)
	if left := g.leave(success); err == nil {
		err = left
	}
	return err
}

// Properties describes the device. Its Notes grow when something is decided later.
func (d *gpu) Properties() driver.Properties {
	d.notes.Lock()
	defer d.notes.Unlock()
	p := d.props
	p.Notes = slices.Clone(p.Notes)
	return p
}

// note keeps a sentence about a decision made on the user's behalf, once.
func (d *gpu) note(sentence string) {
	d.notes.Lock()
	defer d.notes.Unlock()
	if slices.Contains(d.props.Notes, sentence) {
		return
	}
	d.props.Notes = append(d.props.Notes, sentence)
	if d.notes.forward != nil {
		d.notes.forward(sentence)
	}
}

// forwardNotes passes the notes made from now on to f too.
func (d *gpu) forwardNotes(f func(string)) {
	d.notes.Lock()
	defer d.notes.Unlock()
	d.notes.forward = f
}

func (d *gpu) Memory() (free, total int64, err error) {
	g, err := d.enter("Memory")
	if err != nil {
		return 0, 0, err
	}
	r := g.call(d.cu.memGetInfo, g.result0(), g.result1())
	free, total = g.size(0), g.size(1)
	if err := g.leave(r); err != nil {
		return 0, 0, err
	}
	return free, total, nil
}

// Close unloads the modules and releases the primary context, which ends with its
// last user. No other call may be under way. A second Close, which may be at the same
// time, waits for the first and does nothing. After a fault it calls nothing, so that
// it can't hang, and returns nil: the fault has been reported.
func (d *gpu) Close() (err error) {
	d.closing.Do(func() { err = d.close() })
	return err
}

func (d *gpu) close() error {
	d.waits.join()
	if d.fault.Load() != nil {
		d.closed.Store(true)
		forgetHostFuncs(d)
		return nil
	}
	g, err := d.enter("Close")
	d.closed.Store(true)
	if err != nil {
		return err
	}
	g.unloadModules()
	err = g.leave(success)

	g = newGroup(d, "Close")
	defer g.end()
	if r := g.call(d.cu.primaryCtxRelease, uintptr(d.ordinal)); r != success && err == nil {
		err = g.failure(r, foundEarlier)
	}
	forgetHostFuncs(d)
	return err
}
