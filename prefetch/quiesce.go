package prefetch

import (
	"context"

	"github.com/leat-go/leat/internal/life"
)

// Quiesce brings the pipeline to rest on the device: the uploader stops, the copies in
// flight end, and with them what a Map that was left has under way. From its return until
// the next call that reads no goroutine of the Prefetcher calls the device; producers may
// go on to read samples into pinned memory. Then all goes on where it stood: nothing that
// was read ahead is lost. It may be called between two calls of Next, in the body of a
// range too, and batches in hand stay valid.
//
// It is for what may not be disturbed by calls of other goroutines: capturing a CUDA
// graph in global mode. In thread-local mode nothing disturbs a capture.
//
// It is ErrBusy while another goroutine is in Next and during a Map, whose steps run
// ahead. A Next that begins meanwhile waits for it.
func (p *Prefetcher) Quiesce(ctx context.Context) error {
	if p.ahead.isClosed() {
		return ErrClosed
	}
	if p.ahead.life.state().Reader == life.Mapping || !p.ahead.turn.TryLock() {
		if p.ahead.isClosed() {
			return ErrClosed
		}
		return ErrBusy
	}
	defer p.ahead.turn.Unlock()
	switch {
	case p.ahead.isClosed():
		return ErrClosed
	case p.ahead.life.state().Reader == life.Mapping:
		return ErrBusy
	}
	ctx, cancel := p.ahead.untilClosed(ctx)
	defer cancel()
	if err := p.ahead.pause(ctx); err != nil {
		return err
	}
	if err := p.stages.drain(ctx); err != nil {
		return causeOf(ctx, err)
	}
	return awaitReapers(ctx, p)
}

// untilClosed is a context that ends with ctx or when the Prefetcher is closed, with
// ErrClosed as its cause then: Close does not wait for who waits under it.
func (a *lookahead) untilClosed(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() { // ends with the context, which the caller cancels
		select {
		case <-a.closed:
			cancel(ErrClosed)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// causeOf is why ctx has ended, or err if it has not.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// awaitReapers waits for what Maps have left to a reaper.
func awaitReapers(ctx context.Context, p *Prefetcher) error {
	p.ahead.mu.Lock()
	reapers := append([]chan struct{}(nil), p.reapers...)
	p.ahead.mu.Unlock()
	for _, done := range reapers {
		select {
		case <-done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
