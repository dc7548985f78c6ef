package slotmodel

import "github.com/leat-go/leat/internal/life"

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
