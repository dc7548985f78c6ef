package cpu

import (
	"math"
	"runtime/debug"
	"slices"
	"time"
)

// never is later than any time.
const never = time.Duration(math.MaxInt64)

// clock runs operations in modelled time. At most one goroutine runs it at any
// moment: the timer's, at the next time at which something is to be done. All
// fields are guarded by the device's mutex.
type clock struct {
	device *Device
	banks  []*bank // in the order H2D, D2H, link, launch, compute
	route  [opKinds]*bank

	timer   *time.Timer
	run     func()        // loop
	wake    time.Duration // when the timer fires; never if it is not set
	running bool
}

// bank is a number of equal engines and the operations that are ready for them.
type bank struct {
	name    string
	ready   opList
	engines []engine
}

// engine runs one operation at a time.
type engine struct {
	op   *op
	free time.Duration // since when, while op is nil
}

func newBank(name string, engines int) *bank {
	return &bank{name: name, engines: make([]engine, max(1, engines))}
}

func newClock(d *Device, m *Model) *clock {
	c := &clock{device: d, wake: never}
	c.run = c.loop
	h2d := newBank("H2D", m.CopyEngines)
	d2h := newBank("D2H", m.CopyEngines)
	link := newBank("link", 1)
	launches := newBank("launch", 1)
	compute := newBank("compute", m.ComputeEngines)
	c.banks = []*bank{h2d, d2h, link, launches, compute}
	if m.SharedCopyEngines {
		h2d.name = "copy"
		d2h = h2d
		c.banks = []*bank{h2d, link, launches, compute}
	}
	c.route = [opKinds]*bank{
		copyH2D: h2d, copyD2H: d2h, copyPeer: link, copyD2D: compute, memset: compute, launch: compute,
		launchGraph: launches,
	}
	return c
}

func (c *clock) offer(o *op) { c.route[o.kind].ready.push(o) }

func (c *clock) clear() {
	for _, b := range c.banks {
		b.ready = opList{}
		for i := range b.engines {
			b.engines[i].op = nil
		}
	}
	if c.timer != nil {
		c.timer.Stop()
		c.wake = never
	}
}

func (c *clock) copyEngines() int {
	n := len(c.route[copyH2D].engines)
	if c.route[copyD2H] != c.route[copyH2D] {
		n += len(c.route[copyD2H].engines)
	}
	return n
}

// settled sets the timer for the next thing to do. While the loop runs it is the
// loop that looks.
func (c *clock) settled() {
	if c.running {
		return
	}
	now := c.device.now()
	if c.wake <= now {
		return // the timer is about to fire
	}
	due, wake := c.next(now)
	if due.engine != nil {
		wake = now
	}
	if wake == c.wake {
		return
	}
	c.wake = wake
	switch {
	case wake == never:
		c.timer.Stop()
	case wake <= now:
		// Not by the timer: under virtual time one that is due at once runs where it is set,
		// and two devices that do so side by side crash the race detector (Go 1.26).
		if c.timer != nil {
			c.timer.Stop()
		}
		go c.run()
	case c.timer == nil:
		c.timer = time.AfterFunc(wake-now, c.run)
	default:
		c.timer.Reset(wake - now)
	}
}

// step is the next thing to do: to end the operation on an engine, or to start one
// there.
type step struct {
	bank   *bank
	engine *engine
	start  bool
	at     time.Duration
}

// next finds the first step that is due now, or with none the time at which to
// look again. Of steps due at one time ends come first: they may make other
// operations ready at that time.
//
// Among steps of one kind due at one time any order is right. The order of banks,
// backwards for starts, is the one in which an adversary sees most: a kernel's
// inputs are looked at before a copy that starts with it poisons them, and again
// after a copy that ends with it has written.
func (c *clock) next(now time.Duration) (s step, wake time.Duration) {
	s.at, wake = never, never
	for _, b := range c.banks {
		e := b.nextEnd()
		switch {
		case e == nil:
		case e.op.end > now:
			wake = min(wake, e.op.end)
		case e.op.end < s.at:
			s = step{bank: b, engine: e, at: e.op.end}
		}
	}
	for _, b := range slices.Backward(c.banks) {
		e, at := b.nextStart()
		switch {
		case e == nil:
		case at >= now && !b.instant(at):
			wake = min(wake, at+1)
		case at < s.at:
			s = step{bank: b, engine: e, start: true, at: at}
		}
	}
	return s, wake
}

// nextEnd is the engine whose operation ends first, nil if all are free.
func (b *bank) nextEnd() *engine {
	var first *engine
	for i := range b.engines {
		e := &b.engines[i]
		if e.op != nil && (first == nil || e.op.end < first.op.end || e.op.end == first.op.end && e.op.seq < first.op.seq) {
			first = e
		}
	}
	return first
}

// nextStart is the engine that has been free longest and the time at which an
// operation starts on it; nil if none does.
func (b *bank) nextStart() (first *engine, at time.Duration) {
	if b.ready.first == nil {
		return nil, 0
	}
	for i := range b.engines {
		e := &b.engines[i]
		if e.op == nil && (first == nil || e.free < first.free) {
			first = e
		}
	}
	if first == nil {
		return nil, 0
	}
	at = never
	for o := b.ready.first; o != nil; o = o.link {
		at = min(at, o.ready)
	}
	return first, max(at, first.free)
}

// instant reports whether an operation ready by then takes no time.
func (b *bank) instant(at time.Duration) bool {
	for o := b.ready.first; o != nil; o = o.link {
		if o.ready <= at && o.cost == 0 {
			return true
		}
	}
	return false
}

// loop does what is due and ends when nothing is.
func (c *clock) loop() {
	d := c.device
	d.mu.Lock()
	defer d.unlock()
	c.wake = never
	if c.running || d.ended() {
		return
	}
	c.running = true
	d.spawned()
	defer d.left()
	debug.SetPanicOnFault(true)
	for !d.ended() {
		s, _ := c.next(d.now())
		switch {
		case s.engine == nil:
			c.running = false
			c.settled()
			return
		case s.start:
			c.start(s)
		default:
			c.end(s)
		}
	}
	c.running = false
}

// start gives the engine an operation. One that takes no time need not wait for
// the instant to settle, and only such a one may not.
func (c *clock) start(s step) {
	d := c.device
	before := before
	if s.at == d.now() {
		before = instantBefore
	}
	o := s.bank.ready.take(s.at, before)
	o.start, o.end = s.at, s.at+o.cost
	s.engine.op = o
	if d.adversary != nil {
		o.running = true
		d.unlock()
		d.adversary.begin(o)
		d.mu.Lock()
		o.running = false
		if d.ended() { // and o's stream has dropped it
			d.release(o)
		}
	}
}

// instantBefore puts operations that take no time before all others.
func instantBefore(a, b *op) bool {
	if (a.cost == 0) != (b.cost == 0) {
		return a.cost == 0
	}
	return before(a, b)
}

// end runs the body of the engine's operation, whose time is up.
func (c *clock) end(s step) {
	d := c.device
	o := s.engine.op
	s.engine.op, s.engine.free = nil, o.end
	o.running = true
	d.unlock()
	var err error
	returned := false
	defer func() {
		if !returned { // the body has ended this goroutine
			err = &Goexit{Stack: debug.Stack()}
		}
		d.mu.Lock()
		d.finish(o, err)
	}()
	err = guard(o)
	returned = true
	if err == nil && d.adversary != nil {
		err = d.adversary.end(o)
	}
	d.trace(o, s.bank.name, s.bank.number(s.engine))
}

func (b *bank) number(e *engine) int {
	for i := range b.engines {
		if e == &b.engines[i] {
			return i
		}
	}
	return 0
}
