package group

import (
	"context"
	"time"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A seat is where a device's goroutine hands a result over.
type seat struct {
	held                  // the result, while
	taken   bool          // the loop has it, or
	present bool          // is to get it
	number  int64         // of the hand-over
	kept    int           // results of the device that are kept
	blocked time.Duration // how long the last hand-over took
	denied  bool          // deal waits though the device has room
	asks    chan struct{} // has deal look again
	gives   chan struct{} // has hand look again
	again   *time.Timer   // deal's
}

// deal waits for the step that device i is to take next. ok is false if there will be none.
func (m *sharing) deal(ctx context.Context, i int) (at loader.Cursor, ok bool) {
	s := &m.seats[i]
	m.mu.Lock()
	defer m.mu.Unlock()
	for pause := time.Duration(0); ; {
		if ctx.Err() != nil || m.stopped || m.complete() || m.shares.devices[i].out {
			return loader.Cursor{}, false
		}
		step, ok := m.shares.take(i, m.now())
		if s.denied = !ok && !m.shares.full(i); ok {
			m.askDenied()
			return m.pool.loader.Advance(m.start, step)
		}
		if s.denied {
			pause = max(2*pause, m.shares.estimate(i))
		}
		m.mu.Unlock()
		s.await(ctx, pause)
		m.mu.Lock()
	}
}

// askDenied has those deals look again that wait for what other devices do. The caller
// holds m.mu.
func (m *sharing) askDenied() {
	for i := range m.seats {
		if m.seats[i].denied {
			poke(m.seats[i].asks)
		}
	}
}

// await waits until somebody tells, or ctx ends. What others are expected to do is looked at
// again after a pause, because they may be late.
func (s *seat) await(ctx context.Context, pause time.Duration) {
	if pause == 0 {
		select {
		case <-s.asks:
		case <-ctx.Done():
		}
		return
	}
	if s.again == nil {
		s.again = time.NewTimer(pause)
	} else {
		s.again.Reset(pause)
	}
	defer s.again.Stop()
	select {
	case <-s.asks:
	case <-s.again.C:
	case <-ctx.Done():
	}
}

// complete reports whether the results of all steps are here. The caller holds m.mu.
func (m *sharing) complete() bool {
	if m.shares.left() > 0 {
		return false
	}
	for i := range m.shares.devices {
		for _, step := range m.shares.devices[i].queue {
			if step < m.shares.limit {
				return false
			}
		}
	}
	return true
}

// hand gives the loop a result of device i, and waits until its memory is free again. It
// reports whether the Map goes on.
func (m *sharing) hand(i int, r prefetch.Result) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, began := &m.seats[i], m.now()
	free := 8*s.blocked <= began-m.shares.devices[i].last
	step := m.shares.arrived(i, began, free)
	m.pool.tally(i, m.shares.devices[i].took)
	if step >= m.shares.limit {
		poke(s.asks)
		m.askDenied()
		return !m.stopped
	}
	s.held.step, s.held.result = step, r
	s.present, s.number = true, m.number
	m.number++
	poke(s.asks)
	m.askDenied()
	if !m.shares.inOrder || step == m.turn {
		poke(m.wake)
	}
	for s.present && !m.stopped || s.taken {
		if !s.taken && m.early(i, step) {
			m.keep(s)
			break
		}
		m.mu.Unlock()
		<-s.gives
		m.mu.Lock()
	}
	s.blocked = m.now() - began
	return !m.stopped
}

// early reports whether device i should not wait with a result for its turn. The caller
// holds m.mu.
func (m *sharing) early(i, step int) bool {
	switch {
	case !m.shares.inOrder || step == m.turn:
		return false
	case m.seats[i].kept < m.keeps:
		return true
	}
	// Whose turn it is may be the device's own work to come, or nobody's yet.
	return m.find(m.turn) == nil && !m.shares.elsewhere(i, m.turn)
}

// keep copies a result that is before its turn. The caller holds m.mu.
func (m *sharing) keep(s *seat) {
	var h *held
	if last := len(m.spare) - 1; last >= 0 {
		h, m.spare = m.spare[last], m.spare[:last]
	} else {
		h = new(held)
	}
	h.keep(&s.held, m.names)
	m.kept = append(m.kept, h)
	s.present = false
	m.keeping(s.device, 1)
}

// keeping counts the results of device i that are kept. The caller holds m.mu.
func (m *sharing) keeping(i, more int) {
	m.seats[i].kept += more
	m.shares.devices[i].early = m.seats[i].kept >= m.keeps
}

// find is the result of a step that is here and not delivered, nil if there is none. The
// caller holds m.mu.
func (m *sharing) find(step int) *held {
	for i := range m.seats {
		if s := &m.seats[i]; s.present && s.held.step == step {
			return &s.held
		}
	}
	for _, h := range m.kept {
		if h.step == step {
			return h
		}
	}
	return nil
}

// first is the result that has waited longest, nil if there is none. The caller holds m.mu.
func (m *sharing) first() (h *held) {
	number := int64(0)
	for i := range m.seats {
		if s := &m.seats[i]; s.present && (h == nil || s.number < number) && s.held.step < m.shares.limit {
			h, number = &s.held, s.number
		}
	}
	return h
}
