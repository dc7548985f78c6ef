package slotmodel

import "github.com/leat-go/leat/internal/life"

// next enters Next, unless the user holds every slot: that is an error at once.
func (m *model) next(s *state) (note, bool) {
	if s.consumer != idle || m.allHeld(s) {
		return impossible()
	}
	s.consumer = waiting
	return note{"Next is called", 0}, true
}

func (m *model) allHeld(s *state) bool {
	for i := range s.slots[:m.Shape.Slots] {
		if d := &s.slots[i]; d.waiting != 0 || d.left == 0 {
			return false
		}
	}
	return true
}

// lease ends Next with a batch for a compute stream, and submits the user's work on it.
func (m *model) lease(s *state, to int8) (note, bool) {
	if s.consumer != waiting || s.items.n == 0 {
		return impossible()
	}
	number := s.items.pop()
	d, w := m.at(s, number)
	if w.batch != s.next {
		s.violate(outOfOrder, w.batch, s.next)
	}
	if r := &d.reads[to]; !r.whole {
		m.open(s, d, to, NoWaitFilled)
		r.whole = true
	}
	m.batch(s, w, life.Deliver)
	d.waiting--
	slot, i := number/int8(m.Shape.Together), number%int8(m.Shape.Together)
	s.issue(to, op{kind: work, slot: slot, window: i, batch: w.batch})
	if m.Shape.UsedOn {
		m.open(s, d, other, NoWaitUsed)
		s.issue(other, op{kind: work, slot: slot, window: i, batch: w.batch})
		w.used = true
	}
	s.settle()
	s.consumer = idle
	s.next++
	return note{"batch %d is the user's", s.next - 1}, true
}

// open begins a stream's read of a slot.
func (m *model) open(s *state, d *slot, id int8, without Mistake) {
	if m.Mistake != without {
		s.issue(id, op{kind: wait, bound: d.filled}) // read after filled
	}
	d.reads[id].begun = true
	d.reads[id].open++
}

func (m *model) handOverFails(s *state) (note, bool) {
	if !m.mayFail(s, HandOverFails, s.consumer == waiting && s.items.n > 0) {
		return impossible()
	}
	m.discardWindow(s, s.items.pop())
	s.failed, s.told, s.cancelled, s.consumer = true, true, true, left
	return note{"compute can't wait for batch %d", s.next}, true
}

// seeEnd ends Next with what is behind the last batch of the run.
func (m *model) seeEnd(s *state) (note, bool) {
	if s.consumer != waiting || s.items.n > 0 || s.uploader.at != ended {
		return impossible()
	}
	if (m.Fault == ReadFails || m.Fault == UploadFails) && s.failed && s.next != s.uploader.next {
		s.violate(errorTooEarly, s.next, 0)
	}
	s.told = s.failed
	s.cancelled, s.consumer = true, left
	return note{"Next sees the end", 0}, true
}

// release gives a batch back. The last of a slot's hands the slot back, when all reads of
// it have their Record.
func (m *model) release(s *state, number int8, fails bool) (note, bool) {
	d, w := m.at(s, number)
	if w.life != life.Leased {
		return impossible()
	}
	last := d.left == 1
	if fails && !m.mayFail(s, ReleaseFails, last || w.used) {
		return impossible()
	}
	batch := w.batch
	m.batch(s, w, life.Release)
	end := func(id int8, without Mistake) {
		r := &d.reads[id]
		if fails { // the user is told by the next call that reads
			fails, d.failed, s.failed, s.cancelled = false, true, true, true
			return
		}
		if m.Mistake != without {
			s.record(id, &r.done) // overwrite after read
		}
		r.open--
	}
	if w.used {
		end(other, NoRecordUsed)
		w.used = false
	}
	if m.Mistake == BackBeforeRecord {
		d.left--
		if last {
			s.late = number/int8(m.Shape.Together) + 1
			s.ring.push(s.late - 1)
		}
		return note{"batch %d is released, and its slot too early", batch}, true
	}
	m.handBack(s, number, end)
	s.settle()
	return note{"batch %d is released", batch}, true
}

// handBack notes that a batch is done with.
func (m *model) handBack(s *state, number int8, end func(int8, Mistake)) {
	d, _ := m.at(s, number)
	slot := number / int8(m.Shape.Together)
	d.left--
	first := d.left == int8(m.Shape.Together)-1
	last := d.left == 0
	for id := range int8(streams) {
		if d.reads[id].whole && (last && m.Mistake != EndReadWithFirst || first && m.Mistake == EndReadWithFirst) {
			end(id, NoRecordRead)
		}
	}
	switch {
	case last && d.failed:
		m.backAfterFault(s, slot)
	case last && m.Mistake != BackWithFirst, first && m.Mistake == BackWithFirst:
		s.ring.push(slot)
	}
}

// lateBack is the Records of a slot that came back before them.
func (m *model) lateBack(s *state) (note, bool) {
	if s.late == 0 {
		return impossible()
	}
	for id, r := range s.slots[s.late-1].reads {
		if r.whole {
			s.record(int8(id), &s.slots[s.late-1].reads[id].done)
			s.slots[s.late-1].reads[id].open--
		}
	}
	s.late = 0
	s.settle()
	return note{"its reads are recorded", 0}, true
}

// discardWindow takes back a batch that is not delivered.
func (m *model) discardWindow(s *state, number int8) {
	d, w := m.at(s, number)
	m.batch(s, w, life.Discard)
	d.waiting--
	if m.Mistake == KeepDiscarded {
		return
	}
	m.handBack(s, number, func(id int8, _ Mistake) {
		s.record(id, &d.reads[id].done)
		d.reads[id].open--
	})
	s.settle()
}

// stop is Close, Seek or a context's end, at any moment. A program with a producer that
// hangs comes to it too.
func (m *model) stop(s *state) (note, bool) {
	stuck := false
	for i := range s.buffers {
		stuck = stuck || s.buffers[i].stuck && s.buffers[i].life == life.Held
	}
	if s.cancelled || s.consumer == left || s.consumer == ended || !stuck && !m.mayFail(s, Stopped, true) {
		return impossible()
	}
	s.cancelled, s.consumer = true, left
	return note{"the run is stopped", 0}, true
}

// discard takes back what a run that is being joined has uploaded.
func (m *model) discard(s *state) (note, bool) {
	if s.consumer != left || s.items.n == 0 {
		return impossible()
	}
	number := s.items.pop()
	_, w := m.at(s, number)
	batch := w.batch
	m.discardWindow(s, number)
	return note{"batch %d is discarded", batch}, true
}

// joined reports whether nothing of a run is left.
func (m *model) joined(s *state) bool {
	if s.consumer != left || s.uploader.at != ended || s.items.n > 0 {
		return false
	}
	for i := range s.buffers {
		if s.buffers[i].life == life.Held {
			return false
		}
	}
	return true
}

// recover takes back what failed operations have left in doubt, if there is any, when the
// streams have come to rest. It reports false while they haven't.
func (m *model) recover(s *state) bool {
	doubtful, failed := false, false
	for i := range s.buffers {
		doubtful = doubtful || s.buffers[i].life == life.Doubtful
	}
	for i := range s.slots {
		d := &s.slots[i]
		failed = failed || d.failed && d.left == 0
	}
	if !doubtful && !failed && !s.fault {
		return true
	}
	if !s.idle(copies) && m.Mistake != RestWithoutCopies {
		return false
	}
	for i := range s.slots {
		d := &s.slots[i]
		for id, r := range d.reads {
			if d.failed && d.left == 0 && m.Mistake != RestWithoutReads && (r.open > 0 && !s.idle(int8(id)) || !r.done.complete()) {
				return false
			}
		}
	}
	if s.fault && s.inFlight.n > 0 {
		return false
	}
	for b := range int8(maxBuffers) {
		if s.buffers[b].life == life.Doubtful {
			m.buffer(s, b, life.Rest)
			s.clear(b)
		}
	}
	for i := range s.slots {
		if d := &s.slots[i]; d.failed && d.left == 0 {
			d.failed, d.reads = false, [streams]read{}
			s.ring.push(int8(i))
		}
	}
	s.fault = false
	return true
}

// reopen begins another run, at the batch behind the last one delivered.
func (m *model) reopen(s *state) (note, bool) {
	if s.next == int8(m.Shape.Batches)+1 || !m.joined(s) || !m.recover(s) {
		return impossible()
	}
	s.cancelled, s.failed, s.told = false, false, false
	s.opened = s.next - 1
	s.uploader = uploader{next: s.next}
	s.consumer = idle
	return note{"another run begins with batch %d", s.next}, true
}

// end is Close, when all is delivered.
func (m *model) end(s *state) (note, bool) {
	if s.next != int8(m.Shape.Batches)+1 || !m.joined(s) || s.inFlight.n > 0 {
		return impossible()
	}
	for i := range s.slots {
		if s.slots[i].left > 0 { // it is for who releases the last
			return impossible()
		}
	}
	if !m.recover(s) {
		return impossible()
	}
	s.told = s.failed
	s.consumer = ended
	return note{"all is closed", 0}, true
}
