package prefetch

import (
	"errors"
	"fmt"
	"strings"

	"github.com/leat-go/leat/loader"
)

var (
	// ErrEpochEnd is returned by Reader.Next behind the epoch's last batch, and
	// from then on.
	ErrEpochEnd = loader.ErrEpochEnd
	// ErrClosed is returned once the Prefetcher is closed.
	ErrClosed = loader.ErrClosed
	// ErrBusy is returned by Open, Start, Seek, Restore and the ranges while a Reader or
	// a range is open, and by Next while another goroutine is in it.
	ErrBusy = errors.New("prefetch: busy: a range or a Reader is open; a Reader is until its Close, also after ErrEpochEnd")
	// ErrLeases is found in a *LeaseError.
	ErrLeases = errors.New("every slot is leased")

	// ErrMaxStreams is found in a *StreamError: as many streams use the batch already
	// as Options.Streams.Max allows.
	ErrMaxStreams = errors.New("as many streams use the batch already as Options.Streams.Max allows")

	errNoStream = errors.New("the stream is nil")
	errNoField  = errors.New("there is none of that name")
	errOnDevice = errors.New("it is in device memory: take Field(name).View, look at it by Download, or bring results back by Map")
	errPageable = errors.New("a copy from pageable memory waits for compute, beyond Options.CloseTimeout")
)

// uploadError says of which upload err is.
func uploadError(first *loader.Filled, err error) error {
	return fmt.Errorf("prefetch: uploading batch %d of epoch %d: %w", first.Batch, first.Epoch, err)
}

// disown hides what Next decides by in an error that isn't its own.
func disown(err error) error {
	if _, own := err.(*LeaseError); own || !errors.Is(err, ErrEpochEnd) && !errors.Is(err, ErrLeases) {
		return err
	}
	return foreign{err}
}

// A foreign error is one of the user's that wraps ErrEpochEnd or ErrLeases, which it
// is not to be taken for.
type foreign struct{ err error }

func (f foreign) Error() string { return f.err.Error() }

func (f foreign) Is(target error) bool {
	return target != ErrEpochEnd && target != ErrLeases && errors.Is(f.err, target)
}

func (f foreign) As(target any) bool { return errors.As(f.err, target) }

// StreamError says why Batch.UsedOn refused a stream.
type StreamError struct {
	// Position says which batch it was.
	Position Position
	// Stream is the stream's name.
	Stream string
	// Err is ErrMaxStreams or the device's error: errors.Is finds
	// device.ErrUnsupported in it where the stream's device is no peer,
	// device.ErrInvalid where the stream is closed, device.ErrClosed where its device is.
	Err error
}

func (e *StreamError) Error() string {
	return fmt.Sprintf("prefetch: UsedOn: batch %d of epoch %d on stream %q: %v", e.Position.Batch, e.Position.Epoch, e.Stream, e.Err)
}

func (e *StreamError) Unwrap() error { return e.Err }

// StageError is an error of the user's code in a stage: a Transform's Apply, or the step
// of a Map.
type StageError struct {
	// Stage is "transform" or "step".
	Stage string
	// Position says which batch it was.
	Position Position
	// Err is the user's own error, a *loader.PanicError or a *loader.GoexitError.
	Err error
}

// The stages of a StageError.
const (
	inTransform = "transform"
	inStep      = "step"
)

func (e *StageError) Error() string {
	return fmt.Sprintf("prefetch: %s of batch %d of epoch %d: %v", e.Stage, e.Position.Batch, e.Position.Epoch, e.Err)
}

func (e *StageError) Unwrap() error { return e.Err }

// LeaseError says that Next can't return a batch because the caller holds all the
// slots there are. Waiting would be for ever, so Next fails at once.
type LeaseError struct {
	// Outstanding is the number of batches not released.
	Outstanding int
	// Taken says for each which batch it is and where it was taken.
	Taken []string
}

func (e *LeaseError) Error() string {
	return fmt.Sprintf("prefetch: %d leases outstanding and no slot left: release a batch, clone it, or raise Depth (without a device Memory.HostSlots)\n\t%s",
		e.Outstanding, strings.Join(e.Taken, "\n\t"))
}

func (e *LeaseError) Unwrap() error { return ErrLeases }

// CloseError says what Close had to leave. A reaper frees what the device still
// works on when it is done; leased batches are freed when they are released.
type CloseError struct {
	// Slots are the device slots that compute was still working on, and HostSlots is
	// true if copies were.
	Slots     int
	HostSlots bool
	// Leased says for each batch not released which one and where it was taken.
	Leased []string
	// Err is what ended the wait.
	Err error
}

func (e *CloseError) Error() string {
	var parts []string
	if e.HostSlots {
		parts = append(parts, "copies are still in flight")
	}
	if e.Slots > 0 {
		parts = append(parts, fmt.Sprintf("%d device slots are still being read", e.Slots))
	}
	if len(e.Leased) > 0 {
		parts = append(parts, "batches are not released: "+strings.Join(e.Leased, "; "))
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return "prefetch: Close: " + strings.Join(parts, "; ")
}

func (e *CloseError) Unwrap() error { return e.Err }
