package prefetch

import (
	"context"
	"iter"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/loader"
)

// Batches yields what is left of the current epoch from the cursor, in order, for
// any number of workers. With all of the loader's Epochs delivered it yields
// nothing.
//
// The loop body owns its batch until it ends, by whatever way: break, return and
// panic release it too, and keep the position, so that ranging again goes on with
// the next batch. The body submits its work to the batch's Stream and need not
// wait for it. An error is yielded at most once, last, with the zero Batch, and
// after all batches before it; ctx's own error is one of them.
func (p *Prefetcher) Batches(ctx context.Context) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		r, err := p.Open(ctx)
		if err != nil {
			yield(Batch{}, err)
			return
		}
		defer func() { p.keep(r.Close()) }()
		for {
			b, err := r.next(ctx, false)
			if err == errEpochOver {
				return
			}
			if err != nil {
				yield(Batch{}, err)
				return
			}
			if !b.lend(yield) {
				return
			}
		}
	}
}

// lend is one turn of a loop; break, return and panic end the lease too.
func (b Batch) lend(yield func(Batch, error) bool) bool {
	defer b.end()
	return yield(b, nil)
}

// A Reader is the pull form of Batches, for callers that need several batches at once
// (gradient accumulation) or adapt them to another interface. It covers what is
// left of one epoch. One goroutine calls Next or WaitNext; any may call Close.
type Reader struct {
	p      *Prefetcher
	err    error // what Next returns for ever; guarded by p.inNext
	closed once
	// epoch is the one that it reads; begun says that a batch of it was delivered.
	epoch int
	begun bool
	// ahead is set for a reader whose batches count as delivered only later, when
	// their results are: it doesn't move the cursor.
	ahead bool
}

// Open begins to read the rest of the current epoch. The contexts that samples are read
// under have ctx's values but don't end with it: to stop a wait, cancel Next's ctx. The caller owns the Reader until
// Close; a second one at the same time is ErrBusy.
func (p *Prefetcher) Open(ctx context.Context) (*Reader, error) {
	if !p.reading.CompareAndSwap(false, true) {
		return nil, ErrBusy
	}
	r := &Reader{p: p}
	p.inNext.Lock()
	defer p.inNext.Unlock()
	if err := p.start(ctx); err != nil {
		p.reading.Store(false)
		if a, ok := err.(again); ok {
			return nil, a.error
		}
		return nil, p.news(err)
	}
	r.epoch = p.Epoch()
	return r, nil
}

// Next returns the next batch, which the caller owns until Release. Behind the
// epoch's last batch it returns ErrEpochEnd, and from then on. If the caller holds
// every slot it returns a *LeaseError at once, and if ctx ends its cause: then nothing
// is lost, and it may be called again. After any other error the Reader is at its end,
// and the cursor behind the last batch delivered.
//
// errors.Is finds ErrEpochEnd and ErrLeases only where they are Next's own, also if an
// error of the user's, who reads from another pipeline perhaps, wraps them.
func (r *Reader) Next(ctx context.Context) (Batch, error) { return r.take(ctx, false) }

// WaitNext is Next for batches that other goroutines release: while every slot is
// held it waits for them, until ctx ends or the Prefetcher is closed. With nobody to
// release one it waits for ever.
func (r *Reader) WaitNext(ctx context.Context) (Batch, error) { return r.take(ctx, true) }

func (r *Reader) take(ctx context.Context, wait bool) (Batch, error) {
	b, err := r.next(ctx, wait)
	switch {
	case err == nil:
		b.slot.history.take(3)
	case err == errEpochOver:
		err = ErrEpochEnd
	default:
		err = disown(err)
	}
	return b, err
}

func (r *Reader) next(ctx context.Context, wait bool) (Batch, error) {
	p := r.p
	if !p.inNext.TryLock() {
		if err := p.mayRead(ctx); err != nil { // it is Close
			return Batch{}, err
		}
		return Batch{}, ErrBusy
	}
	defer p.inNext.Unlock()
	if r.err != nil {
		return Batch{}, r.err
	}
	err := r.resume(ctx)
	var s *slot
	if err == nil {
		s, err = p.next(ctx, wait)
	}
	if err == errEpochOver && r.foundTheEnd() {
		if err = r.nextEpoch(ctx); err == nil {
			s, err = p.next(ctx, wait)
		}
	}
	switch e := err.(type) {
	case nil:
	case *LeaseError:
		return Batch{}, e
	case again:
		return Batch{}, e.error
	default:
		p.reported(err)
		r.err = p.news(err)
		err = r.err
		if !r.ahead {
			p.loader.Reported(err)
		}
		if err == errEpochOver {
			r.delivered(p.epochAfter())
		}
		return Batch{}, err
	}
	r.begun = true
	r.delivered(s.batch.After)
	return Batch{p: p, slot: s, generation: s.generation()}, nil
}

// resume starts again what Quiesce has stopped in the middle of the epoch.
func (r *Reader) resume(ctx context.Context) error {
	p := r.p
	if !p.atRest() || p.Epoch() != r.epoch || p.finished() {
		return nil
	}
	return p.start(ctx)
}

// foundTheEnd reports whether the epoch was over before the Reader began. Where
// nobody knows the number of samples, a cursor behind the last of them does not tell.
func (r *Reader) foundTheEnd() bool { return !r.begun && !r.p.atRest() && r.p.place().Position > 0 }

// nextEpoch goes on to the next epoch, as another Reader would.
func (r *Reader) nextEpoch(ctx context.Context) error {
	p := r.p
	p.delivered(p.epochAfter())
	r.epoch = p.Epoch()
	if !p.looksAhead() {
		if err := p.stop(); err != nil {
			return err
		}
	}
	if p.finished() {
		return errEpochOver
	}
	return p.start(ctx)
}

// delivered moves the cursor (P5).
func (r *Reader) delivered(after loader.Cursor) {
	if !r.ahead {
		r.p.delivered(after)
	}
}

// Close ends the reading, and a Next that waits: it returns ErrClosed. After
// ErrEpochEnd the producers go on into the next epoch, if the loader has one; else they
// are stopped and joined, and what they had ahead is discarded. Batches not released
// stay valid. A call during another waits for it and returns its error, one after it
// returns nil.
func (r *Reader) Close() error { return r.close(true) }

// close is Close; wanted says whether the epoch's end, if it was reached, is where the
// reading ends.
func (r *Reader) close(wanted bool) error {
	return r.closed.do(func() error {
		defer r.p.reading.Store(false)
		return r.stop(wanted)
	})
}

// stop is close that lets nobody else in yet.
func (r *Reader) stop(wanted bool) error {
	p := r.p
	if !p.inNext.TryLock() {
		wanted = false
		p.cancelRun(ErrClosed) // wakes Next
		p.inNext.Lock()
	}
	natural := wanted && r.err == errEpochOver
	if r.err == nil {
		r.err = ErrClosed
	}
	p.inNext.Unlock()
	if natural && p.looksAhead() {
		return nil
	}
	err := p.stop()
	if _, stuck := err.(*StuckError); stuck {
		if _, told := r.err.(*StuckError); told {
			return nil
		}
	}
	return err
}

// next waits for the next slot and leases it; for one that the user holds only if
// that is wanted.
func (p *Prefetcher) next(ctx context.Context, wait bool) (*slot, error) {
	if err := p.mayRead(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, again{err}
		}
		return nil, err
	}
	if p.atRest() {
		return nil, errEpochOver // all epochs are done, or this one when the run was stopped
	}
	if !wait && p.exhausted() && !p.run.atEnd {
		return nil, p.leaseError()
	}
	s, err := p.run.next(ctx)
	if err == errEpochOver {
		p.run.atEnd = false
		p.run.epoch++
	}
	if err != nil {
		return nil, err
	}
	if err := p.handOver(ctx, s); err != nil {
		if p.dev == nil && ctx.Err() != nil {
			p.run.head = s
			return nil, again{context.Cause(ctx)}
		}
		p.discard(s)
		return nil, err
	}
	if err := p.lend(s); err != nil {
		p.discard(s)
		return nil, err
	}
	s.move(ready, leased)
	p.leases.Add(1)
	p.users.Add(1)
	if s.carrier != nil {
		s.carrier.delivered()
	}
	p.run.atEnd = s.batch.LastOfEpoch
	p.counters.delivered(s)
	return s, nil
}

// epochAfter is the cursor behind the epoch whose end Next has just returned.
func (p *Prefetcher) epochAfter() loader.Cursor {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil || p.run.halted.Load() { // all epochs are done, or Close was faster
		return p.cursor
	}
	return loader.Cursor{Epoch: p.run.epoch}
}

// exhausted reports whether the user holds so much that nothing more can come.
func (p *Prefetcher) exhausted() bool {
	if p.carriers == nil {
		leases := int(p.leases.Load()) // without any it is for the pool to say what is wrong
		return leases > 0 && leases == len(p.slots)-p.memory.lost()
	}
	for _, c := range p.carriers {
		if !c.held() {
			return false
		}
	}
	return true
}

// handOver gives a slot's batch to a compute stream, or waits until a host consumer
// can read it.
func (p *Prefetcher) handOver(ctx context.Context, s *slot) error {
	switch {
	case s.carrier == nil:
		return nil
	case p.dev == nil:
		if err := p.run.arrived(ctx, s.carrier.ready); err != nil {
			return err
		}
		return p.hostDev.HostWrites(s.host) // what the consumer may do
	}
	s.stream = p.nextStream()
	if err := p.timeline.reached(s.stream, s.carrier); err != nil {
		return err
	}
	return s.carrier.handOver(s.stream)
}

// nextStream is the next compute stream that is idle, or else the next in turn. An
// error of asking is left to the work that is submitted to it.
func (p *Prefetcher) nextStream() *device.Stream {
	n := len(p.compute)
	if n > 1 && !p.options.RoundRobin {
		for i := range n {
			s := p.compute[(p.turn+i)%n]
			if idle, err := s.Idle(); idle && err == nil {
				p.turn = (p.turn + i + 1) % n
				return s
			}
		}
	}
	s := p.compute[p.turn]
	p.turn = (p.turn + 1) % n
	return s
}

// mayRead is why Next can't go on, if so.
func (p *Prefetcher) mayRead(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	select {
	case <-p.closed:
		return ErrClosed
	default:
		return nil
	}
}

func (p *Prefetcher) leaseError() error {
	return &LeaseError{Outstanding: int(p.leases.Load()), Taken: outstanding(p.slots)}
}

// looksAhead reports whether producers may go on behind an epoch's end.
func (p *Prefetcher) looksAhead() bool {
	return p.Epoch() < p.loader.Options().Epochs
}

// finished reports whether all of a stated number of epochs are delivered.
func (p *Prefetcher) finished() bool {
	epochs := p.loader.Options().Epochs
	return epochs > 0 && p.Epoch() >= epochs
}
