package slotmodel

import "github.com/leat-go/leat/internal/life"

// read is a Reader's session, Next, and the release of batches.
func (m *lifeModel) read(s *pipeline, w who, choice int) (note, bool) {
	c := s.caller(w)
	switch {
	case c.pc == reading && choice == 0 && c.nexts > 0:
		c.nexts--
		c.next = reading
		return c.goOn(nextTurn, "Next is called")
	case c.pc == reading && choice == 1:
		c.nexts = 0
		return c.goOn(readerClose, "Reader.Close is called")
	case c.pc == readerClose && choice < 2 && s.turn == nobody:
		s.turn = w
		if choice == 0 {
			return c.goOn(readerUnlock, "what is ahead is kept")
		}
		c.stop_ = readerUnlock
		return c.goOn(stopRun, "what is ahead is given up")
	case c.pc == readerUnlock && choice == 0:
		s.turn = nobody
		return c.goOn(endRead, "the Reader is closed")

	case c.pc == nextTurn && choice == 0:
		switch {
		case s.turn == nobody:
			s.turn, c.slot, c.failed = w, -1, true
			return c.goOn(nextRun, "Next has its turn")
		case s.closed:
			c.slot, c.failed = -1, true
			return c.goOn(c.next, "Next is ErrClosed")
		case m.Slip != NextImpatient && !s.caller(s.turn).inNext():
			return impossible() // it waits
		default:
			s.breach(nextBusy) // there is one Reader at a time, and one goroutine calls it
		}
		c.slot, c.failed = -1, true
		return c.goOn(c.next, "Next is ErrBusy")
	case c.pc == nextRun && choice == 0:
		switch s.quiet = false; {
		case s.closed:
			return c.goOn(nextUnlock, "it is closed")
		case !s.run:
			c.ready = nextReady
			return c.goOn(readyRun, "there is no run")
		}
		return c.goOn(nextWait, "there is a run")
	case c.pc == nextReady && choice == 0:
		failed := c.failed
		if c.failed = true; failed || !s.run {
			return c.goOn(nextUnlock, "there is nothing more")
		}
		return c.goOn(nextWait, "there is a run now")
	case c.pc == nextWait:
		return m.wait(s, w, choice)
	case c.pc == nextOver && choice == 0:
		c.failed = true
		return c.goOn(nextUnlock, "the epochs are over")
	case c.pc == nextLend && choice == 0:
		d := int(c.slot)
		if err := m.step(s, life.Lend); err != nil {
			m.back(s, d)
			c.slot, c.failed = -1, true
			return c.goOn(nextUnlock, "Close was faster")
		}
		if s.shut {
			s.breach(leaseAfterShut)
		}
		s.slots[d] = deviceSlot{where: leased, owner: w}
		c.failed = false
		return c.goOn(nextUnlock, "a batch is lent")
	case c.pc == nextUnlock && choice == 0:
		s.turn = nobody
		return c.goOn(c.next, "Next returns")

	case c.pc == releaseBack && choice == 0 && m.Slip != TakeBackFirst, c.pc == releaseTake && choice == 0 && m.Slip == TakeBackFirst:
		d := int(c.slot)
		if s.ringClosed && s.poolFreed && s.frees > 0 {
			s.breach(usedFreed)
		}
		m.back(s, d)
		if m.Slip == TakeBackFirst {
			return c.goOn(released, "its slot is back")
		}
		return c.goOn(releaseTake, "its slot is back")
	case c.pc == releaseTake && choice == 0, c.pc == releaseBack && choice == 0:
		m.endUse(s, life.TakeBack)
		if m.Slip == TakeBackFirst {
			return c.goOn(releaseTake, "its lease is over")
		}
		return c.goOn(released, "its lease is over")
	case c.pc == released && choice == 0:
		c.slot = -1
		if w == stepper {
			return c.goOn(stepNext, "the step is over")
		}
		return c.goOn(outside, "Release returns")
	}
	return impossible()
}

// wait is Next, for what the run has.
func (m *lifeModel) wait(s *pipeline, w who, choice int) (note, bool) {
	c := s.caller(w)
	items, held := -1, true
	for i, d := range s.slots[:m.Slots] {
		if d.where == inItems {
			items = i
		}
		held = held && d.where == leased
	}
	switch {
	case choice == 0 && held:
		return c.goOn(nextUnlock, "Next is a LeaseError")
	case choice == 0 && items >= 0:
		c.slot = int8(items)
		return c.goOn(nextLend, "Next has a batch")
	case choice == 1 && items < 0 && s.working == over:
		return c.goOn(nextUnlock, "Next has the run's error")
	case choice == 2 && items < 0 && s.working == over:
		c.stop_ = nextOver
		return c.goOn(stopRun, "Next sees the end")
	case choice == 3 && (s.closed || w == stepper && s.leaving):
		return c.goOn(nextUnlock, "Next is woken")
	}
	return impossible()
}

// begun and ended count who reads.
func (s *pipeline) begun() {
	if s.readers++; s.readers > 1 {
		s.breach(twoReaders)
	}
	if s.shut {
		s.breach(readAfterClose)
	}
}

func (m *lifeModel) endRead(s *pipeline) {
	m.must(s, life.EndRead)
	s.readers--
}
