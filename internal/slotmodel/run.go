package slotmodel

import "github.com/leat-go/leat/internal/life"

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
