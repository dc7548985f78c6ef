package slotmodel

import "github.com/leat-go/leat/internal/life"

// close is Quiesce, Close, and its reaper.
func (m *lifeModel) close(s *pipeline, w who, choice int) (note, bool) {
	c := s.caller(w)
	switch {
	case c.pc == quiesceMapping && choice == 0:
		if s.life.Reader == life.Mapping {
			return c.goOn(outside, "Quiesce is ErrBusy: a Map runs")
		}
		return c.goOn(quiesceTurn, "no Map runs")
	case c.pc == quiesceTurn && choice == 0:
		if s.turn != nobody {
			return c.goOn(outside, "Quiesce is ErrBusy")
		}
		s.turn = w
		return c.goOn(quiesceClosed, "Quiesce has its turn")
	case c.pc == quiesceClosed && choice == 0:
		switch {
		case s.closed:
			return c.goOn(unlock, "Quiesce is ErrClosed")
		case s.life.Reader == life.Mapping:
			return c.goOn(unlock, "Quiesce is ErrBusy: a Map has begun")
		}
		return c.goOn(quiescePause, "nobody has closed it")
	case c.pc == quiescePause && choice == 0 && s.working != hanging:
		s.quiet = true
		return c.goOn(quiesceReapers, "the uploader calls nothing")
	case c.pc == quiescePause && choice == 1 && s.working == hanging:
		return c.goOn(unlock, "Quiesce says that Apply hangs")
	case (c.pc == quiescePause || c.pc == quiesceReapers) && choice == 2 && s.closed:
		return c.goOn(unlock, "Close ends Quiesce")
	case c.pc == quiesceReapers && choice == 0 && s.reapers == 0:
		return c.goOn(unlock, "no reaper is at work")

	case c.pc == closeClosed && choice == 0:
		s.closed = true
		return c.goOn(closeCancel, "everybody can see it")
	case c.pc == closeCancel && choice == 0:
		s.cancelled = s.cancelled || s.run
		return c.goOn(closeTurn, "the run is told to end, if there is one")
	case c.pc == closeTurn && choice == 0 && (s.turn == nobody || m.Slip == CloseUnasked):
		s.turn, c.stop_ = w, closeStopped
		return c.goOn(stopRun, "Close has its turn")
	case c.pc == closeStopped && choice == 0:
		if c.failed && m.Slip != ReapStuck {
			s.run = m.Slip == ShareStuck
			s.reaper.pc = reapJoin
			return c.endClose(s, "Close leaves the run to a reaper")
		}
		return c.goOn(reapDrain, "nothing runs")

	case c.pc == reapJoin && choice == 0 && s.working == over:
		m.discard(s)
		return c.goOn(reapJoined, "the reaper sees the run's end")
	case c.pc == reapJoined && choice == 0:
		s.run = false
		m.must(s, life.Join)
		return c.goOn(reapDrain, "the reaper has joined it")
	case c.pc == reapDrain && choice == 0:
		return c.goOn(reapReap, "the copies are over")
	case c.pc == reapDrain && choice == 1 && w == closer:
		s.reaper.pc = reapDrain
		return c.endClose(s, "Close leaves the copies to a reaper")
	case c.pc == reapReap && choice == 0:
		m.must(s, life.Reap)
		if s.working != resting && s.working != over {
			s.breach(reapedRun)
		}
		return c.goOn(reapRing, "what is back may be freed")
	case c.pc == reapRing && choice == 0:
		s.ringClosed = true
		return c.goOn(reapSlots, "what comes back later has a reaper")
	case c.pc == reapSlots && choice < 2:
		return m.reapSlots(s, w, choice == 1)
	case c.pc == reapPool && choice == 0:
		if s.working != resting && s.working != over {
			s.breach(reapedRun)
		}
		s.poolFreed = true
		return c.goOn(reapLeave, "pinned memory and streams are freed")
	case c.pc == reapLeave && choice == 0:
		m.endUse(s, life.Leave)
		if m.Slip == LeaveTwice {
			m.endUse(s, life.Leave)
		}
		if w == closer {
			return c.endClose(s, "the owner has left")
		}
		return c.goOn(done, "the owner has left")
	}
	return impossible()
}

func (c *caller) endClose(s *pipeline, did string) (note, bool) {
	s.turn = nobody
	return c.goOn(done, did)
}

// reapSlots frees the slots that are back. Close leaves one to a reaper, if the device
// works on it too long.
func (m *lifeModel) reapSlots(s *pipeline, w who, late bool) (note, bool) {
	last := -1
	for i, d := range s.slots[:m.Slots] {
		if d.where == inRing {
			last = i
		}
	}
	if late && (w != closer || last < 0) {
		return impossible()
	}
	for i := range s.slots[:m.Slots] {
		switch d := &s.slots[i]; {
		case d.where == inItems:
			s.breach(slotInUse)
		case d.where == inRing && !(late && i == last):
			d.where = freed
		}
	}
	if late {
		s.reaper.pc = reapDrain
		return s.caller(w).endClose(s, "Close leaves a slot to a reaper")
	}
	return s.caller(w).goOn(reapPool, "the slots that are back are freed")
}
