package waitmodel

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// never is later than any time.
const never = time.Duration(math.MaxInt64)

// epochEnd stands for an epoch's end among the batches that are ready.
const epochEnd = -1

// A model is a pipeline at one instant.
type model struct {
	Pipeline
	now    time.Duration
	result Result

	batches   []batch
	opened    int // how many of them
	freeHost  int // host slots
	workers   []worker
	gathered  []int // the batches of the next upload
	complete  bool  // nothing more travels with them
	taken     int   // how many batches the uploader has taken from the loader
	sending   sending
	slots     []*slot
	freeSlots []*slot // in the order in which they became free
	ready     []int   // uploaded and not delivered, in order, with the epochs' ends
	copies    stream
	transform stream
	raws      [2]*op // the ends of the transform's reads of its memory, used in turn
	computes  []stream
	turn      int // the compute stream whose turn it is
	copier    engines
	computer  engines
	submitted int // operations
	uploads   []*upload
	consumer  consumer
}

type batch struct {
	first   int // its first sample
	rows    int
	last    bool // of its epoch
	claimed int  // rows that a worker has, or had
	written int
	back    bool // it is released
	slot    *slot
	copy    *op
	loaded  *op // it may be read
	step    *op
}

func (b *batch) filled() bool { return b.written == b.rows }

// worker reads one sample of a batch until a time.
type worker struct {
	idle  bool
	batch int
	until time.Duration
}

// slot is a device slot.
type slot struct {
	left  int    // batches in it that are not released
	reads []read // of its last batches, by stream
}

// read is what a stream does with a slot's batches.
type read struct {
	stream  int
	batches int
	end     *op // nil until the last of the slot's batches is released
}

func (r *read) unfinished() bool { return r.end == nil || !r.end.done }

// used reports whether a stream may still be at work on the slot.
func (s *slot) used() bool {
	return slices.ContainsFunc(s.reads, func(r read) bool { return r.unfinished() })
}

// sending is what the uploader is doing with gathered batches in a slot.
type sending struct {
	slot    *slot         // nil if it does nothing
	blocked *op           // the copy that it is blocked in
	begun   bool          // the transform
	applied int           // to so many of the batches
	until   time.Duration // when the call for the next one ends
}

// consumer is the loop: it waits in Next for a batch, or works on the one before.
type consumer struct {
	next   int // the batch that is delivered next
	inBody bool
	until  time.Duration // the body's end; never while it waits for its step
	done   bool
}

// Run is what the pipeline does, from its start until Next reports the last epoch's end and
// the device has come to rest.
func Run(p Pipeline) *Result {
	m := &model{Pipeline: p, freeHost: p.HostSlots}
	for epoch := range max(1, p.Epochs) {
		for at := 0; at < p.Samples; at += p.Batch {
			rows := min(p.Batch, p.Samples-at)
			m.batches = append(m.batches, batch{first: epoch*p.Samples + at, rows: rows, last: at+rows == p.Samples})
		}
	}
	m.result.Times = make([]Times, len(m.batches))
	m.result.Steps = make([]Parts, len(m.batches))
	for range p.Workers {
		m.workers = append(m.workers, worker{idle: true})
	}
	if d := p.Device; d != nil {
		for range d.Slots {
			m.slots = append(m.slots, new(slot))
		}
		m.freeSlots = append(m.freeSlots, m.slots...)
		m.computes = make([]stream, max(1, d.Streams))
		m.copier.n, m.computer.n = 1, max(1, d.Engines)
	}
	for {
		m.settle()
		next := m.nextEvent()
		if next == never {
			break
		}
		m.pass(next - m.now)
		m.now = next
	}
	if !m.consumer.done {
		panic(fmt.Sprintf("waitmodel: nothing can happen any more at %v, with %d of %d batches delivered", m.now, m.consumer.next, len(m.batches)))
	}
	m.measure()
	return &m.result
}

// settle lets every part do all that it can at this instant. A stream goes on as soon as it
// can, engines take new work when everything that becomes ready at the instant is.
func (m *model) settle() {
	for m.advance() || m.read() || m.open() || m.work() || m.upload() || m.consume() || m.release() || m.start() {
	}
}

// nextEvent is when something ends by itself.
func (m *model) nextEvent() time.Duration {
	next := never
	at := func(t time.Duration) {
		if t > m.now {
			next = min(next, t)
		}
	}
	for _, w := range m.workers {
		if !w.idle {
			at(w.until)
		}
	}
	for _, e := range []*engines{&m.copier, &m.computer} {
		for _, o := range e.running {
			at(o.end)
		}
	}
	if m.sending.slot != nil {
		at(m.sending.until)
	}
	if m.consumer.inBody {
		at(m.consumer.until) // never while it waits for its step
	}
	if m.Released != nil {
		for i := range m.consumer.next {
			if !m.batches[i].back {
				at(m.due(i))
			}
		}
	}
	return next
}

// pass lets time go by in which nothing changes, and adds it to the figures.
func (m *model) pass(d time.Duration) {
	r := &m.result
	switch c := m.consumer; {
	case c.inBody:
		r.Body += d
		r.Steps[c.next-1].Body += d
	case !c.done:
		m.wait(d)
	}
	if m.lacksSlot() {
		r.WaitSlot += d
	}
	if m.opened < len(m.batches) && m.allFilled() { // it would be opened if there were a host slot
		r.WaitHostSlot += d
	}
	for _, w := range m.workers {
		if !w.idle {
			r.Busy += d
		}
	}
}

// wait adds to what keeps the next batch in order from being delivered.
func (m *model) wait(d time.Duration) {
	r, next := &m.result, m.consumer.next
	s := &r.Steps[next]
	add := func(sum, part *time.Duration) {
		*sum += d
		*part += d
	}
	switch {
	case next >= m.opened && m.Device != nil:
		add(&r.WaitDevice, &s.HostSlot) // every host slot is in flight
	case next >= m.opened:
		add(&r.WaitRelease, &s.Leases) // the consumer has every host slot
	case m.batches[next].filled() && m.lacksSlot():
		add(&r.WaitRelease, &s.Leases) // and every device slot
	case m.batches[next].filled():
		add(&r.WaitDevice, m.uploading(s))
	case m.overtaken(next):
		add(&r.WaitOrder, &s.Order)
	default:
		add(&r.WaitProducer, &s.Producers)
	}
}

// uploading is the part for what the uploader is kept by.
func (m *model) uploading(s *Parts) *time.Duration {
	switch at := &m.sending; {
	case at.slot == nil:
		return &s.Device // it waits for one of several streams to be done with a slot
	case at.blocked != nil && !at.blocked.done:
		return &s.Copy
	}
	return &s.Transform
}

// overtaken reports whether a batch behind this one is filled.
func (m *model) overtaken(next int) bool {
	for _, later := range m.batches[next+1 : m.opened] {
		if later.filled() {
			return true
		}
	}
	return false
}

func (m *model) allFilled() bool {
	for i := range m.opened {
		if !m.batches[i].filled() {
			return false
		}
	}
	return true
}
