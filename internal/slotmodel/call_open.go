package slotmodel

import "github.com/leat-go/leat/internal/life"

// open is Open, Seek and Start, and the end of reading.
func (m *lifeModel) open(s *pipeline, w who, choice int) (note, bool) {
	c := s.caller(w)
	switch {
	case c.pc == beginRead && choice == 0:
		if err := m.step(s, life.Read); err != nil {
			return c.goOn(outside, "it is refused: "+err.Error())
		}
		s.begun()
		return c.goOn(beginTurn, "and may read")
	case c.pc == beginTurn && choice == 0 && s.turn == nobody:
		if s.turn = w; s.closed && m.Slip != BeginBehindClose {
			return c.goOn(openFailed, "Close was faster")
		}
		if s.closed {
			s.breach(actsClosed)
		}
		if c.call == seeking {
			c.stop_ = openOver
			return c.goOn(stopRun, "it has its turn")
		}
		c.ready = opened
		return c.goOn(readyRun, "it has its turn")
	case c.pc == opened && choice == 0:
		if c.failed {
			return c.goOn(openFailed, "it fails")
		}
		s.turn = nobody
		switch c.call {
		case opening:
			c.nexts = int8(m.Nexts)
			return c.goOn(reading, "a Reader is open")
		case mapping:
			return c.goOn(mapOver, "a Map's Reader is open")
		}
		return c.goOn(endRead, "a run is started")
	case c.pc == openFailed && choice == 0:
		if m.Slip != ForgetEndRead {
			m.endRead(s)
		}
		return c.goOn(unlock, "it doesn't read any more")
	case c.pc == openOver && choice == 0:
		s.turn = nobody
		return c.goOn(endRead, "Seek is done")
	case c.pc == endRead && choice == 0:
		m.endRead(s)
		return c.goOn(outside, "it doesn't read any more")
	case c.pc == unlock && choice == 0:
		s.turn = nobody
		return c.goOn(outside, "the turn is over")
	}
	return impossible()
}

// ahead is ready and stop, by who holds the turn.
func (m *lifeModel) ahead(s *pipeline, w who, choice int) (note, bool) {
	c := s.caller(w)
	switch {
	case c.pc == readyRun && choice == 0 && s.run && !s.cancelled,
		c.pc == readyRun && choice == 1 && !s.run: // all is delivered
		c.failed, s.quiet = false, false
		return c.goOn(c.ready, "no run need be made")
	case c.pc == readyRun && choice == 2 && s.run: // it fails, or goes on elsewhere
		c.stop_ = readyStopped
		return c.goOn(stopRun, "another run is needed")
	case c.pc == readyRun && choice == 0 && !s.run:
		if s.quiet = false; s.closed {
			c.failed = true
			return c.goOn(c.ready, "it is closed")
		}
		return c.goOn(readyBegin, "a run is needed")
	case c.pc == readyStopped && choice == 0:
		if c.failed {
			return c.goOn(c.ready, "the run is stuck")
		}
		return c.goOn(readyRun, "the run is joined")
	case c.pc == readyBegin && choice == 0:
		if err := m.step(s, life.Begin); err != nil {
			c.failed = true
			return c.goOn(c.ready, "it is closed")
		}
		return c.goOn(readyStart, "a run may begin")
	case c.pc == readyStart && choice == 0:
		s.run, s.working, s.cancelled = true, busy, false
		return c.goOn(readyClosed, "a run begins")
	case c.pc == readyClosed && choice == 0:
		s.cancelled = s.cancelled || s.closed
		c.failed = false
		return c.goOn(c.ready, "and nobody has closed it, or it is cancelled")

	case c.pc == stopRun && choice == 0:
		s.quiet, c.failed = false, false
		if !s.run {
			return c.goOn(c.stop_, "there is no run to stop")
		}
		s.cancelled = true
		return c.goOn(stopJoin, "the run is told to end")
	case c.pc == stopJoin && choice == 0 && s.working == over:
		m.discard(s)
		return c.goOn(stopAbandon, "the run has ended")
	case c.pc == stopJoin && choice == 1 && s.working == hanging:
		return c.goOn(stopStick, "the run does not end")
	case c.pc == stopStick && choice == 0:
		c.failed = true
		m.must(s, life.Stick)
		return c.goOn(c.stop_, "it is stuck")
	case c.pc == stopAbandon && choice == 0:
		s.run = false
		return c.goOn(stopJoined, "the run is gone")
	case c.pc == stopJoined && choice == 0:
		m.must(s, life.Join)
		return c.goOn(c.stop_, "the run is joined")
	}
	return impossible()
}
