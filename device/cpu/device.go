package cpu

import (
	"fmt"
	"math/bits"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-go/leat/device/driver"
)

const (
	kind = "cpu"
	// The range of CUDA's stream priorities on current GPUs.
	lowestPriority, highestPriority = 0, -5
)

// opened numbers the devices of this process, so that handles and addresses of
// one are never valid for another.
var opened atomic.Uint64

// engines are what run operations other than host functions. Their methods are
// called with the device's mutex held.
type engines interface {
	// offer takes an operation that its stream has reached.
	offer(o *op)
	// settled tells that no stream can be advanced further for now.
	settled()
	// clear drops the operations that wait for an engine.
	clear()
	// copyEngines is how many copies can run at once.
	copyEngines() int
}

// A Device is a CPU device as a driver.Device. It is safe for concurrent use. Its
// goroutines are those of its engines and host functions; each ends when nothing
// is ready for it, and Close waits for them.
type Device struct {
	options   Options
	name      string
	model     *Model
	adversary *adversary
	opened    time.Time

	mu      sync.Mutex
	closed  bool          // from the start of Close on
	ending  chan struct{} // made by Close, closed when it is done
	fault   *Fault
	engines engines
	host    *lane // runs host functions
	// goroutines counts those of engines and host functions; idle, if not nil, is
	// closed when the last ends.
	goroutines int
	idle       chan struct{}

	calls  int64  // made so far, for the adversary
	seq    uint64 // operations submitted so far
	handle uintptr
	made   int // streams made so far

	captures []*capture // under way
	graphs   map[driver.Graph]*program
	execs    map[driver.Exec]*exec
	streams  map[driver.Stream]*stream
	events   map[driver.Event]*event
	working  map[*stream]struct{} // not freed, or freed with work left
	runnable streamList
	space    space
	pinned   pinned
	outbox   *relay // what other devices are to be told when the mutex is given up

	freeOps        *op
	freeLaunchings *launching
	freeRecordings *recording
	freeWaiters    *waiter
	freeRelays     *relay
}

var _ driver.Device = (*Device)(nil)

func newDevice(o Options) *Device {
	number := opened.Add(1)
	d := &Device{
		options: o,
		name:    driver.DeviceName(driver.Properties{Kind: kind, Index: o.Index}),
		opened:  time.Now(),
		handle:  uintptr(number << (bits.UintSize / 2) & (1<<(bits.UintSize-2) - 1)),
		streams: make(map[driver.Stream]*stream),
		events:  make(map[driver.Event]*event),
		graphs:  make(map[driver.Graph]*program),
		execs:   make(map[driver.Exec]*exec),
		working: make(map[*stream]struct{}),
		space:   newSpace(number, o.memoryBytes()),
		pinned:  pinned{limit: o.pinnedBytes()},
	}
	if o.Adversary != nil {
		d.adversary = newAdversary(*o.Adversary)
	}
	d.host = newLane(d, "host", 0)
	if o.Model != nil {
		model := *o.Model
		d.model = &model
		d.engines = newClock(d, &model)
	} else {
		d.engines = newLanes(d)
	}
	return d
}

// now is the time since the device was opened.
func (d *Device) now() time.Duration { return time.Since(d.opened) }

func (d *Device) newHandle() uintptr {
	d.handle++
	return d.handle
}

// stream and event look a handle up for a call on a device that has not ended.
func (d *Device) stream(call string, h driver.Stream) (*stream, error) {
	if err := d.endedError(call); err != nil {
		return nil, err
	}
	s, ok := d.streams[h]
	if !ok {
		return nil, d.fail(call, driver.ErrInvalid, "no such stream on this device")
	}
	return s, nil
}

func (d *Device) event(call string, h driver.Event) (*event, error) {
	if err := d.endedError(call); err != nil {
		return nil, err
	}
	e, ok := d.events[h]
	if !ok {
		return nil, d.fail(call, driver.ErrInvalid, "no such event on this device")
	}
	return e, nil
}

// Properties implements driver.Device.
func (d *Device) Properties() driver.Properties {
	p := driver.Properties{
		Kind:            kind,
		Index:           d.options.Index,
		Description:     "CPU device",
		TotalBytes:      d.space.limit,
		CopyEngines:     d.engines.copyEngines(),
		LowestPriority:  lowestPriority,
		HighestPriority: highestPriority,
	}
	if d.model != nil {
		p.Modelled = true
		p.Description = "modelled"
		if d.model.Name != "" {
			p.Description += " " + d.model.Name
		}
		p.Notes = append(p.Notes, "times are computed from a model, not measured")
	}
	if d.adversary != nil {
		p.Notes = append(p.Notes, "an adversary delays, reorders, poisons or fails: for tests")
	}
	return p
}

// Memory implements driver.Device.
func (d *Device) Memory() (free, total int64, err error) {
	d.mu.Lock()
	defer d.unlock()
	if err := d.admit(Call{Op: "Memory"}); err != nil {
		return 0, 0, err
	}
	return max(0, d.space.limit-d.space.used), d.space.limit, nil
}

// Live counts what was made on a device and not freed.
type Live struct {
	Streams, Events, Buffers, HostBuffers int
	Graphs, Execs                         int
	Bytes, HostBytes                      int64
}

// Live returns what is alive now.
func (d *Device) Live() Live {
	d.mu.Lock()
	defer d.unlock()
	return d.live()
}

func (d *Device) live() Live {
	l := Live{Streams: len(d.streams), Events: len(d.events), HostBytes: d.pinned.bytes()}
	l.HostBuffers = len(d.pinned.list)
	l.Graphs, l.Execs = len(d.graphs), len(d.execs)
	for _, a := range d.space.list {
		if a.origin == deviceMemory {
			l.Buffers++
			l.Bytes += a.bytes
		}
	}
	return l
}

// LeakError is what Close returns if something was not freed before.
type LeakError struct{ Live }

func (e *LeakError) Error() string {
	var parts []string
	count := func(n int, what string, bytes int64) {
		if n == 0 {
			return
		}
		if n > 1 {
			what += "s"
		}
		part := fmt.Sprintf("%d %s", n, what)
		if bytes > 0 {
			part += fmt.Sprintf(" (%d bytes)", bytes)
		}
		parts = append(parts, part)
	}
	count(e.Streams, "stream", 0)
	count(e.Events, "event", 0)
	count(e.Graphs, "graph", 0)
	count(e.Execs, "exec", 0)
	count(e.Buffers, "device buffer", e.Bytes)
	count(e.HostBuffers, "host buffer", e.HostBytes)
	return "closed with " + strings.Join(parts, ", ") + " not freed"
}

// Close implements driver.Device. Work not yet begun is dropped, what is running
// is waited for: a host function that blocks for ever blocks Close too. If
// anything was not freed the device is closed all the same and the error is a
// *LeakError; device memory is then given back, while host memory stays, since
// somebody may hold it. Close again waits for the first Close and does nothing.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.unlock()
	if ending := d.ending; ending != nil {
		d.unlock()
		<-ending
		d.mu.Lock()
		return nil
	}
	if err := d.trip(Call{Op: "Close"}); err != nil {
		return err
	}
	d.closed = true
	d.ending = make(chan struct{})
	defer close(d.ending)
	d.abandon()
	for d.goroutines > 0 {
		if d.idle == nil {
			d.idle = make(chan struct{})
		}
		idle := d.idle
		d.unlock()
		<-idle
		d.mu.Lock()
	}
	left := d.live()
	d.dropGraphs()
	d.streams, d.events = nil, nil
	d.space.freeAll()
	if left != (Live{}) {
		return d.fail("Close", &LeakError{left}, "")
	}
	return nil
}

// spawned and left count the goroutines that Close waits for.
func (d *Device) spawned() { d.goroutines++ }

func (d *Device) left() {
	d.goroutines--
	if d.goroutines == 0 && d.idle != nil {
		close(d.idle)
		d.idle = nil
	}
}
