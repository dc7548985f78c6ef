package slotmodel

import "github.com/leat-go/leat/internal/life"

// mapping is Map, and its stepper.
func (m *lifeModel) mapping(s *pipeline, w who, choice int) (note, bool) {
	c := s.caller(w)
	switch {
	case c.pc == mapOver && choice == 0 && s.turn == nobody:
		if err := m.step(s, life.MapOver); err != nil {
			return c.goOn(readerClose, "Close was faster")
		}
		s.turn = w
		c.maps = true
		s.maps++
		return c.goOn(mapResults, "the Map uses results")
	case c.pc == mapResults && choice == 0:
		if s.frees > 0 {
			s.breach(usedFreed)
		}
		s.turn, s.leaving = nobody, false
		s.stepper = caller{pc: stepNext, slot: -1}
		return c.goOn(mapLoop, "the stepper begins")
	case c.pc == mapResults && choice == 1:
		return c.goOn(mapUnuse, "there is no memory for results")
	case c.pc == mapUnuse && choice == 0:
		s.turn, c.maps = nobody, false
		s.maps--
		m.endUse(s, life.Unuse)
		return c.goOn(readerClose, "the Map has failed")
	case c.pc == mapLoop && choice == 0:
		s.leaving = true
		return c.goOn(mapLeave, "the Map is left")
	case c.pc == mapLeave && choice == 0 && s.stepper.pc == stepped:
		return c.goOn(finishTurn, "its stepper has ended")
	case c.pc == mapLeave && choice == 1 && s.stepper.pc == stepStuck && m.Slip == StepOutlivesMap:
		return c.goOn(finishTurn, "its step does not return")
	case c.pc == mapLeave && choice == 1 && s.stepper.pc == stepStuck && s.finisher.pc == outside:
		s.finisher.pc, s.finisher.maps, c.maps = mapLeave, true, false
		return c.goOn(outside, "its step does not return")

	case c.pc == stepNext && choice == 0 && s.leaving:
		return c.goOn(stepped, "the stepper ends")
	case c.pc == stepNext && choice == 1:
		c.next = stepNexted
		return c.goOn(nextTurn, "the stepper calls Next")
	case c.pc == stepNexted && choice == 0:
		if c.failed {
			return c.goOn(stepped, "the stepper ends")
		}
		return c.goOn(step_, "a step begins")
	case (c.pc == step_ || c.pc == stepStuck) && choice == 0:
		if s.frees > 0 || s.maps == 0 {
			s.breach(usedFreed)
		}
		return c.goOn(releaseBack, "the step returns")
	case c.pc == step_ && choice == 1:
		return c.goOn(stepStuck, "the step hangs")

	case c.pc == finishTurn && choice < 2 && s.turn == nobody:
		s.turn = w
		if choice == 0 {
			return c.goOn(finishUnlock, "what is ahead is kept")
		}
		c.stop_ = finishUnlock
		return c.goOn(stopRun, "what is ahead is given up")
	case c.pc == finishUnlock && choice == 0:
		s.turn = nobody
		return c.goOn(finishCollect, "its turn is over")
	case c.pc == finishCollect && choice == 0:
		if m.Slip == UnuseFirst {
			return c.goOn(finishUse, "the results are whole, or not")
		}
		return c.goOn(finishRead, "the results are whole")
	case (c.pc == finishCollect && m.Slip != UnuseFirst || c.pc == finishDrop) && choice == 1:
		m.must(s, life.Use)
		s.reapers++
		return c.goOn(finishRead, "the results go to a reaper")
	case c.pc == finishDrop && choice == 0:
		return c.goOn(finishRead, "the results are whole")
	case c.pc == finishRead && choice == 0:
		m.endRead(s)
		if m.Slip == UnuseFirst {
			return c.goOn(outside, "nobody reads any more")
		}
		return c.goOn(finishUse, "nobody reads any more")
	case c.pc == finishUse && choice == 0:
		c.maps = false
		s.maps--
		m.endUse(s, life.Unuse)
		if m.Slip == UnuseFirst {
			return c.goOn(finishDrop, "the Map is over")
		}
		return c.goOn(outside, "the Map is over")
	}
	return impossible()
}
