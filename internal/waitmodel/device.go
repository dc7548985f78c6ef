package waitmodel

import (
	"cmp"
	"slices"
	"time"
)

type kind int

const (
	record  kind = iota // done when the stream reaches it
	wait                // holds the stream until another is done
	copying             // on an engine for copies
	kernel              // on an engine for kernels
)

// op is one operation of a stream.
type op struct {
	kind      kind
	other     *op           // that a wait is for
	cost      time.Duration // of a copy or a kernel
	batches   []int         // that it is about
	submitted int           // its place among all operations
	ready     time.Duration // when its stream came to it
	offered   bool          // to the engines
	done      bool
	end       time.Duration // known from its start on
}

// stream does its operations one after the other.
type stream struct{ queue []*op }

func (m *model) push(s *stream, o *op) {
	m.submitted++
	o.submitted = m.submitted
	s.queue = append(s.queue, o)
}

// engines run n operations at a time.
type engines struct {
	n                int
	running, waiting []*op
}

func (m *model) engines(k kind) *engines {
	if k == copying {
		return &m.copier
	}
	return &m.computer
}

// upload is what timed events say of one upload.
type upload struct {
	started *op // the copy stream has come to the copy
	copy    *op
	reached *op // a compute stream has come to the wait for it, for the first time
}

// reach notes that a stream comes to a copy, if that is the first to do so.
func (m *model) reach(s *stream, o *op) {
	for _, u := range m.uploads {
		if u.copy == o && u.reached == nil {
			u.reached = &op{kind: record}
			m.push(s, u.reached)
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
	for _, e := range []*engines{&m.copier, &m.computer} {
		if i := slices.IndexFunc(e.running, func(o *op) bool { return o.end <= m.now }); i >= 0 {
			o := e.running[i]
			e.running = slices.Delete(e.running, i, i+1)
			o.done = true
			m.ended(o)
			return true
		}
	}
	if m.step(&m.copies) || m.step(&m.transform) {
		return true
	}
	for i := range m.computes {
		if m.step(&m.computes[i]) {
			return true
		}
	}
	return false
}

// step lets a stream go on by one operation.
func (m *model) step(s *stream) bool {
	if len(s.queue) == 0 {
		return false
	}
	o := s.queue[0]
	switch o.kind {
	case record:
		o.done, o.end = true, m.now
	case wait:
		if !o.other.done {
			return false
		}
	default:
		if !o.offered {
			o.offered, o.ready = true, m.now
			e := m.engines(o.kind)
			e.waiting = append(e.waiting, o)
			return true
		}
		if !o.done {
			return false
		}
	}
	s.queue = s.queue[1:]
	return true
}

// start gives a free engine what was ready first, and of several what was submitted first. What
// takes no time comes before all else.
func (m *model) start() bool {
	for _, e := range []*engines{&m.copier, &m.computer} {
		if len(e.running) == e.n || len(e.waiting) == 0 {
			continue
		}
		o := slices.MinFunc(e.waiting, func(a, b *op) int {
			return cmp.Or(cmp.Compare(min(a.cost, 1), min(b.cost, 1)), cmp.Compare(a.ready, b.ready), cmp.Compare(a.submitted, b.submitted))
		})
		e.waiting = slices.DeleteFunc(e.waiting, func(w *op) bool { return w == o })
		o.end = m.now + o.cost
		e.running = append(e.running, o)
		return true
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
