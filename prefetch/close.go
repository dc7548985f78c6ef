package prefetch

import (
	"context"
	"errors"
	"fmt"

	"github.com/leat-go/leat/loader"
)

// Close stops the producers, waits until the device has done with the slots, for
// Options.CloseTimeout at most, and frees them. What can't be freed yet it reports
// in a *CloseError: slots that the device still works on are freed by a reaper when
// it is done, leased ones when they are released, which stays legal. An error of
// the device or of a producer that doesn't stop is returned too. Close is
// idempotent and may be called from any goroutine, the loop's body included.
func (p *Prefetcher) Close() error {
	p.mu.Lock()
	if p.closing {
		p.mu.Unlock()
		return nil
	}
	p.closing = true
	r := p.run
	p.mu.Unlock()
	close(p.closed)
	p.watch.Closed()
	if r != nil {
		r.cancel(ErrClosed)
	}
	p.inNext.Lock() // nobody leases a slot from here on
	defer p.inNext.Unlock()
	stopped := p.stop()
	if p.carriers == nil {
		return errors.Join(stopped, p.closeHost())
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.options.CloseTimeout)
	defer cancel()
	left := p.reap(ctx)
	left.Leased = outstanding(p.slots)
	if left.HostSlots || left.Slots > 0 {
		go p.reap(context.Background()) // the reaper: it ends when the device's work does
	} else if len(left.Leased) == 0 && left.Err == nil {
		return stopped
	}
	return errors.Join(stopped, left)
}

// outstanding describes the leased batches.
func outstanding(slots []*slot) []string {
	var leases []string
	for _, s := range slots {
		if state(s.state.Load()) == leased {
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
	if err := p.pool.Drain(ctx); err != nil {
		left.HostSlots, left.Err = true, err
		return left
	}
	var errs []error
	for n := len(p.free); n > 0; n-- {
		c := <-p.free
		err := c.rest(ctx)
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
	left.Err = errors.Join(left.Err, p.pool.Close(ctx), p.closeStreams())
	if p.dev == nil && p.leases.Load() == 0 {
		left.Err = errors.Join(left.Err, p.hostDev.Close())
	}
	return left
}

// closeStreams frees the streams and the transform, whose work is done, and a host
// consumer's device.
func (p *Prefetcher) closeStreams() error {
	errs := []error{p.timeline.close()}
	if p.transform != nil {
		errs = append(errs, p.transform.release())
	}
	if p.copy != nil {
		errs = append(errs, p.copy.Close())
	}
	if p.downloads != nil && !p.mapping.Load() {
		errs = append(errs, p.downloads.release())
		p.downloads = nil
	}
	return errors.Join(append(errs, p.closeCompute())...)
}

// closeCompute frees the compute streams that aren't the user's, once Close is
// called and nobody has a batch any more whose Release would record on them.
func (p *Prefetcher) closeCompute() error {
	if !p.isClosing() || p.leases.Load() > 0 || p.mapping.Load() {
		return nil
	}
	var errs []error
	p.rested.Do(func() {
		for _, s := range p.compute[min(1, len(p.compute)):] {
			errs = append(errs, s.Close())
		}
	})
	return errors.Join(errs...)
}

// reapCarrier frees a carrier that came back after Close, when the device is done
// with it.
func (p *Prefetcher) reapCarrier(c *carrier) {
	go func() { // ends when the work does that was submitted for its batches
		err := c.rest(context.Background())
		if err == nil {
			err = c.release()
		}
		p.keep(errors.Join(err, p.closeCompute()))
	}()
}

// closeHost frees the host slots that nobody holds.
func (p *Prefetcher) closeHost() error {
	leased := outstanding(p.slots)
	err := p.pool.Close(context.Background())
	if len(leased) > 0 {
		return &CloseError{Leased: leased}
	}
	return errors.Join(err, p.hostDev.Close())
}

// returnHost gives a host slot back to the producers, or after Close to the system.
func (p *Prefetcher) returnHost(s *slot) {
	p.memory.Put(loader.Slot{ID: s.id})
	if !p.isClosing() {
		return
	}
	err := p.pool.Close(context.Background())
	if p.leases.Load() == 0 {
		err = errors.Join(err, p.hostDev.Close())
	}
	if err != nil {
		p.keep(fmt.Errorf("prefetch: after Close: %w", err))
	}
}

// freeAll is New's way out: nothing has run yet.
func (p *Prefetcher) freeAll() error {
	var errs []error
	p.closing = true
	for _, c := range p.carriers {
		errs = append(errs, c.release())
	}
	errs = append(errs, p.closeStreams())
	if p.pool != nil {
		errs = append(errs, p.pool.Close(context.Background()))
	}
	if p.dev == nil {
		errs = append(errs, p.hostDev.Close())
	}
	return errors.Join(errs...)
}
