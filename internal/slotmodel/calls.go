package slotmodel

import "github.com/leat-go/leat/internal/life"

// call is what a goroutine is in.
type call uint8

const (
	opening call = iota
	mapping
	seeking
	starting
	quiescing
)

// pc is where in its program a goroutine stands: what it does next. The programs are
// those of package prefetch, by the names of its functions.
type pc uint8

const (
	outside pc = iota // of all calls
	done

	beginRead // lookahead.begin
	beginTurn
	opened // Open, Start, Seek: holding the turn
	openFailed
	openOver
	unlock
	endRead

	readyRun // lookahead.ready
	readyStopped
	readyBegin
	readyStart
	readyClosed
	stopRun // lookahead.stop
	stopJoin
	stopStick
	stopAbandon
	stopJoined

	reading // the user's, in a session
	readerClose
	readerUnlock
	nextTurn // Reader.Next
	nextRun
	nextReady
	nextWait
	nextOver
	nextLend
	nextUnlock
	releaseBack // Batch.Release
	releaseTake
	released

	mapOver // Map
	mapResults
	mapUnuse
	mapLoop
	mapLeave
	finishTurn // mapping.finish
	finishUnlock
	finishCollect
	finishDrop
	finishRead
	finishUse
	stepNext // the stepper
	stepNexted
	step_
	stepStuck
	stepped

	quiesceMapping // Quiesce
	quiesceTurn
	quiesceClosed
	quiescePause
	quiesceReapers

	closeClosed // Prefetcher.Close
	closeCancel
	closeTurn
	closeStopped

	reapJoin // the reaper of a run that was stuck
	reapJoined
	reapDrain // reap
	reapReap
	reapRing
	reapSlots
	reapPool
	reapLeave
)

// steps are all there are.
func (m *lifeModel) steps() (all []step[pipeline]) {
	for w := user; w <= releaser; w++ {
		for choice := range 4 {
			all = append(all, func(s *pipeline) (note, bool) { return m.act(s, w, choice) })
		}
	}
	for d := range m.Slots {
		all = append(all,
			func(s *pipeline) (note, bool) { return m.orphanReaper(s, d) },
			func(s *pipeline) (note, bool) { return m.produce(s, d) })
	}
	return append(all, m.hang, m.comeBack, m.endWork, m.mapReaper)
}

// goOn is a step of a program: where it goes on.
func (c *caller) goOn(to pc, did string) (note, bool) {
	c.pc = to
	return note{format: did}, true
}

// act is the next step of a goroutine: of those that may come, the one of that number.
func (m *lifeModel) act(s *pipeline, w who, choice int) (note, bool) {
	c := s.caller(w)
	if c.pc == outside {
		return m.enter(s, w, choice)
	}
	did, possible := m.goOn(s, w, choice)
	if !possible {
		return impossible()
	}
	for c.pc.atOnce() {
		m.goOn(s, w, 0)
	}
	return did, true
}

// inNext reports whether a goroutine has its turn for Next.
func (c *caller) inNext() bool {
	return c.pc >= nextRun && c.pc <= nextUnlock || (c.pc >= readyRun && c.pc <= stopJoined) && (c.ready == nextReady || c.stop_ == nextOver)
}

// atOnce reports whether what comes next may as well come with the step before it: what
// others do in between they can do before, or after.
func (p pc) atOnce() bool {
	switch p {
	case opened, openOver, unlock, readyStopped, stopStick, stopAbandon, stopJoined, readerUnlock, nextReady, nextOver, nextUnlock,
		released, finishUnlock, stepNexted, reapJoined, reapRing, reapPool:
		return true
	}
	return false
}

// goOn is the next step of a program.
func (m *lifeModel) goOn(s *pipeline, w who, choice int) (note, bool) {
	switch pc := s.caller(w).pc; {
	case pc <= endRead:
		return m.open(s, w, choice)
	case pc <= stopJoined:
		return m.ahead(s, w, choice)
	case pc <= released:
		return m.read(s, w, choice)
	case pc <= stepped:
		return m.mapping(s, w, choice)
	}
	return m.close(s, w, choice)
}

// enter is what a goroutine does when it is in no call.
func (m *lifeModel) enter(s *pipeline, w who, choice int) (note, bool) {
	c := s.caller(w)
	switch {
	case w == user && choice == 0, w == user && choice == 1 && c.left > 0:
		if c.left == 0 {
			return c.goOn(done, "the user has done")
		}
		c.left--
		if c.call = opening; choice == 1 {
			c.call = mapping
			return c.goOn(beginRead, "Map is called")
		}
		return c.goOn(beginRead, "Open is called")
	case w == helper && m.Helper && c.left == 0 && choice < 3:
		c.left = 1 // once
		if choice == 0 {
			c.call = quiescing
			if s.closed {
				return c.goOn(outside, "Quiesce is ErrClosed")
			}
			return c.goOn(quiesceMapping, "Quiesce is called")
		}
		c.call = [...]call{seeking, starting}[choice-1]
		return c.goOn(beginRead, [...]string{"Seek is called", "Start is called"}[choice-1])
	case w == closer && choice == 0:
		m.must(s, life.Shut)
		s.shut = true
		return c.goOn(closeClosed, "Close is called")
	case w == releaser && choice < m.Slots && s.slots[choice].where == leased && s.slots[choice].owner == user:
		c.slot = int8(choice)
		return c.goOn(releaseBack, "a batch is released")
	}
	return impossible()
}
