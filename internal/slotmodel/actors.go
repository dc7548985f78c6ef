package slotmodel

import (
	"fmt"
	"strings"
)

// step is one thing that can happen. It changes s and says what it did, or reports
// that it is not possible now.
type step func(m *model, s *state) (did note, possible bool)

// note says what a step did, in a format for one number or none.
type note struct {
	format string
	number int8
}

func (n note) String() string {
	if !strings.Contains(n.format, "%") {
		return n.format
	}
	return fmt.Sprintf(n.format, n.number)
}

func impossible() (note, bool) { return note{}, false }

// steps are all there are.
func steps() []step {
	all := []step{
		func(_ *model, s *state) (note, bool) { return s.advance(copies) },
		func(_ *model, s *state) (note, bool) { return s.advance(compute) },
		open, upload, uploadFails, recycle, recycleFails, consume, handOverFails, releaseFails, stop,
		discard, settle,
	}
	for h := range hostSlots {
		slot := int8(h)
		all = append(all,
			func(_ *model, s *state) (note, bool) { return fill(s, slot) },
			func(m *model, s *state) (note, bool) { return readFails(m, s, slot) },
			func(m *model, s *state) (note, bool) { return hang(m, s, slot) },
			func(_ *model, s *state) (note, bool) { return putBack(s, slot) })
	}
	return all
}

// fault reports whether f may happen now, and then it has.
func (m *model) fault(s *state, f Fault, possible bool) bool {
	if m.Fault != f || s.faulted || !possible {
		return false
	}
	s.faulted = true
	return true
}

// The producers.

func open(m *model, s *state) (note, bool) {
	if s.stopping || s.failed || s.opened == batches || s.freeHost.n == 0 {
		return impossible()
	}
	h := s.freeHost.pop()
	s.opened++
	s.pending(copies, func(o op) {
		if o.kind == copyH2D && o.host == h {
			s.violate(overwrittenOnHost, s.opened, o.batch)
		}
	})
	slot := &s.host[h]
	slot.use, slot.batch, slot.content = filling, s.opened, poison
	return note{"batch %d is opened", s.opened}, true
}

func fill(s *state, h int8) (note, bool) {
	slot := &s.host[h]
	if slot.use != filling || slot.stuck {
		return impossible()
	}
	slot.use, slot.content = filled, slot.batch
	return note{"batch %d is filled", slot.batch}, true
}

func readFails(m *model, s *state, h int8) (note, bool) {
	slot := &s.host[h]
	if !m.fault(s, ReadFails, slot.use == filling && !s.stopping) {
		return impossible()
	}
	slot.use, slot.failed = filled, true
	return note{"batch %d can't be read", slot.batch}, true
}

func hang(m *model, s *state, h int8) (note, bool) {
	slot := &s.host[h]
	if !m.fault(s, Stuck, slot.use == filling) {
		return impossible()
	}
	slot.stuck = true
	return note{"the producer of batch %d hangs", slot.batch}, true
}

// putBack is the end of a slot that was not uploaded, once the run is joined.
func putBack(s *state, h int8) (note, bool) {
	slot := &s.host[h]
	if !s.stopping || s.uploader.at != ended {
		return impossible()
	}
	switch {
	case slot.use == filling && slot.stuck:
		slot.use = quarantined
		return note{"host slot %d is quarantined", h}, true
	case slot.use == filled:
		s.freeSlot(h)
		return note{"batch %d is not uploaded", slot.batch}, true
	}
	return impossible()
}

func (s *state) freeSlot(h int8) {
	slot := &s.host[h]
	slot.use, slot.failed = free, false
	s.freeHost.push(h)
}

// The uploader.

func upload(m *model, s *state) (note, bool) {
	u := &s.uploader
	switch u.at {
	case idle:
		return gather(s)
	case taken:
		return takeDevice(s)
	case ordered:
		d := &s.device[u.device]
		if d.used && m.Without != WaitConsumed { // P2
			s.issue(copies, op{kind: wait, bound: d.consumed})
		}
		u.at = copying
		return note{"copy waits for consumed %d", u.device}, true
	case copying:
		s.issue(copies, op{kind: copyH2D, host: u.host, device: u.device, batch: u.batch})
		u.at = copied
		return note{"the copy of batch %d is submitted", u.batch}, true
	case copied:
		if m.Without != RecordCopied {
			s.record(copies, &s.host[u.host].copied)
		}
		u.at = released
		return note{"copied %d is recorded", u.host}, true
	case released:
		if m.Without != RecordReady {
			s.record(copies, &s.device[u.device].ready)
		}
		s.host[u.host].use = inFlight
		s.recycling.push(u.host)
		u.at = delivering
		return note{"ready %d is recorded", u.device}, true
	case delivering:
		return deliver(s)
	}
	return impossible()
}

// gather takes the next batch in order, or ends.
func gather(s *state) (note, bool) {
	u := &s.uploader
	if s.stopping || u.batch == batches+1 || s.failed && u.batch == s.opened+1 {
		u.at = ended
		return note{"the uploader ends", 0}, true
	}
	for h := range int8(hostSlots) {
		slot := &s.host[h]
		if slot.use != filled || slot.batch != u.batch {
			continue
		}
		if slot.failed {
			s.failed = true
			s.freeSlot(h)
			u.at = ended
			return note{"the uploader ends before batch %d", u.batch}, true
		}
		slot.use = uploading
		u.at, u.host = taken, h
		return note{"the uploader takes batch %d", u.batch}, true
	}
	return impossible()
}

func takeDevice(s *state) (note, bool) {
	u := &s.uploader
	switch {
	case s.freeDevice.n > 0:
		u.device = s.freeDevice.pop()
		d := &s.device[u.device]
		d.use, d.batch = uploading, u.batch
		u.at = ordered
		return note{"the uploader has device slot %d", u.device}, true
	case s.stopping:
		s.freeSlot(u.host)
		u.at = ended
		return note{"the uploader gives its batch back", 0}, true
	}
	return impossible()
}

func deliver(s *state) (note, bool) {
	u := &s.uploader
	s.device[u.device].use = inFlight
	s.delivered.push(u.device) // with room for all: a run that is stopped is drained
	u.at = idle
	u.batch++
	return note{"batch %d is delivered", u.batch - 1}, true
}

// uploadFails is an error of any of the uploader's calls: how much of it was done
// nobody knows.
func uploadFails(m *model, s *state) (note, bool) {
	u := &s.uploader
	if !m.fault(s, UploadFails, u.at >= ordered && u.at <= released) {
		return impossible()
	}
	s.host[u.host].use, s.device[u.device].use = doubtful, doubtful
	s.failed = true
	u.at = ended
	return note{"the upload of batch %d fails", u.batch}, true
}

// The recycler.

func recycle(m *model, s *state) (note, bool) {
	r := &s.recycler
	switch {
	case r.at == idle && s.recycling.n > 0:
		r.host = s.recycling.at[0]
		if m.Without != SynchronizeCopied {
			r.bound = s.host[r.host].copied
		}
		r.at = taken
		return note{"the recycler waits for copied %d", r.host}, true
	case r.at == taken && s.complete(r.bound):
		s.recycling.pop()
		s.freeSlot(r.host)
		*r = actor{}
		return note{"the recycler frees a host slot", 0}, true
	}
	return impossible()
}

func recycleFails(m *model, s *state) (note, bool) {
	if !m.fault(s, RecycleFails, s.recycler.at == taken) {
		return impossible()
	}
	s.recycler = actor{at: ended}
	s.failed = s.opened < batches // else nobody will want a slot
	return note{"the recycler's event fails", 0}, true
}

// The consumer.

func consume(m *model, s *state) (note, bool) {
	c := &s.consumer
	switch c.at {
	case idle:
		return receive(s)
	case taken:
		if m.Without != WaitReady {
			s.issue(compute, op{kind: wait, bound: s.device[c.device].ready})
		}
		c.at = ordered
		return note{"compute waits for ready %d", c.device}, true
	case ordered:
		s.issue(compute, op{kind: work, device: c.device, batch: c.batch})
		c.at = copied
		return note{"work on batch %d is submitted", c.batch}, true
	case copied:
		if m.Without == RecordBeforeRelease { // P1 upside down
			s.release(c.device)
		} else if m.Without != RecordConsumed {
			s.record(compute, &s.device[c.device].consumed)
		}
		c.at = released
		return note{"consumed %d is recorded", c.device}, true
	case released:
		if m.Without == RecordBeforeRelease {
			s.record(compute, &s.device[c.device].consumed)
		} else {
			s.release(c.device) // P1
		}
		*c = actor{batch: c.batch + 1}
		return note{"batch %d is released", c.batch - 1}, true
	}
	return impossible()
}

func (s *state) release(d int8) {
	s.device[d].use, s.device[d].used = free, true
	s.freeDevice.push(d)
}

// receive takes the next batch, or what there is behind the last.
func receive(s *state) (note, bool) {
	c := &s.consumer
	switch {
	case s.stopping:
		s.told = s.failed
		c.at = ended
		return note{"the consumer leaves", 0}, true
	case s.delivered.n > 0:
		c.device = s.delivered.pop()
		if s.device[c.device].batch != c.batch {
			s.violate(outOfOrder, s.device[c.device].batch, c.batch)
		}
		c.at = taken
		return note{"the consumer gets batch %d", c.batch}, true
	case s.uploader.at == ended:
		s.told = s.failed
		s.stopping = true
		c.at = ended
		return note{"the consumer sees the end", 0}, true
	}
	return impossible()
}

func handOverFails(m *model, s *state) (note, bool) {
	c := &s.consumer
	if !m.fault(s, HandOverFails, c.at == taken) {
		return impossible()
	}
	s.release(c.device) // nobody has used it
	s.failed, s.told, s.stopping = true, true, true
	c.at = ended
	return note{"compute can't wait for ready %d", c.device}, true
}

func releaseFails(m *model, s *state) (note, bool) {
	c := &s.consumer
	if !m.fault(s, ReleaseFails, c.at == copied) {
		return impossible()
	}
	s.device[c.device].use = doubtful
	s.failed, s.stopping = true, true
	*c = actor{batch: c.batch + 1}
	return note{"consumed %d can't be recorded", c.device}, true
}

// stop is Close, or a cancelled context, at any moment; a program with a producer
// that hangs comes to it too.
func stop(m *model, s *state) (note, bool) {
	stuck := m.Fault == Stuck && s.faulted
	if s.stopping || !stuck && !m.fault(s, Stopped, true) {
		return impossible()
	}
	s.stopping = true
	return note{"the run is stopped", 0}, true
}

// discard takes back a batch that was uploaded and never delivered. The next copy
// into its memory is behind the last one on the same stream.
func discard(m *model, s *state) (note, bool) {
	if !s.stopping || s.uploader.at != ended || s.consumer.at != ended || s.delivered.n == 0 {
		return impossible()
	}
	d := s.delivered.pop()
	s.device[d].use = free
	s.freeDevice.push(d)
	return note{"batch %d is discarded", s.device[d].batch}, true
}

// settle takes back what a failed operation left in doubt, when the streams have
// come to rest.
func settle(m *model, s *state) (note, bool) {
	if s.consumer.at != ended || s.uploader.at != ended || !s.resting() {
		return impossible()
	}
	recovered := false
	for h := range int8(hostSlots) {
		if s.host[h].use == doubtful {
			s.freeSlot(h)
			recovered = true
		}
	}
	for d := range int8(deviceSlots) {
		if s.device[d].use == doubtful {
			s.release(d)
			recovered = true
		}
	}
	if s.recycler.at == ended {
		for s.recycling.n > 0 {
			s.freeSlot(s.recycling.pop())
			recovered = true
		}
	}
	return note{"what was in doubt is taken back", 0}, recovered
}
