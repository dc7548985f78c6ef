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
	start  loader.Cursor // the place of step 0

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
	if err := errors.Join(pf.Stop(), pf.Seek(m.start.Epoch, 0)); err != nil {
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
		m.keeping(h.device, -1)
	} else {
		m.seats[h.device].present, m.seats[h.device].taken = false, false
	}
	for i := range m.seats { // the turn is another one's
		if s := &m.seats[i]; s.present || i == h.device {
			poke(s.gives)
		}
	}
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
