package waitmodel

import "time"

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
	for i := range m.batches[:m.opened] {
		b := &m.batches[i]
		if b.claimed == b.rows {
			continue
		}
		for j := range m.workers {
			if w := &m.workers[j]; w.idle {
				*w = worker{batch: i, until: m.now + m.Read(i*m.Batch+b.claimed)}
				b.claimed++
				return true
			}
		}
		return false
	}
	return false
}

// upload gathers filled batches and uploads them, or without a device passes them on.
func (m *model) upload() bool {
	d := m.Device
	if d == nil {
		return false
	}
	if m.blocked != nil {
		if !m.blocked.done {
			return false
		}
		m.blocked = nil
		m.deliverable()
		return true
	}
	if m.gather() {
		return true
	}
	if len(m.gathered) == 0 || m.gathering() || len(m.freeSlots) == 0 {
		return false
	}
	s := m.takeSlot()
	if s.use != nil {
		m.copies.push(&op{kind: wait, other: s.use})
	}
	rows := 0
	for _, i := range m.gathered {
		rows += m.batches[i].rows
		m.batches[i].slot = s
		m.result.Times[i].Placed = m.now
	}
	s.left = len(m.gathered)
	started, copying := &op{kind: record}, &op{kind: copying, cost: d.Copy(rows), batches: m.gathered}
	m.copies.push(started)
	m.copies.push(copying)
	m.uploads = append(m.uploads, &upload{started: started, copy: copying})
	m.result.Uploads++
	for _, i := range m.gathered {
		m.batches[i].copy = copying
	}
	if d.Blocking {
		m.blocked = copying
		return true
	}
	m.deliverable()
	return true
}

// deliverable passes what was uploaded to the consumer.
func (m *model) deliverable() {
	m.ready = append(m.ready, m.gathered...)
	m.gathered = nil
}

// gather takes one more batch into the next upload.
func (m *model) gather() bool {
	if m.taken == m.opened || !m.batches[m.taken].filled() || len(m.gathered) > 0 && m.closed() {
		return false
	}
	m.gathered = append(m.gathered, m.taken)
	m.taken++
	return true
}

// gathering reports whether the uploader waits for one more batch.
func (m *model) gathering() bool { return !m.closed() }

// closed reports whether what is gathered travels as it is.
func (m *model) closed() bool {
	return len(m.gathered) == m.Device.BatchesPerCopy || // it is full
		m.taken == len(m.batches) || // nothing more comes
		len(m.ready) == 0 && !(m.taken < m.opened && m.batches[m.taken].filled()) // the consumer has nothing else
}

// wantsSlot reports whether the uploader waits for a device slot.
func (m *model) wantsSlot() bool {
	return m.Device != nil && m.blocked == nil && len(m.gathered) > 0 && !m.gathering() && len(m.freeSlots) == 0
}

// takeSlot is the first free slot whose last use is complete, or else the one that has been
// free longest.
func (m *model) takeSlot() *slot {
	take := 0
	for i, s := range m.freeSlots {
		if s.use == nil || s.use.done {
			take = i
			break
		}
	}
	s := m.freeSlots[take]
	m.freeSlots = append(m.freeSlots[:take:take], m.freeSlots[take+1:]...)
	return s
}

// consume ends a body whose time is up, or delivers the batch that Next waits for.
func (m *model) consume() bool {
	c := &m.consumer
	if c.done {
		return false
	}
	if c.inBody {
		last := c.next - 1
		if c.until == never && m.batches[last].step.done {
			c.until = m.now + m.Body(last)
			return true
		}
		if c.until > m.now {
			return false
		}
		c.inBody = false
		if m.Released == nil {
			m.giveBack(last)
		}
		return true
	}
	switch {
	case c.next == len(m.batches):
		c.done = true
		m.result.Ended = m.now
		return true
	case m.Device != nil && len(m.ready) == 0, m.Device == nil && (c.next >= m.opened || !m.batches[c.next].filled()):
		return false
	}
	m.deliver(c.next)
	c.next++
	return true
}

// deliver hands a batch over and submits its step.
func (m *model) deliver(i int) {
	c, b := &m.consumer, &m.batches[i]
	m.result.Times[i].Delivered = m.now
	c.inBody, c.until = true, never
	if d := m.Device; d != nil {
		m.ready = m.ready[1:]
		m.reach(b)
		m.compute.push(&op{kind: wait, other: b.copy})
		b.step = &op{kind: kernel, cost: d.Step(i), batches: []int{i}}
		m.compute.push(b.step)
		if d.Synchronize {
			return
		}
	}
	c.until = m.now + m.Body(i)
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
	if b.slot.left--; b.slot.left == 0 {
		b.slot.use = &op{kind: record}
		m.compute.push(b.slot.use)
		m.freeSlots = append(m.freeSlots, b.slot)
	}
}
