package prefetch

import (
	"context"
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/life"
	"github.com/leat-go/leat/internal/slots"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/observe/journal"
)

// What follows is for a consumer on the host, as NewHost makes one for.

// passPinned passes a batch to the reader as it lies in its pinned buffer.
func (r *run) passPinned(w *window) error {
	w.set(&r.gathered[0], journal.Way{})
	w.told.sent = w.way.Filled
	w.step(life.Load)
	r.gathered = r.gathered[:0]
	if err := r.pass(w); err != nil {
		return joined(err, r.stages.discard(w))
	}
	return nil
}

// uploadToHost is upload for a host consumer with a transform, which reads the pinned
// buffer itself: there is no copy, and the consumer waits on the host.
func (g *stages) uploadToHost(to *slots.Slot, batch loader.Filled, up *uploading) error {
	t, sent := g.transform, false
	defer func() { // also where the transform ends this goroutine
		if !sent {
			g.feed.doubt([]loader.Filled{batch})
		}
	}()
	in, err := g.feed.view(batch)
	if err != nil {
		return err
	}
	var done int
	up.copying = g.timeline.now()
	if err := t.apply(to.Memory, g.windowsOf(to), in, &done); err != nil {
		return err
	}
	sent = true
	if err := g.feed.done(t.stream, batch); err != nil {
		return err
	}
	if err := to.EndWrite(t.stream); err != nil {
		return err
	}
	up.loaded = 1
	return nil
}

// arrived waits on the host for what a host consumer's transform has written, until ctx
// or the run ends, or the Reader is closed.
func (r *run) arrived(ctx context.Context, closing <-chan struct{}, filled *device.Event) error {
	if done, err := filled.Done(); done || err != nil {
		return err
	}
	defer func(from time.Time) {
		late := time.Since(from)
		r.stages.counters.device.Add(int64(late))
		r.late += late
	}(time.Now())
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.ctx, func() { cancel(context.Cause(r.ctx)) })()
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-closing:
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
