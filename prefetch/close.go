package prefetch

import (
	"context"
	"errors"
	"fmt"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/internal/life"
	"github.com/leat-go/leat/internal/slots"
)

// Close stops the producers, waits until the device has done with the slots, for
// Options.CloseTimeout at most, and frees them. What can't be freed yet it reports in a
// *CloseError: slots that the device still works on are freed by a reaper when it is done,
// also those of a copy from pageable memory that waits behind compute; leased ones when
// they are released, which stays legal. An error of the device, and user code that does
// not return (*loader.StuckError), is returned too. A source that gives its samples once
// ends with the Prefetcher; see loader.Loader.Close. Close may be called from any
// goroutine, the loop's body included: a call during another waits for it and returns its
// error, one after it returns nil.
func (p *Prefetcher) Close() error { return p.closeOnce.Do(p.close) }

func (p *Prefetcher) close() error {
	p.ahead.life.must(life.Shut)
	close(p.ahead.closed)
	p.unclosed.Closed()
	p.ahead.cancelRun(ErrClosed)
	p.ahead.turn.Lock() // nobody starts a run or leases a batch from here on
	defer p.ahead.turn.Unlock()
	pending, stopped := p.ahead.notes.take(), p.ahead.stop()
	if left := new(CloseError); errors.As(stopped, &left) {
		left.Leased = outstanding(p.stages.windows)
		if same := new(CloseError); errors.As(pending, &same) {
			pending = nil // it is of the same copy
		}
	}
	stopped = errors.Join(pending, stopped, p.ahead.loader.Close())
	if stuck := p.ahead.run; stuck != nil {
		p.ahead.abandon(stuck)
		go func() { // the reaper: it ends when the user's code and the device's work do
			_ = stuck.join(nil)
			p.ahead.notes.keep(p.ahead.joined(stuck))
			p.reap(context.Background())
		}()
		return stopped
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.ahead.closeTimeout())
	defer cancel()
	left := p.reap(ctx)
	left.Leased = outstanding(p.stages.windows)
	if left.HostSlots || left.Slots > 0 {
		go p.reap(context.Background()) // the reaper: it ends when the device's work does
	} else if len(left.Leased) == 0 && left.Err == nil && !deviceEnded(stopped) {
		return stopped
	}
	return closeError(&p.ahead.notes, stopped, left)
}

// reap frees everything that nobody holds, in the order of a batch's way: what copies
// read, then what compute reads. Nothing is freed before its events are complete, because
// freeing waits for running work, also of others.
func (p *Prefetcher) reap(ctx context.Context) *CloseError {
	left, g := &CloseError{}, p.stages
	err := g.recover(ctx)
	if err == nil {
		err = g.drain(ctx)
	}
	if err != nil {
		left.HostSlots, left.Err = true, err
		if deviceEnded(err) {
			g.pinned.pool.Abandon()
		}
		return left
	}
	var errs []error
	if err := p.beforeFree.run(ctx); err != nil && ctx.Err() != nil {
		left.Err = err
		if left.HostSlots = g.ring == nil; g.ring != nil {
			left.Slots = g.ring.Len()
		}
		return left
	} else if err != nil {
		errs = append(errs, fmt.Errorf("prefetch: BeforeFree: %w", err))
	}
	p.ahead.life.must(life.Reap)
	if g.ring != nil {
		for _, s := range g.ring.Retire(p.orphaned) {
			err := g.restOf(ctx, s)
			if err != nil && ctx.Err() != nil {
				left.Slots, left.Err = left.Slots+1, err
				g.ring.Keep(s)
				continue
			}
			errs = append(errs, err, s.Close())
		}
	}
	left.Err = errors.Join(left.Err, errors.Join(errs...))
	if left.Slots > 0 {
		return left
	}
	held := p.ahead.life.state().Users > 0
	if err := g.pinned.close(ctx); !(held && g.ring == nil) { // a host consumer's leases free theirs
		left.Err = errors.Join(left.Err, err)
	}
	left.Err = errors.Join(left.Err, g.closeStreams())
	if p.ahead.life.must(life.Leave).Freed() {
		left.Err = errors.Join(left.Err, p.freeLast())
	}
	return left
}

// orphaned frees a slot that came back after Close, when the device is done with it.
func (p *Prefetcher) orphaned(s *slots.Slot) {
	p.ahead.life.must(life.Use)
	go func() { // ends when the work does that was submitted for its batches
		err := p.stages.restOf(context.Background(), s)
		p.ahead.notes.keep(errors.Join(err, s.Close(), p.unuse()))
	}()
}

// unuse ends one use of what is freed last; the last one frees it.
func (p *Prefetcher) unuse() error {
	if p.ahead.life.must(life.Unuse).Freed() {
		return p.freeLast()
	}
	return nil
}

// freeLast frees what leases, Maps and reapers use to their end: the compute streams that
// aren't the user's, the results and a host consumer's device.
func (p *Prefetcher) freeLast() error {
	var err error
	if p.results != nil {
		err = p.results.release()
	}
	for _, d := range p.unfreed { // nobody adds to them any more
		err = errors.Join(err, d.release())
	}
	return errors.Join(err, p.stages.releaseLast())
}

// closeStreams frees the copy stream and the transform, whose work is done.
func (g *stages) closeStreams() error {
	errs := []error{g.timeline.Close()}
	if g.transform != nil {
		errs = append(errs, g.transform.release())
	}
	if g.copies != nil {
		errs = append(errs, g.copies.Close())
	}
	return errors.Join(errs...)
}

// closeComputes frees the compute streams that aren't the user's.
func (g *stages) closeComputes() error {
	var errs []error
	for _, s := range g.computes.Streams[min(1, len(g.computes.Streams)):] {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// releaseLast frees what is freed last.
func (g *stages) releaseLast() error {
	err := g.closeComputes()
	if g.dev != nil {
		return err
	}
	closed := g.host.Close()
	if leak := new(cpu.LeakError); g.pinned != nil && g.pinned.late.Load() > 0 && errors.As(closed, &leak) {
		closed = nil // the pool has said which buffers are not back
	}
	return errors.Join(err, closed)
}
