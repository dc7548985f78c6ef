package slotmodel

import "github.com/leat-go/leat/internal/life"

// get has a producer begin the next batch in a free buffer.
func (m *model) get(s *state) (note, bool) {
	if s.cancelled || s.failed || s.fault || s.opened == int8(m.Shape.Batches) || s.free.n == 0 {
		return impossible()
	}
	b := s.free.pop()
	s.opened++
	q := &s.streams[copies]
	for _, o := range q.ops[:q.n] {
		if o.kind == copyH2D && b >= o.buffer && b < o.buffer+o.n {
			s.violate(overwrittenOnHost, s.opened, o.batch+b-o.buffer)
		}
	}
	m.buffer(s, b, life.Get)
	s.buffers[b].batch, s.buffers[b].content = s.opened, poison
	return note{"batch %d is begun", s.opened}, true
}

// producing reports whether a producer of the run writes to a buffer.
func (b *buffer) producing() bool { return b.life == life.Held && !b.filled && !b.stuck }

// fill ends a batch, in any order.
func (m *model) fill(s *state, at int8) (note, bool) {
	b := &s.buffers[at]
	if !b.producing() {
		return impossible()
	}
	b.filled, b.content = true, b.batch
	return note{"batch %d is filled", b.batch}, true
}

func (m *model) readFails(s *state, at int8) (note, bool) {
	b := &s.buffers[at]
	if !m.mayFail(s, ReadFails, b.producing() && !s.cancelled) {
		return impossible()
	}
	b.filled, b.failed = true, true
	return note{"batch %d can't be read", b.batch}, true
}

func (m *model) hang(s *state, at int8) (note, bool) {
	b := &s.buffers[at]
	if !m.mayFail(s, Stuck, b.producing()) {
		return impossible()
	}
	b.stuck = true
	return note{"the producer of batch %d hangs", b.batch}, true
}

// putBack takes a buffer from the producers of a run that is being joined: what nobody
// has taken, and what somebody may write to for a long time yet.
func (m *model) putBack(s *state, at int8) (note, bool) {
	b := &s.buffers[at]
	switch {
	case s.consumer != left || s.uploader.at != ended || b.life != life.Held || b.away:
		return impossible()
	case b.filled:
		did := note{"batch %d goes back, not uploaded", b.batch}
		m.buffer(s, at, life.Put)
		s.clear(at)
		return did, true
	case b.stuck && m.Mistake == PutStuck:
		m.buffer(s, at, life.Put)
		s.clear(at)
		b.writer = true
		return note{"buffer %d goes back", at}, true
	case b.stuck:
		m.buffer(s, at, life.Quarantine)
		b.away = true
		return note{"buffer %d is quarantined", at}, true
	}
	return impossible()
}

// comeBack has the producer that hangs write, and end.
func (m *model) comeBack(s *state, at int8) (note, bool) {
	b := &s.buffers[at]
	did := note{"the producer that hung in buffer %d is back", at}
	switch {
	case b.writer:
		b.writer, b.content = false, poison
	case !b.stuck:
		return impossible()
	case b.away:
		if m.Mistake != PutUnadmitted {
			m.buffer(s, at, life.Readmit)
		}
		m.buffer(s, at, life.Put)
		s.clear(at)
	default: // in time
		b.stuck, b.filled, b.content = false, true, b.batch
	}
	return did, true
}

// The recycler.

// land frees the oldest buffer in flight when its copies are done.
func (m *model) land(s *state) (note, bool) {
	if s.inFlight.n == 0 {
		return impossible()
	}
	at := s.inFlight.at[0]
	b := &s.buffers[at]
	if s.fault && m.Mistake != CopiedInFault {
		s.inFlight.pop()
		m.buffer(s, at, life.Doubt)
		return note{"buffer %d is in doubt", at}, true
	}
	behind := b.behind
	if m.Mistake == OwnEvents {
		behind = at
	}
	if !s.fault && m.Mistake != NoAwaitCopied && !s.buffers[behind].copied.complete() {
		return impossible()
	}
	s.inFlight.pop()
	m.buffer(s, at, life.Copied)
	s.clear(at)
	return note{"buffer %d is free", at}, true
}

// landFails is an error of the recycler's event: nothing in flight is known to be copied.
func (m *model) landFails(s *state) (note, bool) {
	if !m.mayFail(s, RecycleFails, s.inFlight.n > 0) {
		return impossible()
	}
	s.fault = true
	return note{"the recycler's event fails", 0}, true
}
