package group

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A sharing is one Map of a Pool under way. Its goroutines are one for each device, which
// ranges over the device's own Map; stop joins them. The loaders' dispatchers come to deal.
type sharing struct {
	pool   *Pool
	output prefetch.Output
	call   Work
	names  []string // of a result's fields
	keeps  int      // how many results of a device may be kept
	began  time.Time
	epoch  int
	start  loader.State // the place of step 0

	ctx     context.Context // what the devices' Maps run under
	cancel  context.CancelFunc
	working sync.WaitGroup
	wake    chan struct{} // has the loop look again

	mu      sync.Mutex
	shares  shares
	seats   []seat
	kept    []*held // results before their turn
	spare   []*held
	turn    int // how many steps are delivered of which none is missing: the next one's number
	beyond  map[int]struct{}
	stopped bool
	failure error // of the step shares.limit
	number  int64 // of hand-overs
}

// A seat is where a device's goroutine hands a result over.
type seat struct {
	held                  // the result, while
	taken   bool          // the loop has it, or
	present bool          // is to get it
	number  int64         // of the hand-over
	kept    int           // results of the device that are kept
	blocked time.Duration // how long the last hand-over took
	asks    chan struct{} // has deal look again
	gives   chan struct{} // has hand look again
	again   *time.Timer   // deal's
}

// now is the time since the Map began.
func (m *sharing) now() time.Duration { return time.Since(m.began) }

// tell has everybody look again. The caller holds m.mu.
func (m *sharing) tell() {
	poke(m.wake)
	for i := range m.seats {
		poke(m.seats[i].asks)
		poke(m.seats[i].gives)
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
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
		if step, ok := m.shares.take(i, m.now()); ok {
			m.tell()
			span, err := m.pool.loader.Span(m.start, step, step)
			return span.From, err == nil
		}
		pause = max(2*pause, m.shares.estimate(i))
		m.mu.Unlock()
		s.await(ctx, pause)
		m.mu.Lock()
	}
}

// await waits until somebody tells, or ctx ends. What others are expected to do is looked at
// again after a pause, because they may be late.
func (s *seat) await(ctx context.Context, pause time.Duration) {
	if s.again == nil {
		s.again = time.NewTimer(time.Hour)
	}
	s.again.Stop()
	if pause > 0 {
		s.again.Reset(pause)
	}
	select {
	case <-s.asks:
	case <-s.again.C:
	case <-ctx.Done():
	}
	s.again.Stop()
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

// work is the goroutine of device i.
func (m *sharing) work(i int) {
	for m.wanted(i) {
		m.ended(i, m.pass(i))
	}
}

// wanted reports whether device i may have something to do.
func (m *sharing) wanted(i int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.stopped && !m.complete() && !m.shares.devices[i].out
}

var errLeft = errors.New("group: the Map is over")

// pass has device i work on what it is dealt.
func (m *sharing) pass(i int) error {
	pf := m.pool.members[i]
	if err := errors.Join(pf.Stop(), pf.Seek(m.epoch, 0)); err != nil {
		return err
	}
	step := func(b prefetch.Batch, out prefetch.Fields) error { return m.call(i, b, out) }
	for r, err := range pf.Map(m.ctx, m.output, step) {
		if err != nil {
			return err
		}
		if !m.hand(i, r) {
			return errLeft
		}
	}
	return nil
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
		return !m.stopped
	}
	s.held.step, s.held.result = step, r
	s.present, s.number = true, m.number
	m.number++
	m.tell()
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
	s.kept++
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

// ended deals with the end of device i's Map: all is done, or something has failed.
func (m *sharing) ended(i int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.tell()
	if m.stopped || m.ctx.Err() != nil || m.pool.isClosed() {
		m.shares.giveBack(i, true)
		return
	}
	if err == nil {
		return
	}
	if m.pool.hasEnded(i) {
		m.pool.lose(i, err)
		m.shares.giveBack(i, true)
		return
	}
	step := m.turn // nothing was dealt: it is of no step
	if queue := m.shares.devices[i].queue; len(queue) > 0 {
		step = queue[0]
	}
	if step < m.shares.limit {
		m.shares.limit, m.failure = step, at(m.pool.names, i, err)
	}
	m.shares.giveBack(i, false)
}

// next waits for the next result. It is nil if all are delivered.
func (m *sharing) next(ctx context.Context) (*held, error) {
	began := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		if m.pool.isClosed() {
			return nil, prefetch.ErrClosed
		}
		h := m.first()
		if m.shares.inOrder && m.turn < m.shares.limit {
			h = m.find(m.turn)
		}
		switch {
		case m.turn >= m.shares.limit:
			return nil, m.failure
		case h != nil:
			m.deliver(h)
			m.pool.counters.delivered(time.Since(began))
			return h, nil
		}
		if err := m.noneLeft(); err != nil {
			return nil, err
		}
		m.mu.Unlock()
		select {
		case <-m.wake:
		case <-ctx.Done():
		case <-m.pool.closed:
		}
		m.mu.Lock()
	}
}

// noneLeft is the error of a Map without a device. The caller holds m.mu.
func (m *sharing) noneLeft() error {
	for i := range m.shares.devices {
		if !m.shares.devices[i].out {
			return nil
		}
	}
	var all []error
	for _, lost := range m.pool.Lost() {
		all = append(all, lost)
	}
	return errors.Join(all...)
}

// deliver gives the loop a result: all before the first step that is missing counts as
// delivered. The caller holds m.mu.
func (m *sharing) deliver(h *held) {
	if !h.copied {
		m.seats[h.device].taken = true
	}
	if h.step != m.turn {
		if m.beyond == nil {
			m.beyond = make(map[int]struct{})
		}
		m.beyond[h.step] = struct{}{}
		return
	}
	for there := true; there; _, there = m.beyond[m.turn] {
		delete(m.beyond, m.turn)
		m.turn++
	}
	m.pool.mu.Lock()
	defer m.pool.mu.Unlock()
	m.pool.behind = m.turn
}

// lend is one turn of the loop.
func (m *sharing) lend(h *held, yield func(Result, error) bool) bool {
	began := time.Now()
	defer func() {
		m.pool.counters.body.Add(int64(time.Since(began)))
		m.takeBack(h)
	}()
	return yield(Result{of: h, lap: h.lap.Add(1)}, nil)
}

// takeBack ends the loop's lease of a result.
func (m *sharing) takeBack(h *held) {
	h.lap.Add(1)
	m.mu.Lock()
	defer m.mu.Unlock()
	if h.copied {
		for i, k := range m.kept {
			if k == h {
				m.kept = append(m.kept[:i], m.kept[i+1:]...)
			}
		}
		m.spare = append(m.spare, h)
		m.seats[h.device].kept--
	} else {
		m.seats[h.device].present, m.seats[h.device].taken = false, false
	}
	m.tell()
}

// stop ends all that works ahead, and joins it.
func (m *sharing) stop() {
	m.mu.Lock()
	m.stopped = true
	m.tell()
	m.mu.Unlock()
	m.cancel()
	m.working.Wait()
	p := m.pool
	var late error
	for i, pf := range p.members {
		if err := pf.Stop(); err != prefetch.ErrClosed && err != prefetch.ErrBusy && !p.isLost(i) {
			late = errors.Join(late, at(p.names, i, err))
		}
	}
	p.mu.Lock()
	p.current, p.late = nil, errors.Join(p.late, late)
	p.mu.Unlock()
	p.turn.Unlock()
}
