package serve

import (
	"errors"
	"fmt"
	"time"

	"github.com/leat-go/leat/loader"
)

var (
	// ErrFull is found in the error of a request for which there was no place.
	ErrFull = errors.New("as many requests are open as Options.Limit allows")
	// ErrTenantFull is found where there was none for the request's tenant.
	ErrTenantFull = errors.New("as many requests of this tenant are open as Options.TenantLimit allows")
	// ErrTooLarge is found where Model.Size said more than Options.MaxSize.
	ErrTooLarge = errors.New("the request is larger than Options.MaxSize allows")
	// ErrClosed is found where Shutdown or Close was called.
	ErrClosed = errors.New("the Queue is closed")
)

// Stage is a part of a request's way.
type Stage string

const (
	// StagePlace is before it has a place: refused, or waiting under Options.Block.
	StagePlace Stage = "a place"
	// StageSize is Model.Size.
	StageSize Stage = "size"
	// StageEncode is Model.Encode.
	StageEncode Stage = "encode"
	// StageLine is the wait for a batch.
	StageLine Stage = "the line"
	// StageBatch is from the choice of the batch's requests to the answer.
	StageBatch Stage = "a batch"
	// StageStep is the step, whose error all requests of its batch get.
	StageStep Stage = "step"
	// StageDecode is Model.Decode.
	StageDecode Stage = "decode"
	// StagePipeline is the pipeline, whose error ends the Queue.
	StagePipeline Stage = "pipeline"
)

// Error is why a request has no answer.
type Error struct {
	// Stage is how far it came.
	Stage Stage
	// Waited is the time from the call of Do to the failure.
	Waited time.Duration
	// Err is ErrFull, ErrTenantFull, ErrTooLarge or ErrClosed, the cause of the request's
	// context, an error of the user's own, a *loader.PanicError, a *loader.GoexitError, or
	// the pipeline's.
	Err error
}

func (e *Error) Error() string {
	switch e.Stage {
	case StagePlace:
		return fmt.Sprintf("serve: before it had a place, after %v: %v", e.Waited, e.Err)
	case StageLine, StageBatch:
		return fmt.Sprintf("serve: in %s, after %v: %v", e.Stage, e.Waited, e.Err)
	}
	return fmt.Sprintf("serve: %s: %v", e.Stage, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// StuckError is code of the user's that has not returned when the Queue was closed.
type StuckError struct {
	// Calls is how many calls of Size, Encode, Decode and the step are under way.
	Calls int
	// Grace is how long Shutdown or Close has waited.
	Grace time.Duration
}

func (e *StuckError) Error() string {
	return fmt.Sprintf("serve: %d calls of Encode, Decode or the step have not returned in %v", e.Calls, e.Grace)
}

// caught is what ended user code that has not returned: recovered is recover's result.
func caught(recovered any, stack []byte) error {
	if recovered == nil {
		return &loader.GoexitError{Stack: stack}
	}
	return &loader.PanicError{Value: recovered, Stack: stack}
}
