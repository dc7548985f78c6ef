package prefetch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/loader"
)

// A run produces batches from a cursor on: the loader's goroutines and, with a
// device, the uploader. It lasts over epochs until they end or stop joins it.
type run struct {
	p      *Prefetcher
	filler *loader.Run
	ctx    context.Context // the producers', ended by cancel
	cancel context.CancelCauseFunc

	// items are the uploaded slots in order; a nil slot is an epoch's end. The
	// uploader closes it when it ends, after it has set err.
	items   chan *slot
	err     error
	drained drained // the reader tells the uploader that it has taken all of them

	// halted says that stop has thrown away what was ahead and could not join the
	// uploader: what it may yet send does not follow what was delivered.
	halted atomic.Bool

	// The uploader's own.
	batches []loader.Filled // gathered for the next upload
	beyond  []loader.Filled // at most one, which lies in another host slot
	loaded  int             // how many batches of the upload under way are loaded

	// The reader's own.
	head  *slot // taken from items, not delivered yet: the caller's context ended
	epoch int   // of the batch to come
	atEnd bool  // the epoch's last batch is delivered, its end not yet
}

var errStopped = errors.New("prefetch: stopped")

// errEpochOver is the end of an epoch, or of all. It is told by its identity, and no
// user gets hold of it: an error of theirs, or the cause that they end a context
// with, may wrap ErrEpochEnd or be it, and is an error all the same.
var errEpochOver = errors.New("prefetch: the epoch is over")

// again is the end of the caller's own context: nothing is lost, and the call may be
// made again.
type again struct{ error }

// start makes a run at the cursor, unless one goes on from the last epoch or all
// epochs are done.
func (p *Prefetcher) start(ctx context.Context) error {
	p.mu.Lock()
	going, closing, cursor := p.run, p.closing, p.cursor
	p.mu.Unlock()
	if closing {
		return ErrClosed
	}
	if err := p.takePending(); err != nil {
		return errors.Join(err, p.stop())
	}
	if going != nil && going.ctx.Err() != nil { // it was stuck when it was stopped
		if err := p.stop(); err != nil {
			return err
		}
		going = nil
	}
	if going != nil || p.finished() {
		return nil
	}
	rest, cancel := context.WithTimeout(ctx, p.options.CloseTimeout)
	defer cancel()
	if err := p.recover(rest); err != nil {
		if ctx.Err() != nil {
			return again{context.Cause(ctx)}
		}
		return err
	}
	r := &run{p: p, epoch: cursor.Epoch}
	r.ctx, r.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	r.filler = p.loader.Start(r.ctx, cursor, p.memory)
	if p.carriers != nil {
		p.pool.Keep(true) // until stop
		r.items = make(chan *slot, len(p.slots)+1)
		r.drained = newDrained()
		go r.upload() // ends when the loader does or r.ctx; stop joins it
	}
	p.mu.Lock()
	p.run = r
	late := p.uncertain // what has come back from quarantine meanwhile
	p.uncertain = nil
	p.mu.Unlock()
	return p.recycle(late)
}

// cancelRun tells the run to end, if there is one.
func (p *Prefetcher) cancelRun(cause error) {
	p.mu.Lock()
	r := p.run
	p.mu.Unlock()
	if r != nil {
		r.cancel(cause)
	}
}

// atRest reports whether there is nothing to read from: no run, or one that was halted.
func (p *Prefetcher) atRest() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run == nil || p.run.halted.Load()
}

// stop ends the run, if there is one, and joins its goroutines. What was uploaded
// and not delivered is discarded: its memory is free at once, since the next copy
// into it is behind the last one on the same stream.
func (p *Prefetcher) stop() error {
	p.stopping.Lock()
	defer p.stopping.Unlock()
	p.mu.Lock()
	r := p.run
	p.mu.Unlock()
	if r == nil {
		return nil
	}
	r.cancel(errStopped)
	if err := r.join(true); err != nil {
		r.halted.Store(true)
		return err // the run stays: what it may use can't be used or freed
	}
	p.mu.Lock()
	p.run = nil
	p.mu.Unlock()
	err := r.filler.Close()
	err = errors.Join(err, p.finishHost())
	p.pool.Keep(false)
	return err
}

// join discards what was uploaded until the uploader has ended. All that it waits for
// ends with its context, but for a Transform that does not return and a copy from
// memory that isn't pinned, which waits for compute: that it is in one is the error
// after the limits, if there are any.
func (r *run) join(limited bool) error {
	p := r.p
	if s := r.head; s != nil {
		r.head = nil
		p.discard(s)
	}
	var inApply, inCopy <-chan time.Time
	if limited && p.transform != nil {
		ticker := time.NewTicker(p.grace())
		defer ticker.Stop()
		inApply = ticker.C
	}
	if limited && p.pageable {
		ticker := time.NewTicker(p.options.CloseTimeout)
		defer ticker.Stop()
		inCopy = ticker.C
	}
	for r.items != nil {
		select {
		case s, ok := <-r.items:
			if !ok {
				return nil
			}
			if s != nil {
				p.discard(s)
			}
		case <-inApply:
			if err := p.transform.visit.stuck("Transform.Apply", p.grace()); err != nil {
				return err
			}
		case <-inCopy:
			if p.copying.Load() {
				return &CloseError{HostSlots: true, Err: errPageable}
			}
		}
	}
	return nil
}

// discard takes back a batch that was ready and is not delivered.
func (p *Prefetcher) discard(s *slot) {
	s.move(ready, free)
	if s.carrier == nil {
		p.memory.Put(loader.Slot{ID: s.id})
		return
	}
	p.back(s, false)
}

// finishHost settles the host slots that were filled or uploaded in part.
func (p *Prefetcher) finishHost() error {
	recycle, doubt := p.memory.finish()
	err := p.recycle(recycle)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.uncertain = append(p.uncertain, doubt...)
	return err
}

// recover takes back what failed operations have left in doubt: when the streams
// have come to rest, nothing reads or writes it any more.
func (p *Prefetcher) recover(ctx context.Context) error {
	p.mu.Lock()
	uncertain, lost := p.uncertain, p.retired
	p.uncertain, p.retired = nil, nil
	p.mu.Unlock()
	if len(uncertain)+len(lost) == 0 && p.pool.Failed() == nil {
		return nil
	}
	if err := p.comeToRest(ctx, lost); err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.uncertain, p.retired = append(p.uncertain, uncertain...), append(p.retired, lost...)
		return err
	}
	p.pool.Recover()
	for _, b := range uncertain {
		p.pool.Put(b)
	}
	for _, c := range lost {
		c.renew()
		p.free <- c
	}
	return nil
}

// comeToRest waits for all that may use what is in doubt.
func (p *Prefetcher) comeToRest(ctx context.Context, lost []*carrier) error {
	const failed = "prefetch: the device doesn't come to rest after a failed operation: %w"
	var streams []*device.Stream
	if p.copy != nil {
		streams = append(streams, p.copy)
	}
	if p.transform != nil {
		streams = append(streams, p.transform.stream)
	}
	for _, s := range streams {
		if err := rest(ctx, s); err != nil {
			return fmt.Errorf(failed, err)
		}
	}
	for _, c := range lost {
		if err := c.rest(ctx); err != nil {
			return fmt.Errorf(failed, err)
		}
	}
	return nil
}

// next waits for the next slot, until ctx ends or the Prefetcher is closed.
func (r *run) next(ctx context.Context) (*slot, error) {
	// Meanwhile producers may wait for a host slot: then they have filled all there
	// are, and it is the device that is behind.
	start, producers := time.Now(), r.p.memory.waiting()
	s, err := r.wait(ctx)
	waited := time.Since(start)
	device := min(waited, max(0, r.p.memory.waiting()-producers))
	r.p.counters.waitDevice.Add(int64(device))
	r.p.counters.waitProducer.Add(int64(waited - device))
	return s, err
}

func (r *run) wait(ctx context.Context) (*slot, error) {
	if s := r.head; s != nil {
		r.head = nil
		return s, nil
	}
	if r.items == nil {
		return r.nextHost(ctx)
	}
	select {
	case s, ok := <-r.items:
		if len(r.items) == 0 {
			r.drained.end()
		}
		switch {
		case !ok:
			return nil, r.err
		case s == nil:
			return nil, errEpochOver
		}
		return s, nil
	case <-ctx.Done():
		return nil, again{context.Cause(ctx)}
	case <-r.p.closed:
		return nil, ErrClosed
	}
}

// nextHost takes a filled host slot as it is.
func (r *run) nextHost(ctx context.Context) (*slot, error) {
	f, err := r.filler.Next(ctx) // ends with r.ctx too, which Close ends
	switch {
	case err == loader.ErrEpochEnd || err == loader.ErrEnd:
		return nil, errEpochOver
	case err != nil && r.filler.Err() == nil: // it was ctx
		return nil, again{context.Cause(ctx)}
	case err != nil:
		return nil, err
	}
	s := r.p.slots[f.Slot.ID]
	s.hold(f)
	s.move(free, ready)
	return s, nil
}

// arrived waits on the host for what a host consumer's transform has written, until
// ctx or the run ends.
func (r *run) arrived(ctx context.Context, ready *device.Event) error {
	if done, err := ready.Done(); done || err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.ctx, func() { cancel(context.Cause(r.ctx)) })()
	return ready.Synchronize(ctx)
}
