package prefetch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/internal/hold"
	"github.com/leat-go/leat/internal/invariants"
	"github.com/leat-go/leat/loader"
)

// A Prefetcher brings a loader's batches to a device, or to a host consumer, ahead
// of their use. New and NewHost make one; the caller owns it until Close.
//
// One goroutine at a time consumes it, by a range, by a Reader or by Map. Stats, Plan,
// Epoch, State, Batch.Release and Close may be called from any goroutine at any time. So
// may Start, Seek, Restore and Quiesce, which return ErrBusy where they would disturb a
// reader.
type Prefetcher struct {
	stages *stages
	ahead  lookahead // from the place where the reader stands

	plan       Plan
	results    *results // made by the first Map
	closeOnce  hold.Once
	unclosed   invariants.Watch
	beforeFree freeings
	unfreed    []*results      // which a reaper could not free; guarded by mu
	reapers    []chan struct{} // each closed when what a Map has left is freed; guarded by mu
}

// New makes a Prefetcher that uploads ld's batches to compute's device for work on
// compute, which stays the caller's. All memory, streams and events are made here,
// within the budgets; nothing runs before Start or the first Open.
func New(compute *device.Stream, ld *loader.Loader, o Options) (*Prefetcher, error) {
	if compute == nil {
		return nil, &OptionError{Option: "compute", Value: "nil", Want: "a stream; NewHost is the form without a device"}
	}
	dev := compute.Device()
	return newPrefetcher(ld, o, func() (*stages, error) {
		m := machine{gpu: dev.Properties().Kind != "cpu"}
		var err error
		if o.Memory.DeviceBytes == 0 {
			if m.free, _, err = dev.Memory(); err != nil {
				return nil, err
			}
		}
		return newStages(dev, dev, compute, ld, o, m)
	})
}

// NewHost makes a Prefetcher whose consumer reads the pinned memory itself: there is no
// copy, and Release gives it straight back to the producers. Streams, BatchesPerCopy and
// DeviceBytes have no meaning, and Depth only with a Transform.
func NewHost(ld *loader.Loader, o Options) (*Prefetcher, error) {
	return newPrefetcher(ld, o, func() (*stages, error) {
		// A consumer may keep a slice or a tensor beyond Close: its memory must live as long.
		host, err := cpu.Open(cpu.Options{GoMemory: true})
		if err != nil {
			return nil, err
		}
		g, err := newStages(nil, host, nil, ld, o, machine{host: true})
		if err != nil {
			return nil, errors.Join(err, host.Close())
		}
		return g, nil
	})
}

func newPrefetcher(ld *loader.Loader, o Options, stages func() (*stages, error)) (*Prefetcher, error) {
	if ld == nil {
		return nil, &OptionError{Option: "ld", Value: "nil", Want: "a loader"}
	}
	if err := o.validate(ld.Layout().BatchSize()); err != nil {
		return nil, err
	}
	g, err := stages()
	if err != nil {
		return nil, err
	}
	p := &Prefetcher{stages: g}
	p.ahead = lookahead{loader: ld, stages: g, place: place{loader: ld}, closed: make(chan struct{}), turn: hold.NewGate()}
	if p.ahead.place.claim, err = ld.Claim(); err != nil {
		return nil, errors.Join(err, g.release(), g.releaseLast())
	}
	p.plan = makePlan(g, ld)
	p.unclosed = invariants.WatchClose(p, "prefetch: a Prefetcher", unreleased(g.windows), 2)
	return p, nil
}

// unreleased is the end of the report on a Prefetcher that nobody closed.
func unreleased(windows []*window) func() string {
	return func() string {
		leases := outstanding(windows)
		if len(leases) == 0 {
			return ""
		}
		return ", with batches not released: " + strings.Join(leases, "; ")
	}
}

// Epoch is the epoch of the cursor: that of the next batch to be delivered.
func (p *Prefetcher) Epoch() int { return p.ahead.place.at().Epoch }

// State is the place after the last batch delivered: restored, also by a loader
// with other workers and another depth, the next batch is the one after it. In the
// body of a range the batch in hand counts as delivered.
//
// With a Stream on several ranks it is the state of this rank's shards: loader.MergeStates
// makes one of all ranks' states, which Restore takes.
func (p *Prefetcher) State() loader.State { return p.ahead.place.state() }

// Restore continues where st was taken. It fails, and changes nothing, if st is of
// another dataset, seed or version, or where Seek would.
func (p *Prefetcher) Restore(st loader.State) error {
	if err := p.ahead.loader.Check(st); err != nil {
		return p.ahead.unlessClosed(fmt.Errorf("prefetch: Restore: the state does not fit: %w", err))
	}
	return p.ahead.seek(func(stands loader.Cursor) (loader.Cursor, error) {
		to := p.ahead.place.claim.Restore(st, stands)
		if p.ahead.loader.Options().Shard.Count > 1 { // it can't tell this rank's number
			to.Substituted = p.ahead.place.substituted(to)
		}
		return to, nil
	})
}

// Seek moves the cursor to a sample position of an epoch, both from 0: the next global
// batch starts there. A Stream has no other positions to go to than an epoch's beginning and
// the cursor's own, and with loader.Options.Steps the first epoch's only. What was read ahead is kept if that is where the cursor stands
// already, and thrown away otherwise. It fails, and changes nothing, if there is no such
// place, if a range or Reader is open, or if user code that works ahead for the present
// place does not stop: then it may be called again.
func (p *Prefetcher) Seek(epoch int, position int64) error {
	return p.ahead.seek(func(stands loader.Cursor) (loader.Cursor, error) {
		to, err := p.ahead.place.claim.Seek(epoch, position, stands)
		if err != nil {
			return to, fmt.Errorf("prefetch: Seek: %w", err)
		}
		to.Substituted = p.ahead.place.substituted(to)
		return to, nil
	})
}

// Start begins to fill batches from the cursor on, before anybody reads them: while a
// model is loaded, for example. The contexts that samples are read under have ctx's values
// but don't end with it. If batches are filled already, or none are left, it does nothing.
func (p *Prefetcher) Start(ctx context.Context) error {
	return p.ahead.alone(func() error {
		err := p.ahead.ensureRun(ctx)
		if a, ok := err.(again); ok {
			return a.error
		}
		return p.ahead.notes.news(err)
	})
}

// Stop is the end of what Start, or a range that was left, has begun: it gives up what was
// read ahead, and stops and joins the goroutines that read and upload. The place stays, and
// the next range or Start begins there anew. It fails where Seek to another place would.
func (p *Prefetcher) Stop() error { return p.ahead.alone(p.ahead.stop) }
