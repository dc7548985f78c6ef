package slotmodel

import "github.com/leat-go/leat/internal/life"

// filled is the buffer in which the batch that comes next in order is filled, or failed.
func (s *state) filledNext() (at int8, ok bool) {
	for at := range int8(maxBuffers) {
		if b := &s.buffers[at]; b.life == life.Held && b.filled && b.batch == s.uploader.next {
			return at, true
		}
	}
	return 0, false
}

// gather takes the batch that comes next in order.
func (m *model) gather(s *state) (note, bool) {
	u := &s.uploader
	if u.at != idle || u.gathered.n > 0 {
		return impossible()
	}
	return m.take(s)
}

// another takes one more, which is to travel with it.
func (m *model) another(s *state) (note, bool) {
	u := &s.uploader
	if u.at != idle || u.gathered.n == 0 {
		return impossible()
	}
	return m.take(s)
}

func (m *model) take(s *state) (note, bool) {
	u := &s.uploader
	at, ok := s.filledNext()
	if !ok || s.buffers[at].failed {
		return impossible()
	}
	u.gathered.push(at)
	u.next++
	if int(u.gathered.n) == m.Shape.Together {
		u.at = sending
	}
	return note{"the uploader takes batch %d", u.next - 1}, true
}

// noMore reports whether no batch comes any more.
func (m *model) noMore(s *state) bool {
	u := &s.uploader
	at, ok := s.filledNext()
	return s.cancelled || u.next == int8(m.Shape.Batches)+1 || ok && s.buffers[at].failed || s.fault && u.next == s.opened+1
}

// enough ends the gathering of a copy that isn't full: nothing more comes, or the reader
// has taken all there was. Whether the next batch was filled just then is all the same.
func (m *model) enough(s *state) (note, bool) {
	u := &s.uploader
	if u.at != idle || u.gathered.n == 0 || s.items.n > 0 && !m.noMore(s) {
		return impossible()
	}
	u.at = sending
	return note{"the uploader needs a slot for %d", u.gathered.n}, true
}

// freeSlot is where in the ring the slot is that is filled next: the first that is free,
// or with several compute streams the first that they have read.
func (m *model) freeSlot(s *state) (at int8, ok bool) {
	for i := range s.ring.n {
		if m.Shape.Computes == 1 || m.Mistake == TakeUnread || s.slots[s.ring.at[i]].isRead() {
			return i, true
		}
	}
	return 0, false
}

func (d *slot) isRead() bool {
	for _, r := range d.reads {
		if r.open > 0 || !r.done.complete() {
			return false
		}
	}
	return true
}

// The calls of an upload that may fail, from 1.
const (
	callWait         = 1 + iota // for a read
	callCopy                    // the first
	callCopyAgain               // the second, where there is one
	callRecordCopied            //
	callRecordFilled            //
	uploadCalls      = callRecordFilled
)

// upload submits what brings the gathered batches into a slot, and passes them on. It is
// one step, since what streams and recycler do in between they can do after it too. The
// call of that number fails, if it isn't 0; and only so many batches are passed before the
// run is told to end.
func (m *model) upload(s *state, fails, passed int8) (note, bool) {
	u := &s.uploader
	n := u.gathered.n
	if u.at != sending || passed < maxTogether && (!s.cancelled || passed >= n) {
		return impossible()
	}
	at, ok := m.freeSlot(s)
	if !ok {
		return impossible()
	}
	group := u.gathered
	together := n == 1 || group.at[1] == group.at[0]+1 && group.at[0]%2 == 0 // in one piece of memory
	if fails > 0 && !m.mayFail(s, UploadFails, fails != callCopyAgain || !together) {
		return impossible()
	}
	number := s.ring.remove(at)
	d, first := &s.slots[number], u.next-n
	u.gathered = queue{}
	for i := range n {
		d.windows[i].batch = first + i
		m.batch(s, &d.windows[i], life.Fill)
	}
	sent := m.submit(s, number, group, first, fails, together)
	if fails > 0 {
		m.uploadFails(s, number, group, first, sent)
		return note{"the upload of batch %d fails", first}, true
	}
	u.at = idle
	if m.Mistake == SendBeforeRecord {
		u.at, u.record = late, group.at[n-1]+1
	}
	d.waiting, d.left = n, n
	for i := range n {
		m.batch(s, &d.windows[i], life.Load)
	}
	for i := range n {
		if i < passed {
			s.items.push(m.Shape.window(number, i))
		} else {
			m.discardWindow(s, m.Shape.window(number, i))
			u.at = ended
		}
	}
	return note{"batch %d is uploaded, perhaps with the next", first}, true
}

// submit makes the calls up to the one that fails, and reports whether the buffers are in
// flight by then.
func (m *model) submit(s *state, number int8, group queue, first, fails int8, together bool) (sent bool) {
	d, n := &s.slots[number], group.n
	if fails == callWait {
		return false
	}
	for i := range d.reads {
		r := &d.reads[i]
		if !r.begun || m.Mistake == NoWaitRead {
			continue
		}
		if m.Shape.Computes > 1 && !r.done.complete() {
			s.violate(heldUp, first, 0)
		}
		s.issue(copies, op{kind: wait, bound: r.done}) // overwrite after read
	}
	d.reads = [streams]read{}
	if fails == callCopy {
		return false
	}
	last := &s.buffers[group.at[n-1]]
	early := m.Mistake == RecordTooEarly
	if together {
		s.issue(copies, op{kind: copyH2D, buffer: group.at[0], n: n, slot: number, batch: first})
	} else {
		for i := range n {
			if i == 1 && early {
				s.record(copies, &last.copied)
			}
			if i == 1 && fails == callCopyAgain {
				return false
			}
			s.issue(copies, op{kind: copyH2D, buffer: group.at[i], n: 1, slot: number, window: i, batch: first + i})
		}
	}
	if fails == callRecordCopied {
		return false
	}
	if m.Mistake != NoRecordCopied && m.Mistake != SendBeforeRecord && !(early && !together) {
		s.record(copies, &last.copied) // refill after copied
	}
	for i := range n {
		m.buffer(s, group.at[i], life.Send)
		s.buffers[group.at[i]].behind = group.at[n-1]
		s.inFlight.push(group.at[i])
	}
	if fails == callRecordFilled {
		return true
	}
	if m.Mistake != NoRecordFilled {
		s.record(copies, &d.filled) // read after filled
	}
	s.settle()
	return true
}

// uploadFails takes slot and buffers out of use: what was submitted is unknown.
func (m *model) uploadFails(s *state, number int8, group queue, first int8, sent bool) {
	d := &s.slots[number]
	for i := range group.n {
		m.batch(s, &d.windows[i], life.Fail)
		switch {
		case sent:
		case m.Mistake == PutDoubtful:
			m.buffer(s, group.at[i], life.Put)
			s.clear(group.at[i])
		default:
			m.buffer(s, group.at[i], life.Doubt)
		}
	}
	m.backAfterFault(s, number)
	s.settle()
	s.failed = true
	s.uploader.next = first
	if m.Mistake == SkipFailed {
		s.uploader.next = first + group.n
	}
	s.uploader.at = ended
}

// backAfterFault takes a slot out of use until the streams have come to rest.
func (m *model) backAfterFault(s *state, number int8) {
	if s.slots[number].failed = true; m.Mistake == FreeFailed {
		s.slots[number].failed = false
		s.ring.push(number)
	}
}

// lateRecord is Record of copied, behind the time.
func (m *model) lateRecord(s *state) (note, bool) {
	u := &s.uploader
	if u.at != late {
		return impossible()
	}
	s.record(copies, &s.buffers[u.record-1].copied)
	s.settle()
	u.at, u.record = idle, 0
	return note{"copied is recorded", 0}, true
}

// endUploader ends the uploader, which gives back what it has gathered and found no slot
// for.
func (m *model) endUploader(s *state) (note, bool) {
	u := &s.uploader
	switch {
	case u.at == sending && s.cancelled:
		for u.gathered.n > 0 {
			b := u.gathered.pop()
			m.buffer(s, b, life.Put)
			s.clear(b)
		}
	case u.at == idle && u.gathered.n == 0 && m.noMore(s):
		at, ok := s.filledNext()
		s.failed = s.failed || ok && s.buffers[at].failed || s.fault && u.next <= int8(m.Shape.Batches)
	default:
		return impossible()
	}
	u.at = ended
	return note{"the uploader ends before batch %d", u.next}, true
}
