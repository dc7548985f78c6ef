package slots

import (
	"context"
	"errors"
	"fmt"

	"github.com/leat-go/leat/device"
)

// Rest waits until the streams have passed the point where their reads end.
func (s *Slot) Rest(ctx context.Context) error {
	for i := 0; ; i++ {
		r, ok := s.at(i)
		if !ok {
			return nil
		}
		if err := r.rest(ctx); err != nil {
			return err
		}
	}
}

// at is the read of that number in this lap.
func (s *Slot) at(i int) (r read, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i >= len(s.reads.list) {
		return r, false
	}
	return s.reads.list[i], true
}

// Renew makes a slot that has failed, and has come to rest, as good as new.
func (s *Slot) Renew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads.clear()
	s.failed = false
}

// rest waits until the stream is behind the read. If its end could not be recorded it
// waits for all of the stream's work, or of the device's where the stream is closed.
func (r *read) rest(ctx context.Context) error {
	if r.unrecorded == 0 {
		return r.unlessEnded(r.done.Synchronize(ctx))
	}
	return r.unlessEnded(Rest(ctx, r.stream))
}

// Rest waits for all work of a stream, or of its device where the stream is closed.
func Rest(ctx context.Context, s *device.Stream) error {
	err := s.Synchronize(ctx)
	if errors.Is(err, device.ErrInvalid) {
		err = s.Device().Synchronize(ctx)
	}
	if err != nil {
		return fmt.Errorf("stream %q: %w", s.Name(), err)
	}
	return nil
}
