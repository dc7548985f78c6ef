package prefetch

import (
	"context"
	"time"

	"github.com/leat-go/leat/device"
)

// handOver gives a batch to a compute stream, or waits until a host consumer can read it.
func (r *run) handOver(ctx context.Context, left <-chan struct{}, w *window) error {
	g := r.stages
	switch {
	case w.slot == nil:
		return nil
	case g.dev != nil:
		return g.handOver(w)
	}
	if err := r.arrived(ctx, left, w.slot.filled); err != nil {
		if ctx.Err() != nil {
			return again{context.Cause(ctx)}
		}
		return err
	}
	return g.host.HostWrites(w.host) // what the consumer may do
}

// arrived waits on the host for what a host consumer's transform has written, until ctx
// or the run ends, or the Reader is closed.
func (r *run) arrived(ctx context.Context, left <-chan struct{}, filled *device.Event) error {
	if done, err := filled.Done(); done || err != nil {
		return err
	}
	defer func(from time.Time) { r.stages.counters.device.Add(int64(time.Since(from))) }(time.Now())
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.ctx, func() { cancel(context.Cause(r.ctx)) })()
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-left:
			cancel(ErrClosed)
		case <-over:
		}
	}()
	if err := filled.Synchronize(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	return nil
}
