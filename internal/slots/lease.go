package slots

import (
	"errors"
	"slices"

	"github.com/leat-go/leat/device"
)

// Load begins a lap with so many batches.
func (s *Slot) Load(batches int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.undelivered, s.unreturned = batches, batches
}

// Give gives one of the batches to a compute stream, whose read lasts until the slot is
// handed back: work submitted to it from now on waits for what is in the slot. What a stream
// has waited for it need not wait for again.
func (s *Slot) Give(compute *device.Stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.wholeReadLocked(compute)
	if err == nil {
		r.batches++
	}
	return err
}

func (s *Slot) wholeReadLocked(compute *device.Stream) (*read, error) {
	if r := s.reads.by(compute); r != nil {
		return r, nil
	}
	r, err := s.beginReadLocked(compute)
	if err == nil {
		r.whole = true
	}
	return r, err
}

// Delivered notes that one more of its batches is the user's.
func (s *Slot) Delivered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.undelivered--
}

// Held reports whether the user has all that is in the slot.
func (s *Slot) Held() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.undelivered == 0 && s.unreturned > 0
}

// Free is the number of free slots.
func (r *Ring) Free() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.free)
}

// Len is how many slots there are, free or not.
func (r *Ring) Len() int { return len(r.slots) }

// Held reports whether the user has all that is in every slot: then nothing more can come.
func (r *Ring) Held() bool {
	for _, s := range r.slots {
		if !s.Held() {
			return false
		}
	}
	return true
}

// Uses are the streams beside the compute streams that use one batch of a slot, guarded by
// the slot's lock.
type Uses []*device.Stream

// ErrUses says that a batch is used by as many streams as there is room for.
var ErrUses = errors.New("prefetch: as many streams use the batch as may")

// Lock keeps the batches of the slot from being returned until Unlock.
func (s *Slot) Lock() { s.mu.Lock() }

// Unlock ends what Lock has begun.
func (s *Slot) Unlock() { s.mu.Unlock() }

// UseWholeLocked is a use of a batch by a compute stream that it was not given to.
func (s *Slot) UseWholeLocked(compute *device.Stream) error {
	_, err := s.wholeReadLocked(compute)
	return err
}

// UseLocked makes a stream wait for a batch of these uses; its use ends with the batch's
// own. It waits for each batch anew, which also tells whether there still is such a stream.
func (s *Slot) UseLocked(of *Uses, stream *device.Stream) error {
	again := slices.Contains(*of, stream)
	if !again && len(*of) == cap(*of) {
		return ErrUses
	}
	r, err := s.beginReadLocked(stream)
	switch {
	case err != nil:
		return err
	case again:
		r.unrecorded-- // it ends once
	default:
		*of = append(*of, stream)
	}
	return nil
}

// Return notes that a batch is done with. The last one hands its slot back, and only when
// that has returned is it the ring's to give (P1).
func (r *Ring) Return(s *Slot, of *Uses, delivered bool) error {
	last, failed, err := s.takeBack(of, delivered)
	if last {
		r.Back(s, failed)
	}
	return err
}

func (s *Slot) takeBack(of *Uses, delivered bool) (last, failed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.endUsesLocked(of)
	s.unreturned--
	if !delivered {
		s.undelivered--
	}
	if last = s.unreturned == 0; last {
		err = errors.Join(err, s.endWholeReadsLocked())
	}
	s.failed = s.failed || err != nil
	return last, s.failed, err
}

// endUsesLocked marks in the streams of a batch's uses where they end. The newest Record of
// an event covers the older ones of the same stream, and the stream may be closed from here
// on.
func (s *Slot) endUsesLocked(of *Uses) (err error) {
	for _, stream := range *of {
		err = errors.Join(err, s.endReadLocked(s.reads.by(stream)))
	}
	*of = (*of)[:0]
	return err
}

// endWholeReadsLocked marks in every compute stream that read the slot where that ends.
func (s *Slot) endWholeReadsLocked() (err error) {
	for i := range s.reads.list {
		if r := &s.reads.list[i]; r.whole {
			err = errors.Join(err, s.endReadLocked(r))
		}
	}
	return err
}
