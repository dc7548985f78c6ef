package prefetch

import (
	"context"
	"slices"
)

// Quiesce brings the pipeline to rest: producers and the uploader stop, what they
// had ahead is discarded, and the copies in flight end, and with them what a Map that
// was left has under way. From its return until the
// next Next no goroutine of the Prefetcher calls the device; then all goes on where
// it stood. It may be called between two calls of Next, in the body of a range too,
// and batches in hand stay valid.
//
// It is for what may not be disturbed by calls of other goroutines: capturing a CUDA
// graph in global mode. In thread-local mode nothing disturbs a capture.
//
// It is ErrBusy while another goroutine is in Next and during a Map, whose steps run
// ahead.
func (p *Prefetcher) Quiesce(ctx context.Context) error {
	if p.isClosed() {
		return ErrClosed
	}
	if p.mapping.Load() || !p.inNext.TryLock() {
		return ErrBusy
	}
	defer p.inNext.Unlock()
	if p.isClosed() {
		return ErrClosed
	}
	if err := p.stop(); err != nil {
		return err
	}
	if err := p.drain(ctx); err != nil {
		return err
	}
	return p.awaitReapers(ctx)
}

func (p *Prefetcher) isClosed() bool {
	select {
	case <-p.closed:
		return true
	default:
		return false
	}
}

// awaitReapers waits for the rings that Maps have left to a reaper.
func (p *Prefetcher) awaitReapers(ctx context.Context) error {
	p.mu.Lock()
	reapers := slices.Clone(p.reapers)
	p.mu.Unlock()
	for _, done := range reapers {
		select {
		case <-done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
