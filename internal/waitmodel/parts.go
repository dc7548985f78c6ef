package waitmodel

import (
	"slices"
	"time"
)

// Each of these does one thing that a part can do at this instant, and reports false if
// there is none.

// read ends the reads whose time is up.
func (m *model) read() bool {
	for i := range m.workers {
		w := &m.workers[i]
		if w.idle || w.until > m.now {
			continue
		}
		w.idle = true
		b := &m.batches[w.batch]
		b.written++
		if b.filled() {
			m.result.Times[w.batch].Filled = m.now
		}
		return true
	}
	return false
}

// open opens the next batch in a free host slot. The loader asks for it as soon as the one
// before is open.
func (m *model) open() bool {
	if m.opened == len(m.batches) || m.freeHost == 0 {
		return false
	}
	m.freeHost--
	t := m.result.Times
	t[m.opened].Opened = m.now
	if m.opened++; m.opened < len(m.batches) {
		t[m.opened].Asked = m.now
	}
	return true
}

// work gives an idle worker the next row of the first batch that has one.
func (m *model) work() bool {
	w := slices.IndexFunc(m.workers, func(w worker) bool { return w.idle })
	if w < 0 {
		return false
	}
	for i := range m.batches[:m.opened] {
		if b := &m.batches[i]; b.claimed < b.rows {
			m.workers[w] = worker{batch: i, until: m.now + m.Read(b.first+b.claimed)}
			b.claimed++
			return true
		}
	}
	return false
}

// upload gathers filled batches, and sends them when there is a slot.
func (m *model) upload() bool {
	switch {
	case m.Device == nil:
		return false
	case m.sending.slot != nil:
		return m.send()
	case m.gather():
		return true
	case !m.complete:
		return false
	}
	s := m.takeSlot()
	if s == nil {
		return false
	}
	m.complete = false
	m.submit(s)
	return true
}

// gather takes one more batch into the next upload, or finds that it is complete.
func (m *model) gather() bool {
	if m.complete {
		return false
	}
	last := len(m.gathered) - 1
	more := m.taken < m.opened && m.batches[m.taken].filled()
	switch {
	case last >= 0 && (last+1 == m.Device.BatchesPerCopy || m.batches[m.gathered[last]].last || !more && len(m.ready) == 0):
		// It is full, the epoch ends, or the consumer has nothing else.
		m.complete = true
	case more:
		m.gathered = append(m.gathered, m.taken)
		m.taken++
	default:
		return false
	}
	return true
}

// submit submits the copy of what is gathered to a slot, or to the transform's memory, behind
// what still uses that.
func (m *model) submit(s *slot) {
	d := m.Device
	if d.Transform != nil {
		if last := m.raws[0]; last != nil {
			m.push(&m.copies, &op{kind: wait, other: last})
		}
	} else {
		m.overwrite(&m.copies, s)
	}
	rows := 0
	for _, i := range m.gathered {
		rows += m.batches[i].rows
	}
	u := &upload{started: &op{kind: record}, copy: &op{kind: copying, cost: d.Copy(rows), batches: m.gathered}}
	m.push(&m.copies, u.started)
	m.push(&m.copies, u.copy)
	m.uploads = append(m.uploads, u)
	m.result.Uploads++
	for _, i := range m.gathered {
		b := &m.batches[i]
		b.slot, b.copy, b.loaded = s, u.copy, u.copy
		m.result.Times[i].Placed = m.now
	}
	m.sending = sending{slot: s}
	if d.Blocking {
		m.sending.blocked = u.copy
	}
}

// overwrite makes a stream wait for what still uses a slot, which begins a new lap.
func (m *model) overwrite(in *stream, s *slot) {
	for _, r := range s.reads {
		m.push(in, &op{kind: wait, other: r.end})
	}
	s.reads, s.left = nil, len(m.gathered)
}

// send goes on with what is gathered, once the copy is submitted.
func (m *model) send() bool {
	at, t := &m.sending, m.Device.Transform
	copied := m.batches[m.gathered[0]].copy
	switch {
	case at.blocked != nil && !at.blocked.done:
		return false
	case t == nil:
		m.deliverable()
		return true
	case !at.begun:
		at.begun = true
		m.push(&m.transform, &op{kind: wait, other: copied})
		m.overwrite(&m.transform, at.slot)
	case at.until > m.now:
		return false
	default:
		m.push(&m.transform, &op{kind: kernel, cost: t.Kernel(m.gathered[at.applied])})
		at.applied++
	}
	if at.applied < len(m.gathered) {
		at.until = m.now + t.Apply(m.gathered[at.applied])
		return true
	}
	read := &op{kind: record}
	m.push(&m.transform, read)
	m.raws[0], m.raws[1] = m.raws[1], read
	for _, i := range m.gathered {
		m.batches[i].loaded = read
	}
	m.deliverable()
	return true
}

// deliverable passes what was uploaded to the consumer.
func (m *model) deliverable() {
	m.ready = append(m.ready, m.gathered...)
	if m.batches[m.gathered[len(m.gathered)-1]].last {
		m.ready = append(m.ready, epochEnd)
	}
	m.gathered, m.sending = nil, sending{}
}

// lacksSlot reports whether the uploader waits for a device slot and none is free.
func (m *model) lacksSlot() bool { return m.complete && len(m.freeSlots) == 0 }

// takeSlot is the free slot for the next upload. One stream is done with slots in the order in
// which they became free, and the copy may wait for it. Of several streams none is waited
// for while another is done with a slot: it takes the first that is not used any more.
func (m *model) takeSlot() *slot {
	at := 0
	if len(m.computes) > 1 {
		at = slices.IndexFunc(m.freeSlots, func(s *slot) bool { return !s.used() })
	}
	if at < 0 || len(m.freeSlots) == 0 {
		return nil
	}
	s := m.freeSlots[at]
	m.freeSlots = slices.Delete(m.freeSlots, at, at+1)
	return s
}

// consume ends a body whose time is up, or takes what Next waits for.
func (m *model) consume() bool {
	c := &m.consumer
	switch {
	case c.done:
		return false
	case c.inBody:
		return m.endBody()
	case m.Device != nil && len(m.ready) > 0 && m.ready[0] == epochEnd:
		m.ready = m.ready[1:] // what comes next is the next epoch's
	case c.next == len(m.batches):
		c.done = true
		m.result.Ended = m.now
	case m.Device != nil && len(m.ready) == 0, m.Device == nil && (c.next >= m.opened || !m.batches[c.next].filled()):
		return false
	default:
		m.deliver(c.next)
		c.next++
	}
	return true
}

func (m *model) endBody() bool {
	c := &m.consumer
	last := c.next - 1
	switch {
	case c.until == never && m.batches[last].step.done:
		c.until = m.now + m.Body(last)
	case c.until > m.now:
		return false
	default:
		c.inBody = false
		if m.Released == nil {
			m.giveBack(last)
		}
	}
	return true
}

// deliver hands a batch over and submits its step.
func (m *model) deliver(i int) {
	c := &m.consumer
	m.result.Times[i].Delivered = m.now
	c.inBody, c.until = true, m.now+m.Body(i)
	d := m.Device
	if d == nil {
		return
	}
	m.ready = m.ready[1:]
	at := m.nextStream()
	stream, b := &m.computes[at], &m.batches[i]
	m.reach(stream, b.copy)
	m.push(stream, &op{kind: wait, other: b.loaded})
	b.step = &op{kind: kernel, cost: d.Step(i), batches: []int{i}}
	m.push(stream, b.step)
	if d.Synchronize {
		c.until = never
	}
	for j := range b.slot.reads {
		if r := &b.slot.reads[j]; r.stream == at {
			r.batches++
			return
		}
	}
	b.slot.reads = append(b.slot.reads, read{stream: at, batches: 1})
}

// nextStream is the compute stream with the fewest batches that it has not finished, and of
// those the next in turn.
func (m *model) nextStream() int {
	n := len(m.computes)
	best, fewest := 0, -1
	for i := range n {
		stream, batches := (m.turn+i)%n, 0
		for _, s := range m.slots {
			for _, r := range s.reads {
				if r.stream == stream && r.unfinished() {
					batches += r.batches
				}
			}
		}
		if fewest < 0 || batches < fewest {
			best, fewest = stream, batches
		}
	}
	m.turn = (best + 1) % n
	return best
}

// due is when a batch is released by another goroutine.
func (m *model) due(i int) time.Duration { return m.result.Times[i].Delivered + m.Released(i) }

// release has another goroutine release what is due.
func (m *model) release() bool {
	if m.Released == nil {
		return false
	}
	for i := range m.consumer.next {
		if !m.batches[i].back && m.due(i) <= m.now {
			m.giveBack(i)
			return true
		}
	}
	return false
}

// giveBack releases a batch. The last one of a device slot frees it, behind what uses it.
func (m *model) giveBack(i int) {
	b := &m.batches[i]
	b.back = true
	m.result.Times[i].Released = m.now
	if m.Device == nil {
		m.freeHost++
		return
	}
	s := b.slot
	if s.left--; s.left > 0 {
		return
	}
	for j := range s.reads {
		r := &s.reads[j]
		r.end = &op{kind: record}
		m.push(&m.computes[r.stream], r.end)
	}
	m.freeSlots = append(m.freeSlots, s)
}
