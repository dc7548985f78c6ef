package loader

import (
	"errors"
	"time"
)

// Close ends the run: it cancels the context that samples are read under, joins
// the goroutines, and puts the slots back that were not delivered. User code that
// does not return within Options.GracePeriod is reported as a *StuckError for
// each sample, and a slot that it may write to is quarantined; should it return later,
// the slot is put back then. A panic in user code that came too late for Next, in an
// iterator's clean-up for example, is reported too, as an *Error. Later calls return
// what the first did. Batches already delivered stay the caller's.
func (r *Run) Close() error {
	r.closing.Do(func() { r.closeErr = r.close() })
	return r.closeErr
}

func (r *Run) close() error {
	r.stop(ErrClosed)
	r.halt() // behind it: what is skipped is skipped because the run is over
	stuck, err := r.join()
	r.drain(stuck)
	if r.loader.once != nil {
		r.loader.once.end(r)
	}
	if len(stuck) > 0 {
		go r.comeBack(stuck) // ends when the user's code does
	}
	r.after.Lock()
	defer r.after.Unlock()
	return errors.Join(err, r.afterwards)
}

// drain returns the slots of the batches that were not delivered.
func (r *Run) drain(stuck map[*batch]error) {
	r.consumer.Lock()
	defer r.consumer.Unlock()
	if r.head != nil {
		r.putBack(r.head, stuck)
		r.head = nil
	}
	for {
		select {
		case b, ok := <-r.order:
			if !ok {
				return
			}
			if b != nil {
				r.putBack(b, stuck)
			}
		default:
			return
		}
	}
}

// join waits for the goroutines. Those that do not end in time are the errors,
// by the batch they may still write to and all together.
func (r *Run) join() (stuck map[*batch]error, err error) {
	grace := r.loader.options.GracePeriod
	timer := time.NewTimer(grace)
	defer timer.Stop()
	var suspects []suspect
	joined, closed := r.joined, (<-chan struct{})(nil)
	for len(suspects) == 0 { // what is in our own code ends soon
		select {
		case <-joined:
			joined, closed = nil, r.disposal.atRest() // nobody discards a sample any more
		case <-closed:
			return nil, nil
		case <-timer.C:
			timer.Reset(grace)
			suspects = r.suspects()
		}
	}
	stuck = make(map[*batch]error)
	for _, s := range suspects {
		e := s.stuck(grace)
		err = errors.Join(err, e)
		if s.batch != nil {
			stuck[s.batch] = errors.Join(stuck[s.batch], e)
		}
	}
	return stuck, err
}

// putBack returns the slot of a batch that was not delivered.
func (r *Run) putBack(b *batch, stuck map[*batch]error) {
	switch {
	case !b.owned:
	case stuck[b] != nil:
		r.mem.Quarantine(b.slot, stuck[b])
	default:
		b.abandon()
		r.mem.Put(b.slot)
	}
}

// comeBack puts back the slots in quarantine when nothing can write to them any
// more.
func (r *Run) comeBack(stuck map[*batch]error) {
	<-r.joined
	for b := range stuck {
		r.mem.Put(b.slot)
	}
}
