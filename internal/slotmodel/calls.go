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

// The run.

func (m *lifeModel) produce(s *pipeline, d int) (note, bool) {
	if s.working != busy || s.quiet || s.slots[d].where != inRing {
		return impossible()
	}
	if s.ringClosed || s.poolFreed {
		s.breach(usedFreed)
	}
	s.slots[d].where = inItems
	return note{format: "a batch is uploaded"}, true
}

func (m *lifeModel) hang(s *pipeline) (note, bool) {
	if s.working != busy || s.quiet || s.hung {
		return impossible()
	}
	s.working, s.hung = hanging, true
	return note{format: "the user's Apply hangs"}, true
}

func (m *lifeModel) comeBack(s *pipeline) (note, bool) {
	if s.working != hanging {
		return impossible()
	}
	if s.poolFreed {
		s.breach(usedFreed)
	}
	s.working = busy
	return note{format: "Apply returns"}, true
}

// endWork ends the run's goroutines: they were told to, or have done all, or failed.
func (m *lifeModel) endWork(s *pipeline) (note, bool) {
	if s.working != busy {
		return impossible()
	}
	s.working = over
	return note{format: "producers and uploader end"}, true
}

// discard takes back what was uploaded and not delivered.
func (m *lifeModel) discard(s *pipeline) {
	for i := range s.slots {
		if s.slots[i].where == inItems {
			m.back(s, i)
		}
	}
}

// back makes a slot free, or leaves it to a reaper if the ring is closed.
func (m *lifeModel) back(s *pipeline, d int) {
	s.slots[d].owner = nobody
	if !s.ringClosed || m.Slip == ForgetOrphan {
		s.slots[d].where = inRing
		return
	}
	m.must(s, life.Use)
	s.slots[d].where = orphaned
}

// The reapers.

func (m *lifeModel) orphanReaper(s *pipeline, d int) (note, bool) {
	if s.slots[d].where != orphaned {
		return impossible()
	}
	s.slots[d].where = freed
	m.endUse(s, life.Unuse)
	return note{format: "a slot's reaper frees it"}, true
}

func (m *lifeModel) mapReaper(s *pipeline) (note, bool) {
	if s.reapers == 0 {
		return impossible()
	}
	s.reapers--
	m.endUse(s, life.Unuse)
	return note{format: "the reaper of a Map's results frees them"}, true
}

// goOn is a step of a program: where it goes on.
func (c *caller) goOn(to pc, did string) (note, bool) {
	c.pc = to
	return note{format: did}, true
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
