package group

import (
	"context"
	"errors"
	"time"

	"github.com/leat-go/leat/internal/hold"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A Reader is the pull form of Steps, for callers that need several steps at once or adapt
// them to another interface. It covers what is left of one epoch. One goroutine calls Next;
// any may call Close.
type Reader struct {
	g       *Group
	readers []*prefetch.Reader // of the devices
	turn    hold.Gate          // held by Next, and by Close at its end
	closed  hold.Once
	left    chan struct{} // closed by Close

	next     *gathered // of the step to come: the batches of the first devices
	err      error     // what Next returns for ever
	returned time.Time // when Next last returned a step
}

// Open begins to read the rest of the current epoch, as prefetch.Prefetcher.Open does. The
// caller owns the Reader until Close; a second one at the same time is prefetch.ErrBusy.
func (g *Group) Open(ctx context.Context) (*Reader, error) {
	if !g.turn.TryLock() {
		return nil, prefetch.ErrBusy
	}
	r := &Reader{g: g, turn: hold.NewGate(), left: make(chan struct{}), next: g.take()}
	err := g.takeLate()
	if err == nil {
		err = g.each(func(pf *prefetch.Prefetcher) error {
			reader, err := pf.Open(ctx)
			if err == nil {
				r.readers = append(r.readers, reader)
			}
			return err
		})
	}
	if err != nil {
		return nil, joined(err, r.close(true))
	}
	return r, nil
}

// Next returns the next step, which the caller owns until Release. Behind the epoch's last
// step it returns prefetch.ErrEpochEnd, and from then on. An error of one device is a
// *DeviceError, and of a batch that can't be had since the caller holds all slots there a
// *prefetch.LeaseError is in it. After that one, and if ctx ends, nothing is lost and Next
// may be called again. After any other error the Reader is at its end, the cursor is behind
// the last step delivered, and the steps in hand stay valid.
func (r *Reader) Next(ctx context.Context) (Step, error) {
	if !r.turn.TryLock() {
		if r.isClosed() {
			return Step{}, prefetch.ErrClosed
		}
		return Step{}, prefetch.ErrBusy
	}
	defer r.turn.Unlock()
	if r.err != nil {
		return Step{}, r.err
	}
	began := time.Now()
	r.endBody(began)
	if err := r.gather(ctx); err != nil {
		return Step{}, err
	}
	s := r.next
	r.next = r.g.take()
	r.returned = time.Now()
	r.g.counters.delivered(r.returned.Sub(began))
	return Step{Batches: s.batches, of: s, lap: s.lap.Add(1)}, nil
}

// gather takes the batches of a step, device by device: the last one moves the group's
// place.
func (r *Reader) gather(ctx context.Context) error {
	for i := len(r.next.batches); i < len(r.readers); i++ {
		b, err := r.readers[i].Next(ctx)
		switch {
		case err == nil:
			r.next.batches = append(r.next.batches, b)
		case err == prefetch.ErrEpochEnd:
			return r.ended(ctx, i)
		default:
			return r.failed(ctx, i, err)
		}
	}
	return nil
}

// ended deals with the epoch's end on device i, which is to be that of all.
func (r *Reader) ended(ctx context.Context, i int) error {
	if i > 0 {
		r.err = &UnevenError{Epoch: r.next.batches[0].Position().Epoch, Ended: i, Going: 0}
		return r.err
	}
	for j := 1; j < len(r.readers); j++ {
		b, err := r.readers[j].Next(ctx)
		switch {
		case err == nil:
			r.err = &UnevenError{Epoch: b.Position().Epoch, Ended: 0, Going: j}
			b.Release()
			return r.err
		case err != prefetch.ErrEpochEnd:
			return r.failed(ctx, j, err)
		}
	}
	r.err = prefetch.ErrEpochEnd
	return r.err
}

// failed deals with an error of device i. What was gathered is for the next call, if there
// may be one.
func (r *Reader) failed(ctx context.Context, i int, err error) error {
	if ctx.Err() != nil {
		return err // if it was another one, the next call returns it again
	}
	told := r.g.at(i, err)
	if _, held := err.(*prefetch.LeaseError); !held {
		r.err = told
	}
	return told
}

// endBody counts the time since the last step as the user's.
func (r *Reader) endBody(now time.Time) {
	if !r.returned.IsZero() {
		r.g.counters.body.Add(int64(now.Sub(r.returned)))
		r.returned = time.Time{}
	}
}

func (r *Reader) isClosed() bool {
	select {
	case <-r.left:
		return true
	default:
		return false
	}
}

// Close ends the reading, and a Next that waits: it returns prefetch.ErrClosed. What was read
// ahead is kept for the next reader. Steps not released stay valid.
func (r *Reader) Close() error { return r.close(false) }

// close is Close; failed says that the producers are to stop.
func (r *Reader) close(failed bool) error {
	return r.closed.Do(func() error {
		defer r.g.turn.Unlock()
		close(r.left)
		var errs []error
		for i, reader := range r.readers {
			errs = append(errs, unlessClosed(r.g.at(i, reader.Close())))
		}
		r.turn.Lock() // Next has returned
		defer r.turn.Unlock()
		r.endBody(time.Now())
		failed = failed || r.err != nil && r.err != prefetch.ErrEpochEnd
		if r.err == nil {
			r.err = prefetch.ErrClosed
		}
		return errors.Join(append(errs, r.rewind(), r.stop(failed))...)
	})
}

// rewind takes back the batches of a step that is not whole, and the places behind them.
func (r *Reader) rewind() error {
	r.next.release()
	defer r.g.put(r.next)
	at := r.g.State()
	return r.g.each(func(pf *prefetch.Prefetcher) error {
		if same(pf.State(), at) {
			return nil
		}
		return unlessClosed(pf.Restore(at))
	})
}

// same reports whether two states of one loader are the same place.
func same(a, b loader.State) bool { return a.Epoch == b.Epoch && a.Position == b.Position }

// stop ends what works ahead on all devices if the reading has failed on one.
func (r *Reader) stop(failed bool) error {
	if !failed {
		return nil
	}
	return r.g.each(func(pf *prefetch.Prefetcher) error { return unlessClosed(pf.Stop()) })
}

// joined is err with another one, if there is one.
func joined(err, other error) error {
	if other == nil {
		return err
	}
	return errors.Join(err, other)
}

func unlessClosed(err error) error {
	if err == prefetch.ErrClosed {
		return nil
	}
	return err
}
