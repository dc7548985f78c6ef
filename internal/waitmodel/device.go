package waitmodel

import "time"

type kind int

const (
	record  kind = iota // done when the stream reaches it
	wait                // holds the stream until another is done
	copying             // on the engine for copies
	kernel              // on the engine for kernels
)

// op is one operation of a stream.
type op struct {
	kind    kind
	other   *op           // that a wait is for
	cost    time.Duration // of a copy or a kernel
	batches []int         // that it is about
	offered bool          // to its engine
	done    bool
	end     time.Duration // known from its start on
}

// stream does its operations one after the other.
type stream struct{ queue []*op }

func (s *stream) push(o *op) { s.queue = append(s.queue, o) }

// engine runs one operation at a time.
type engine struct {
	op      *op
	waiting []*op // in the order in which their streams reached them
}

func (m *model) engine(o *op) *engine { return &m.engines[o.kind-copying] }

// upload is what timed events say of one upload.
type upload struct {
	started *op // the copy stream has come to the copy
	copy    *op
	reached *op // the compute stream has come to the wait for it, for the first time
}

// reach notes that compute comes to the batch's copy, if it is the first of its upload to be
// delivered.
func (m *model) reach(b *batch) {
	for _, u := range m.uploads {
		if u.copy == b.copy && u.reached == nil {
			u.reached = &op{kind: record}
			m.compute.push(u.reached)
		}
	}
}

// measure sums up what the timed events say.
func (m *model) measure() {
	for _, u := range m.uploads {
		m.result.CopyTime += u.copy.end - u.started.end
		m.result.WaitCopy += max(0, u.copy.end-u.reached.end)
	}
}

// advance ends an operation, or lets a stream go on by one.
func (m *model) advance() bool {
	for i := range m.engines {
		e := &m.engines[i]
		if o := e.op; o != nil && o.end <= m.now {
			e.op = nil
			o.done = true
			m.ended(o)
			return true
		}
	}
	for _, s := range []*stream{&m.copies, &m.compute} {
		if len(s.queue) == 0 {
			continue
		}
		o := s.queue[0]
		switch {
		case o.kind == record:
			o.done, o.end = true, m.now
		case o.kind == wait && !o.other.done, o.kind >= copying && o.offered && !o.done:
			continue
		case o.kind >= copying && !o.offered:
			o.offered = true
			e := m.engine(o)
			e.waiting = append(e.waiting, o)
			return true
		}
		s.queue = s.queue[1:]
		return true
	}
	return false
}

// start gives a free engine what has waited longest for it.
func (m *model) start() bool {
	for i := range m.engines {
		if e := &m.engines[i]; e.op == nil && len(e.waiting) > 0 {
			e.op, e.waiting = e.waiting[0], e.waiting[1:]
			e.op.end = m.now + e.op.cost
			return true
		}
	}
	return false
}

// ended notes what the end of a copy or a kernel means: a copy's host slots are free.
func (m *model) ended(o *op) {
	for _, i := range o.batches {
		if o.kind == kernel {
			m.result.Times[i].Computed = m.now
			continue
		}
		m.result.Times[i].Copied = m.now
		m.freeHost++
	}
}
