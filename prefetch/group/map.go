package group

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A Work submits to b's Stream the work that reads b and writes out, as a prefetch.Step
// does, on the device of that number in the order of NewPool's streams. It is called for
// several devices at once, each on a goroutine of its own.
type Work func(device int, b prefetch.Batch, out prefetch.Fields) error

// Map runs work on what is left of the current epoch and yields the results, in host memory.
// They come in order, or with o.AsFinished as the devices are done with them, those of one
// device in its order. o.Slots is the number of results under way on each device; as many of
// each, which come before their turn, are kept in ordinary memory, so that no device waits
// for a slower one.
//
// A device that fails is left out from then on, and Lost tells of it: what it had not
// given is done again by others, and every result comes once. If none is left the range ends
// with a *DeviceError for each of them. Any other error, a sample's or work's own, comes
// behind all results before it, as a *DeviceError too, and ends the range.
//
// Leaving the loop, whatever the way, stops and joins all that works ahead; the position is
// then as State says.
func (p *Pool) Map(ctx context.Context, o prefetch.Output, work Work) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		m, err := startSharing(ctx, p, o, work)
		if err != nil {
			yield(Result{}, err)
			return
		}
		if m == nil { // nothing is left
			return
		}
		defer m.stop()
		for {
			h, err := m.next(ctx)
			if err != nil {
				yield(Result{}, err)
				return
			}
			if h == nil || !m.lend(h, yield) {
				return
			}
		}
	}
}

// startSharing begins a Map; it is nil if no step is left.
func startSharing(ctx context.Context, p *Pool, o prefetch.Output, work Work) (*sharing, error) {
	switch {
	case work == nil:
		return nil, &prefetch.OptionError{Option: "work", Value: "nil", Want: "a function"}
	case p.isClosed():
		return nil, prefetch.ErrClosed
	case !p.turn.TryLock():
		return nil, prefetch.ErrBusy
	}
	m, err := newSharing(ctx, p, o, work)
	if m == nil || err != nil {
		p.turn.Unlock()
		return nil, err
	}
	p.mu.Lock()
	p.current = m
	p.mu.Unlock()
	for i := range p.members {
		if !m.shares.devices[i].out {
			m.working.Go(func() { m.work(i) })
		}
	}
	return m, nil
}

// newSharing is a Map that has not begun.
func newSharing(ctx context.Context, p *Pool, o prefetch.Output, work Work) (*sharing, error) {
	at := p.at()
	if epochs := p.loader.Options().Epochs; epochs > 0 && at.Epoch >= epochs {
		return nil, nil
	}
	layout, err := loader.NewLayout(o.Fields, p.loader.BatchSize())
	if err != nil {
		return nil, err
	}
	m := &sharing{
		pool: p, output: o, call: work, began: time.Now(), start: at,
		seats: make([]seat, len(p.members)), wake: make(chan struct{}, 1),
	}
	for _, f := range layout.Fields() {
		m.names = append(m.names, f.Name)
	}
	// What a device gives out of order is in its order here.
	m.output.AsFinished = false
	if m.keeps = o.Slots; m.keeps < 1 {
		m.keeps = 4
	}
	m.ctx, m.cancel = context.WithCancel(ctx)
	steps, _ := p.loader.BatchesFrom(at)
	m.shares = shares{limit: steps, inOrder: !o.AsFinished, devices: make([]share, len(p.members)), undealt: make([]int, 0, 2*farthest)}
	plan := p.plan.Devices[0]
	m.shares.ahead = plan.HostSlots + plan.Depth*plan.BatchesPerCopy
	most := (m.keeps + m.shares.ahead) * len(p.members) // a device keeps what comes before its turn, and what it has in hand
	m.kept, m.spare = make([]*held, 0, most), make([]*held, 0, most)

	p.mu.Lock()
	defer p.mu.Unlock()
	p.from, p.behind = at, 0
	var lost []error
	for i := range m.seats {
		m.seats[i] = seat{held: held{device: i}, asks: make(chan struct{}, 1), gives: make(chan struct{}, 1)}
		d := &m.shares.devices[i]
		d.took, d.rough = p.tallies[i].StepTime, true
		d.times = [3]time.Duration{d.took, d.took, d.took}
		if err := p.tallies[i].Lost; err != nil {
			d.out = true
			lost = append(lost, err)
		}
	}
	if len(lost) == len(p.members) {
		return nil, errors.Join(lost...)
	}
	err, p.late = p.late, nil
	return m, err
}
