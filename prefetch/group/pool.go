package group

import (
	"context"
	"errors"
	"sync"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/hold"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A Pool has several devices share the batches of a loader: each takes whole batches, the
// faster ones more of them. NewPool makes one; the caller owns it until Close.
//
// One goroutine at a time consumes it, by Map. Stats, Plan, Epoch, State, Lost and Close may be
// called from any goroutine at any time. So may Seek and Restore, which return
// prefetch.ErrBusy during a Map.
type Pool struct {
	loader  *loader.Loader
	streams []*device.Stream
	members []*prefetch.Prefetcher
	names   []string
	plan    Plan

	turn      hold.Gate // held by a Map, and by who moves the place
	closed    chan struct{}
	closeOnce hold.Once
	counters  counters

	mu      sync.Mutex
	from    loader.Cursor // where the Map under way began, or the last one
	behind  int           // so many steps behind it is the place
	current *sharing      // the Map under way
	tallies []Share
	late    error
}

// NewPool makes a Pool of the devices of the streams, for work on these streams, which stay
// the caller's. ld's batches are whole ones, each for one device; its samples have numbers
// (a loader.Dataset). o is as for New: a budget for pinned memory is that of all devices
// together.
//
// All memory, streams and events are made here, and by the first Map; nothing runs before it.
func NewPool(streams []*device.Stream, ld *loader.Loader, o prefetch.Options) (*Pool, error) {
	if err := checkStreams(streams, ld); err != nil {
		return nil, err
	}
	p := &Pool{
		loader: ld, streams: streams, turn: hold.NewGate(), closed: make(chan struct{}),
		tallies: make([]Share, len(streams)),
	}
	parts, err := ld.Deal(len(streams), p.next)
	if err != nil {
		return nil, err
	}
	p.members, p.names, err = newMembers(streams, parts, o)
	if err != nil {
		return nil, err
	}
	p.plan = sumPlans(p.members)
	p.plan.BatchSize, p.plan.BatchBytes = ld.BatchSize(), ld.Layout().Size()
	p.plan.note(ld, o)
	return p, nil
}

// Epoch is the epoch of the cursor: that of the next batch to be delivered.
func (p *Pool) Epoch() int { return p.at().Epoch }

// State is the place behind the last result delivered, or with prefetch.Output.AsFinished
// behind the first results of which none is missing. Any number of devices, and a Prefetcher,
// go on from it.
func (p *Pool) State() loader.State { return p.loader.StateAt(p.at()) }

// at is the place, at an epoch's end the beginning of the next.
func (p *Pool) at() loader.Cursor {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.loader.Advance(p.from, p.behind)
	if !ok {
		panic("group: a Pool has delivered more steps than there are")
	}
	return p.loader.StateAt(at).Cursor()
}

// Restore continues where st was taken. It fails, and changes nothing, if st is of another
// dataset, seed or version, or during a Map.
func (p *Pool) Restore(st loader.State) error {
	if err := p.loader.Check(st); err != nil {
		return err
	}
	return p.alone(func() { p.from, p.behind = p.loader.StateAt(st.Cursor()).Cursor(), 0 })
}

// Seek moves the cursor to a sample position of an epoch, both from 0. It fails, and changes
// nothing, if there is no such place, or during a Map.
func (p *Pool) Seek(epoch int, position int64) error {
	st := p.loader.StateAt(loader.Cursor{})
	st.Epoch, st.Position = epoch, position
	return p.Restore(st)
}

// alone moves the place while there is no Map.
func (p *Pool) alone(f func()) error {
	if p.isClosed() {
		return prefetch.ErrClosed
	}
	if !p.turn.TryLock() {
		return prefetch.ErrBusy
	}
	defer p.turn.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	return nil
}

// Lost are the devices that have failed, in their order: what each was working on others have
// done, or the Map has ended.
func (p *Pool) Lost() (lost []*DeviceError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.tallies {
		if t.Lost != nil {
			lost = append(lost, t.Lost)
		}
	}
	return lost
}

// lose notes that a device has failed.
func (p *Pool) lose(i int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tallies[i].Lost == nil {
		p.tallies[i].Lost = &DeviceError{Index: i, Device: p.names[i], Err: err}
	}
}

// isLost reports whether a device has failed.
func (p *Pool) isLost(i int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tallies[i].Lost != nil
}

// hasEnded reports whether a device will never work again, whatever an error says of it.
func (p *Pool) hasEnded(i int) bool {
	_, err := p.streams[i].Idle()
	return errors.Is(err, device.ErrFault) || errors.Is(err, device.ErrClosed)
}

// Plan says what was decided. It doesn't change.
func (p *Pool) Plan() Plan { return p.plan }

// next deals a step to device i; see loader.Loader.Deal.
func (p *Pool) next(ctx context.Context, i, epoch int) (loader.Cursor, bool) {
	p.mu.Lock()
	m := p.current
	p.mu.Unlock()
	if m == nil || m.start.Epoch != epoch {
		return loader.Cursor{}, false
	}
	return m.deal(ctx, i)
}

func (p *Pool) isClosed() bool {
	select {
	case <-p.closed:
		return true
	default:
		return false
	}
}

// Close closes the pipelines of all devices at once; see prefetch.Prefetcher.Close. A Map
// under way ends with prefetch.ErrClosed. What is on a device that has failed stays there,
// and the error says so.
func (p *Pool) Close() error {
	return p.closeOnce.Do(func() error {
		close(p.closed)
		err := closeMembers(p.members, p.names)
		p.mu.Lock()
		defer p.mu.Unlock()
		return errors.Join(err, p.late)
	})
}
