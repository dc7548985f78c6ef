package prefetch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/pinnedpool"
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
	items chan *slot
	err   error

	// The reader's own.
	epoch int  // of the batch to come
	atEnd bool // the epoch's last batch is delivered, its end not yet
}

var errStopped = errors.New("prefetch: stopped")

// start makes a run at the cursor, unless one goes on from the last epoch or all
// epochs are done.
func (p *Prefetcher) start(ctx context.Context) error {
	p.mu.Lock()
	err := p.pending
	p.pending = nil
	going, closing, cursor := p.run != nil, p.closing, p.cursor
	p.mu.Unlock()
	switch {
	case closing:
		return ErrClosed
	case err != nil:
		return errors.Join(err, p.stop())
	case going || p.finished():
		return nil
	}
	if err := p.recover(ctx); err != nil {
		return err
	}
	r := &run{p: p, epoch: cursor.Epoch}
	r.ctx, r.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	r.filler = p.loader.Start(r.ctx, cursor, hostSlots{p.pool})
	if p.dev != nil {
		r.items = make(chan *slot, len(p.slots)+1)
		go r.upload() // ends when the loader does or r.ctx; stop joins it
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run = r
	return nil
}

// stop ends the run, if there is one, and joins its goroutines. What was uploaded
// and not delivered is discarded: its slots are free at once, since the next copy
// into them is behind the last one on the same stream.
func (p *Prefetcher) stop() error {
	p.stopping.Lock()
	defer p.stopping.Unlock()
	p.mu.Lock()
	r := p.run
	p.run = nil
	p.mu.Unlock()
	if r == nil {
		return nil
	}
	r.cancel(errStopped)
	if r.items != nil {
		for s := range r.items { // until the uploader has ended
			if s != nil {
				s.move(ready, free)
				p.free <- s
			}
		}
	}
	return r.filler.Close()
}

// recover takes back what failed operations have left in doubt: when the streams
// have come to rest, nothing reads or writes it any more.
func (p *Prefetcher) recover(ctx context.Context) error {
	p.mu.Lock()
	uncertain := p.uncertain
	p.mu.Unlock()
	var lost []*slot
	for _, s := range p.slots {
		if state(s.state.Load()) == retired {
			lost = append(lost, s)
		}
	}
	if len(uncertain)+len(lost) == 0 && p.pool.Failed() == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.options.CloseTimeout)
	defer cancel()
	if err := p.copy.Synchronize(ctx); err != nil {
		return fmt.Errorf("prefetch: the copy stream doesn't come to rest after a failed operation: %w", err)
	}
	for _, s := range lost {
		for _, stream := range s.users {
			if err := stream.Synchronize(ctx); err != nil {
				return fmt.Errorf("prefetch: stream %q doesn't come to rest after a failed operation: %w", stream.Name(), err)
			}
		}
		s.users, s.consumers = s.users[:0], 0
		s.move(retired, free)
		p.free <- s
	}
	p.pool.Recover()
	for _, b := range uncertain {
		p.pool.Put(b)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.uncertain = nil
	return nil
}

// next waits for the next slot, until ctx ends or the Prefetcher is closed.
func (r *run) next(ctx context.Context) (*slot, error) {
	start := time.Now()
	s, err := r.wait(ctx)
	r.p.counters.waitProducer.Add(int64(time.Since(start)))
	if err != nil && errors.Is(err, loader.ErrEnd) {
		err = ErrEpochEnd
	}
	return s, err
}

func (r *run) wait(ctx context.Context) (*slot, error) {
	if r.items == nil {
		return r.nextHost(ctx)
	}
	select {
	case s, ok := <-r.items:
		switch {
		case !ok:
			return nil, r.err
		case s == nil:
			return nil, ErrEpochEnd
		}
		return s, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-r.p.closed:
		return nil, ErrClosed
	}
}

// nextHost takes a filled host slot as it is.
func (r *run) nextHost(ctx context.Context) (*slot, error) {
	f, err := r.filler.Next(ctx) // ends with r.ctx too, which Close ends
	switch {
	case errors.Is(err, loader.ErrEpochEnd):
		return nil, ErrEpochEnd
	case err != nil:
		return nil, err
	}
	s := r.p.slots[f.Slot.ID]
	s.hold(f)
	s.move(free, ready)
	return s, nil
}

// upload is the uploader: it joins each filled host slot with a free device slot
// and submits the copy. It waits for producers and for slots, never for the device.
func (r *run) upload() {
	defer close(r.items)
	for {
		f, err := r.filler.Next(r.ctx)
		if err == nil {
			err = r.uploadOne(f)
		} else if errors.Is(err, loader.ErrEpochEnd) {
			err = r.endEpoch()
		}
		if err != nil {
			r.err = err
			return
		}
	}
}

func (r *run) uploadOne(f loader.Filled) error {
	p := r.p
	host := p.pool.Buffer(f.Slot.ID) // the uploader holds it from here on
	s, err := r.freeSlot()
	if err != nil {
		p.pool.Put(host)
		return err
	}
	s.hold(f)
	s.move(free, filling)
	if err := p.upload(s, host); err != nil {
		err = fmt.Errorf("prefetch: uploading batch %d of epoch %d: %w", f.Batch, f.Epoch, err)
		p.doubt(host)
		s.move(filling, retired)
		return err
	}
	p.pool.PutAfter(host) // the recycler holds it from here on
	s.move(filling, ready)
	p.counters.uploaded(s, p.layout)
	return r.deliver(s)
}

// endEpoch delivers an epoch's end. Without a stated number of epochs nobody knows
// whether the next one is wanted, and asking the loader would begin it.
func (r *run) endEpoch() error {
	if err := r.deliver(nil); err != nil {
		return err
	}
	if r.p.loader.Options().Epochs == 0 {
		return ErrEpochEnd
	}
	return nil
}

// freeSlot waits for the user to release a device slot.
func (r *run) freeSlot() (*slot, error) {
	select {
	case s := <-r.p.free:
		return s, nil
	default:
	}
	start := time.Now()
	defer func() { r.p.counters.waitSlot.Add(int64(time.Since(start))) }()
	select {
	case s := <-r.p.free:
		return s, nil
	case <-r.ctx.Done():
		return nil, context.Cause(r.ctx)
	}
}

// deliver passes a slot, or an epoch's end, to the reader.
func (r *run) deliver(s *slot) error {
	select {
	case r.items <- s:
		return nil
	case <-r.ctx.Done():
	}
	if s != nil {
		s.move(ready, free)
		r.p.free <- s
	}
	return context.Cause(r.ctx)
}

// doubt keeps a host slot whose copy may or may not have been submitted.
func (p *Prefetcher) doubt(b *pinnedpool.Buffer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.uncertain = append(p.uncertain, b)
}
