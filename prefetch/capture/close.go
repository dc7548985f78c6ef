package capture

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// closeTimeout is how long Close waits for the steps under way.
const closeTimeout = 5 * time.Second

// close is Close.
func (s *step) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	err := s.free(ctx)
	switch {
	case err == nil:
		s.detach()
	case ctx.Err() != nil:
		go func() { // the reaper: it ends when the device's work does, and Runs under way
			if s.free(context.Background()) == nil {
				s.detach()
			}
		}()
		return fmt.Errorf("capture: Close: steps may still be under way, and nothing was freed: %w", err)
	default:
		return fmt.Errorf("capture: Close: %w", err)
	}
	return nil
}

// free ends the Step, and frees everything when its work is done. It may be called again,
// and at once: by Close, by a reaper and by the Prefetcher's Close.
func (s *step) free(ctx context.Context) error {
	s.end(ErrClosed)
	select {
	case s.turn <- struct{}{}:
	case <-s.freed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for _, l := range s.lanes {
		if err := l.rest(ctx); err != nil {
			<-s.turn
			return err
		}
	}
	var errs []error
	for _, l := range s.lanes {
		errs = append(errs, l.close())
	}
	s.lanes = nil
	close(s.freed) // and the turn is kept
	return errors.Join(errs...)
}

// closed reports whether the Step has ended.
func (s *step) closed() bool { return s.ctx.Err() != nil }
