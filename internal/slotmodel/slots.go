package slotmodel

import "github.com/leat-go/leat/internal/life"

// model is a search through the life of buffers, slots and batches.
type model struct {
	Options
	moves Moves
}

// Explore goes through every interleaving, until one breaks a promise: none with fewer
// steps does. The moves are those that were made until then.
func Explore(o Options) (Result, Moves) {
	if o.Buffer == nil {
		o.Buffer = life.Buffer.Next
	}
	if o.Batch == nil {
		o.Batch = life.Batch.Next
	}
	m := &model{Options: o, moves: Moves{make(map[life.Buffer]map[life.BufferEvent]bool), make(map[life.Batch]map[life.BatchEvent]bool)}}
	for b := range life.Quarantined + 1 {
		m.moves.Buffers[b] = make(map[life.BufferEvent]bool)
	}
	for b := range life.Leased + 1 {
		m.moves.Batches[b] = make(map[life.BatchEvent]bool)
	}
	sp := space[state]{steps: m.steps(), unfinished: m.unfinished, broken: func(s *state) string { return s.broken.String() }}
	return sp.explore(m.initial()), m.moves
}

// steps are all there are.
func (m *model) steps() []step[state] {
	all := []step[state]{
		m.get, m.gather, m.another, m.enough, m.endUploader, m.land, m.landFails,
		m.next, m.handOverFails, m.seeEnd, m.stop, m.discard, m.reopen, m.end, m.lateRecord, m.lateBack,
	}
	for id := range int8(streams) {
		all = append(all, func(s *state) (note, bool) { return m.advance(s, id) })
	}
	for c := range int8(m.Shape.Computes) {
		all = append(all, func(s *state) (note, bool) { return m.lease(s, compute+c) })
	}
	for b := range int8(m.Shape.Buffers) {
		all = append(all,
			func(s *state) (note, bool) { return m.fill(s, b) },
			func(s *state) (note, bool) { return m.readFails(s, b) },
			func(s *state) (note, bool) { return m.hang(s, b) },
			func(s *state) (note, bool) { return m.putBack(s, b) },
			func(s *state) (note, bool) { return m.comeBack(s, b) })
	}
	for fails := range int8(uploadCalls + 1) {
		all = append(all, func(s *state) (note, bool) { return m.upload(s, fails, maxTogether) })
	}
	for passed := range int8(m.Shape.Together) { // where the run is told to end meanwhile
		all = append(all, func(s *state) (note, bool) { return m.upload(s, 0, passed) })
	}
	for w := range int8(m.Shape.Slots * m.Shape.Together) {
		all = append(all,
			func(s *state) (note, bool) { return m.release(s, w, false) },
			func(s *state) (note, bool) { return m.release(s, w, true) })
	}
	return all
}

// mayFail reports whether f may happen now, and then it has.
func (m *model) mayFail(s *state, f Fault, possible bool) bool {
	if m.Fault != f || s.faulted || !possible {
		return false
	}
	s.faulted = true
	return true
}

// clear makes a buffer available to producers, without what was in it.
func (s *state) clear(b int8) {
	if is := s.buffers[b].life; is != life.Free {
		s.violate(notFree, b, int8(is))
		return
	}
	s.buffers[b] = buffer{life: s.buffers[b].life, writer: s.buffers[b].writer}
	s.free.push(b)
}
