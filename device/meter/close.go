package meter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leat-go/leat/device"
)

// closeTimeout is how long Close waits for the values under way.
const closeTimeout = 5 * time.Second

// errClosed is the end of a meter, for which users know the device's word.
type errClosed struct{}

func (errClosed) Error() string { return "meter: closed" }

func (errClosed) Is(target error) bool { return target == device.ErrClosed }

// close frees the meter once. A call during the first waits for it: what its caller frees
// next may be what the first still waits for.
func (r *ring) close() error {
	r.mu.Lock()
	first := !r.closing
	r.closing = true // nothing is submitted from here on
	r.mu.Unlock()
	if first {
		defer close(r.closed)
		r.closeErr = r.end()
		return r.closeErr
	}
	select {
	case <-r.closed:
		return nil
	default:
		<-r.closed
		return r.closeErr
	}
}

func (r *ring) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := r.rest(ctx); err != nil {
		if ctx.Err() != nil {
			go r.reap()
		}
		return fmt.Errorf("meter: Close: values may still be under way, and nothing was freed: %w", err)
	}
	err := r.release()
	if errors.Is(err, device.ErrClosed) {
		return fmt.Errorf("meter: Close: close a Meter before its device: %w", err)
	}
	if err != nil {
		return fmt.Errorf("meter: Close: %w", err)
	}
	return nil
}

// reap frees what Close had to leave, when the device's work ends.
func (r *ring) reap() {
	if r.rest(context.Background()) == nil {
		_ = r.release()
	}
}

// rest waits until nothing writes to the places any more.
func (r *ring) rest(ctx context.Context) error {
	for _, p := range r.pending {
		if err := p.arrived.Synchronize(ctx); err != nil {
			return err
		}
	}
	for _, p := range r.unknown {
		err := p.stream.Synchronize(ctx)
		if errors.Is(err, device.ErrInvalid) { // the stream is closed, and its work may go on
			err = r.dev.Synchronize(ctx)
		}
		if err != nil {
			return err
		}
	}
	r.witness.Tell()
	return nil
}

// release frees all. Once the device has ended every call says so, and the first is
// enough.
func (r *ring) release() error {
	var errs []error
	for _, p := range r.places {
		errs = append(errs, p.arrived.Close())
	}
	errs = append(errs, r.host.Close())
	for _, err := range errs {
		if errors.Is(err, device.ErrClosed) || errors.Is(err, device.ErrFault) {
			return err
		}
	}
	return errors.Join(errs...)
}
