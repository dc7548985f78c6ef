package prefetch

import (
	"context"
	"errors"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/pinnedpool"
)

// Close stops the producers, waits until the device has done with the slots, for
// Options.CloseTimeout at most, and frees them. What can't be freed yet it reports
// in a *CloseError: slots that the device still works on are freed by a reaper when
// it is done, those of a copy from pageable memory that waits behind compute too, leased ones when they are released, which stays legal. An error of
// the device, of a producer that doesn't stop (*loader.StuckError) or of a Transform
// or step that doesn't return (*StuckError) is returned too. A source that gives its
// samples once ends with the Prefetcher; see loader.Loader.Close. Close may be called
// from any goroutine, the loop's body included: a call during another waits for it and
// returns its error, one after it returns nil.
func (p *Prefetcher) Close() error { return p.closeOnce.do(p.close) }

func (p *Prefetcher) close() error {
	p.mu.Lock()
	p.closing = true
	r := p.run
	p.mu.Unlock()
	close(p.closed)
	p.watch.Closed()
	if r != nil {
		r.cancel(ErrClosed)
	}
	p.inNext.Lock() // nobody starts a run or leases a slot from here on
	defer p.inNext.Unlock()
	pending, stopped := p.takePending(), p.stop()
	if left := new(CloseError); errors.As(stopped, &left) {
		left.Leased = outstanding(p.slots)
		pending = nil // it is of the same copy
	}
	stopped = errors.Join(pending, stopped, p.loader.Close())
	p.mu.Lock()
	stuck := p.run // nobody starts or stops one any more
	p.mu.Unlock()
	if stuck != nil {
		go func() { // the reaper: it ends when the user's code and the device's work do
			_ = stuck.join(false)
			p.keep(p.stop())
			p.reap(context.Background())
		}()
		return stopped
	}
	if p.carriers == nil {
		return errors.Join(stopped, p.closeHost())
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.options.CloseTimeout)
	defer cancel()
	left := p.reap(ctx)
	left.Leased = outstanding(p.slots)
	if left.HostSlots || left.Slots > 0 {
		go p.reap(context.Background()) // the reaper: it ends when the device's work does
	} else if len(left.Leased) == 0 && left.Err == nil && !deviceEnded(stopped) {
		return stopped
	}
	return p.closeError(stopped, left)
}

// outstanding describes the leased batches.
func outstanding(slots []*slot) []string {
	var leases []string
	for _, s := range slots {
		if s.state() == leased {
			leases = append(leases, s.history.lease())
		}
	}
	return leases
}

// reap frees everything that nobody holds, in order of the protocol: what copies
// read, then what compute reads. Nothing is freed before its events are complete,
// because freeing waits for running work, also of others.
func (p *Prefetcher) reap(ctx context.Context) *CloseError {
	left := &CloseError{}
	if err := p.recover(ctx); err != nil {
		left.HostSlots, left.Err = true, err
		return left
	}
	if err := p.drain(ctx); err != nil {
		left.HostSlots, left.Err = true, err
		return left
	}
	p.startReaping()
	var errs []error
	for n := len(p.free); n > 0; n-- {
		c := <-p.free
		err := p.restOf(ctx, c)
		if err != nil && ctx.Err() != nil {
			left.Slots, left.Err = left.Slots+1, err
			p.free <- c
			continue
		}
		errs = append(errs, err, c.release())
	}
	left.Err = errors.Join(left.Err, errors.Join(errs...))
	if left.Slots > 0 {
		return left
	}
	left.Err = errors.Join(left.Err, p.pool.Close(ctx), p.closeStreams(), p.leave())
	return left
}

// drain waits until all copies are done, those from slots in quarantine too, and what a
// transform reads is read.
func (p *Prefetcher) drain(ctx context.Context) error {
	if err := p.pool.Drain(ctx); err != nil {
		return err
	}
	if p.copy != nil {
		if err := rest(ctx, p.copy); err != nil {
			return err
		}
	}
	if p.transform == nil {
		return nil
	}
	return p.transform.rest(ctx)
}

// startReaping makes what comes back from here on its holder's to free. What has
// come back before is where the caller finds it, also where its Release failed.
func (p *Prefetcher) startReaping() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaping = true
	for _, c := range p.retired {
		p.free <- c // it holds every carrier: this never blocks
	}
	for _, b := range p.uncertain {
		p.pool.Put(b)
	}
	p.retired, p.uncertain = nil, nil
}

// closeStreams frees the copy stream and the transform, whose work is done.
func (p *Prefetcher) closeStreams() error {
	errs := []error{p.timeline.close()}
	if p.transform != nil {
		errs = append(errs, p.transform.release())
	}
	if p.copy != nil {
		errs = append(errs, p.copy.Close())
	}
	return errors.Join(errs...)
}

// leave ends one use of what everybody shares: the compute streams that aren't the
// user's, the results' memory and a host consumer's device. The Prefetcher until it
// is closed, every lease, a Map and whoever reaps use it; the last one frees it.
func (p *Prefetcher) leave() error {
	if p.users.Add(-1) > 0 {
		return nil
	}
	var errs []error
	if p.downloads != nil {
		errs = append(errs, p.downloads.release())
	}
	for i := 1; i < len(p.compute); i++ {
		errs = append(errs, p.compute[i].Close())
	}
	if p.dev == nil {
		err := p.hostDev.Close()
		if leak := new(cpu.LeakError); p.memory != nil && p.memory.lost() > 0 && errors.As(err, &leak) {
			err = nil // the pool has said which buffers are not back
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// reapCarrier frees a carrier that came back after Close, when the device is done
// with it.
func (p *Prefetcher) reapCarrier(c *carrier) {
	p.users.Add(1)
	go func() { // ends when the work does that was submitted for its batches
		err := p.restOf(context.Background(), c)
		p.keep(errors.Join(err, c.release(), p.leave()))
	}()
}

// restOf waits until nothing uses a carrier. An error that isn't ctx's says why its
// events could not be waited for: then it has waited for the device.
func (p *Prefetcher) restOf(ctx context.Context, c *carrier) error {
	err := c.rest(ctx)
	if err != nil && ctx.Err() == nil {
		_ = p.hostDev.Synchronize(ctx) // its error is ctx's, or that of a device whose work has ended
	}
	return err
}

// closeHost frees the host slots that nobody holds.
func (p *Prefetcher) closeHost() error {
	p.startReaping()
	leased, held := outstanding(p.slots), p.users.Load() > 1
	err := p.pool.Close(context.Background())
	if held {
		err = nil // what isn't back yet is freed by its Release
	}
	err = errors.Join(err, p.leave())
	if len(leased) > 0 {
		return &CloseError{Leased: leased, Err: err}
	}
	return err
}

// returnHost gives a host slot back to the producers, or after Close to the system.
func (p *Prefetcher) returnHost(s *slot) {
	p.memory.Put(loader.Slot{ID: s.id})
	p.mu.Lock()
	reaping := p.reaping
	p.mu.Unlock()
	if reaping {
		_ = p.pool.Close(context.Background()) // it says which others are not back
	}
}

// readmitted takes back a host slot whose producers have returned from quarantine:
// after Close its memory is freed, since nothing is copied any more.
func (p *Prefetcher) readmitted(b *pinnedpool.Buffer, copied bool) {
	p.stopping.Lock() // a run that is under way stays so
	defer p.stopping.Unlock()
	p.mu.Lock()
	if copied && !p.reaping {
		running := p.run != nil
		if !running {
			p.uncertain = append(p.uncertain, b) // until the next run begins
		}
		p.mu.Unlock()
		if running { // it may be the very slot that it waits for
			p.keep(p.recycle([]*pinnedpool.Buffer{b}))
		}
		return
	}
	p.pool.Put(b)
	reaping := p.reaping
	p.mu.Unlock()
	if reaping {
		_ = p.pool.Close(context.Background()) // it says which others are not back
	}
}

// freeAll is New's way out: nothing has run yet.
func (p *Prefetcher) freeAll() error {
	var errs []error
	for _, c := range p.carriers {
		errs = append(errs, c.release())
	}
	errs = append(errs, p.closeStreams())
	if p.pool != nil {
		errs = append(errs, p.pool.Close(context.Background()))
	}
	return errors.Join(append(errs, p.leave())...)
}
