package loader

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
)

// How a Run ends without a failure, and other errors that callers decide by. errors.Is
// finds an end only in what Next returns for its own Run, and not in an error of the
// user's that wraps the end of another Run.
var (
	// ErrEpochEnd is returned by Next once after the last batch of each epoch. Package
	// prefetch returns it too.
	ErrEpochEnd = errors.New("leat: end of epoch")
	// ErrEnd is returned by Next for ever after the last epoch.
	ErrEnd = errors.New("leat: end of data")
	// ErrClosed is returned by Next after Close. Package prefetch returns it too.
	ErrClosed = errors.New("leat: closed")
	// ErrNoSamples is for a dataset of length 0, and for an iterator that gives
	// nothing in some epoch.
	ErrNoSamples = errors.New("loader: no samples")
	// ErrRankFailed is for a run that has ended because another rank's has failed; see
	// Options.Agree.
	ErrRankFailed = errors.New("loader: another rank has failed")
	// ErrTooFewSamples is for fewer samples than one global batch under Drop,
	// where every epoch would silently be empty.
	ErrTooFewSamples = errors.New("loader: fewer samples than one global batch")
)

// OptionError is a value that an option cannot have.
type OptionError struct {
	// Package is the one whose option it is; empty means package loader.
	Package string
	// Option is the field of Options, the parameter, or the Field of a sample.
	Option string
	// Value is what was found, Want what may be there.
	Value any
	Want  string
}

// Error implements error.
func (e *OptionError) Error() string {
	return fmt.Sprintf("%s: %s is %v, want %s", cmp.Or(e.Package, "loader"), e.Option, e.Value, e.Want)
}

// Stages of a batch, as errors name them.
const (
	// StageSlot is waiting for memory.
	StageSlot = "slot"
	// StageIterate is inside the user's iterator.
	StageIterate = "iterate"
	// StageRead is inside Dataset.Read.
	StageRead = "read"
	// StageEncode is inside an iterable's encode function.
	StageEncode = "encode"
	// StageCost is inside Coster.Cost.
	StageCost = "cost"
	// StageAgree is inside Options.Agree.
	StageAgree = "agree"
	// StageClose is inside the Close of an iterable's sample.
	StageClose = "close"
)

// Error is a failure and where it happened. errors.Is and errors.As reach the
// user's own error inside.
type Error struct {
	// Epoch and Batch are counted from 0, the batch within its epoch.
	Epoch, Batch int
	// Sample is the dataset's index, or the number in its stream of an iterable's
	// sample; -1 where no sample is to blame.
	Sample int
	// Position is the sample's place in the epoch's order.
	Position int64
	// Shard is that of a Stream, -1 where none is to blame.
	Shard int
	// Origin is where the sample comes from, if that is known: a Stream's if it is Located,
	// a Dataset's if that is a Locator.
	Origin Origin
	// Stage is one of the Stage constants.
	Stage string
	// Err is the cause.
	Err error

	of ticket // which sample of a source that gives each once it is the failure of
}

// Error implements error.
func (e *Error) Error() string {
	cause := fmt.Sprint(e.Err)
	if _, ok := e.Err.(*OnePassError); ok {
		cause = strings.TrimPrefix(cause, "loader: ") // which stands in front already
	}
	if e.Origin != (Origin{}) {
		cause = strings.TrimPrefix(cause, e.Origin.String()+": ") // and so does this
	}
	return fmt.Sprintf("loader: epoch %d, batch %d%s: %s: %s", e.Epoch, e.Batch, e.place(), e.Stage, cause)
}

// place is the part of the message that tells the sample.
func (e *Error) place() string {
	what, number := "shard", e.Shard
	switch {
	case e.Sample < 0:
		return ""
	case e.Shard < 0:
		what, number = "sample", e.Sample
	}
	place := fmt.Sprintf(", %s %d (position %d)", what, number, e.Position)
	if e.Origin != (Origin{}) {
		place += ", " + e.Origin.String()
	}
	return place
}

// Unwrap returns the cause, in which ErrEpochEnd, ErrEnd and ErrClosed are not found:
// they are the ends of a Run, and the user's error may wrap that of another one.
func (e *Error) Unwrap() error { return disown(e.Err) }

// disown hides the ends of other Runs in an error of the user's.
func disown(err error) error {
	for _, end := range ends {
		if errors.Is(err, end) {
			return foreign{err}
		}
	}
	return err
}

var ends = [...]error{ErrEpochEnd, ErrEnd, ErrClosed}

// foreign is the user's error that wraps an end, which it is not to be taken for.
type foreign struct{ err error }

func (f foreign) Error() string { return f.err.Error() }

func (f foreign) Is(target error) bool {
	for _, end := range ends {
		if target == end {
			return false
		}
	}
	return errors.Is(f.err, target)
}

func (f foreign) As(target any) bool { return errors.As(f.err, target) }

// PanicError is a panic in the user's code, caught so that the program can end
// in its own way.
type PanicError struct {
	// Value is what panic was called with.
	Value any
	// Stack is the goroutine's stack at the panic.
	Stack []byte
}

// Error implements error. It is one line, with the place of the panic; Stack and %+v have
// the way there.
func (e *PanicError) Error() string {
	if asked, ok := e.Value.(*FieldError); ok {
		return fmt.Sprintf("%v%s", asked, userCode(e.Stack))
	}
	return fmt.Sprintf("panic: %v%s", e.Value, userCode(e.Stack))
}

// Unwrap returns Value where it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// FieldError says that there is no field of the name that was asked for, or that it has
// another type.
type FieldError struct {
	// Name is the field asked for. Type is the Go type of the elements asked for, empty
	// where it was asked for as bytes, and "ragged" where its length was to be set.
	Name, Type string
	// Fields are those that there are.
	Fields []Field
}

// Error implements error. It names the fields that there are.
func (e *FieldError) Error() string {
	for _, f := range e.Fields {
		if f.Name == e.Name {
			return fmt.Sprintf("field %v asked for as %s", f, e.Type)
		}
	}
	return fmt.Sprintf("no field %q; a sample has %s", e.Name, listed(e.Fields))
}

// SizeError is a sample's value that does not fill its field exactly or, if that is
// ragged, does not fit it.
type SizeError struct {
	Field Field
	// Got and Want are numbers of elements; of a ragged field Want is the most that a
	// sample may have.
	Got, Want int
	// Length is set if they count along the field's first dimension alone, as Row.SetLen
	// does.
	Length bool
}

// Error implements error.
func (e *SizeError) Error() string {
	switch {
	case e.Length:
		return fmt.Sprintf("a length of %d for field %v, want 0 to %d", e.Got, e.Field, e.Want)
	case e.Field.Ragged != nil && e.Got > e.Want:
		return fmt.Sprintf("a value of %d elements for field %v, want at most %d", e.Got, e.Field, e.Want)
	case e.Field.Ragged != nil:
		return fmt.Sprintf("a value of %d elements for field %v, want as many as fill its other dimensions %v", e.Got, e.Field, e.Field.Shape[1:])
	}
	return fmt.Sprintf("a value of %d elements for field %v, want %d", e.Got, e.Field, e.Want)
}

// UnwrittenError is a field that the code for a sample left unwritten and returned
// no error: it would have delivered what another sample left in its place. The
// Error around it names the sample.
type UnwrittenError struct {
	Field Field
	// Offset and Bytes are the part of the field's bytes in the row that was not
	// written, found in builds with the tag invariants only. Bytes is 0 where the
	// field was not even asked for.
	Offset, Bytes int64
	// Length is set if the length of a ragged field was not told, by Write or Row.SetLen.
	Length bool
}

// Error implements error.
func (e *UnwrittenError) Error() string {
	if e.Length {
		return fmt.Sprintf("field %v was asked for and its length never told: Row.SetLen says how much of it counts", e.Field)
	}
	if e.Bytes == 0 {
		return fmt.Sprintf("field %v was not written: it was never asked for", e.Field)
	}
	return fmt.Sprintf("field %v was written in part: %d bytes from byte %d on were not", e.Field, e.Bytes, e.Offset)
}

// StallError is a batch that took longer than Options.StallTimeout. The Error
// around it names the sample and the stage.
type StallError struct {
	// Timeout is the option; Age is how long the batch has been waited for.
	Timeout, Age time.Duration
	// Stack is the stack of the goroutine that hangs, nil if none is to blame.
	Stack []byte
}

// Error implements error. It is one line, with the place; Stack and %+v have the way there.
func (e *StallError) Error() string {
	return fmt.Sprintf("no batch for %v, StallTimeout is %v%s", e.Age, e.Timeout, userCode(e.Stack))
}

// StuckError is user code that did not return within the grace period after its context
// was cancelled or, if it has no context, after it should have ended. Its goroutine lives
// on until it returns. Until then a slot that it may write to is in quarantine. Package
// prefetch returns this error too.
type StuckError struct {
	// Epoch, Batch, Sample and Position are as in Error.
	Epoch, Batch, Sample int
	Position             int64
	// Shard is that of a Stream, -1 of other data.
	Shard int
	// Stage is one of the Stage constants, or what package prefetch names in their
	// place.
	Stage string
	// Grace is how long it was waited for.
	Grace time.Duration
	// Stack is the stack of the goroutine that hangs, nil if it is not known.
	Stack []byte
}

// Error implements error. It is one line, with the place; Stack and %+v have the way there.
func (e *StuckError) Error() string {
	does := "did not return within"
	switch e.Stage {
	case StageIterate, StageRead, StageEncode, StageAgree:
		does = "ignored its context for"
	}
	sample := ""
	switch {
	case e.Shard >= 0 && e.Sample >= 0:
		sample = fmt.Sprintf(", shard %d (position %d)", e.Shard, e.Position)
	case e.Sample >= 0:
		sample = fmt.Sprintf(", sample %d (position %d)", e.Sample, e.Position)
	}
	return fmt.Sprintf("leat: epoch %d, batch %d%s: %s %s %v%s", e.Epoch, e.Batch, sample, e.Stage, does, e.Grace, userCode(e.Stack))
}

// SubstituteError is a sample that could not be substituted.
type SubstituteError struct {
	// Err is why the sample itself could not be read.
	Err error
	// Last is why the last of its substitutes could not be read either, nil where
	// none was tried because MaxSubstituted was reached.
	Last error
}

// Error implements error.
func (e *SubstituteError) Error() string {
	if e.Last == nil {
		return fmt.Sprintf("one more than MaxSubstituted: %v", e.Err)
	}
	return fmt.Sprintf("%v; %d substitutes failed too, the last: %v", e.Err, attempts, e.Last)
}

// Unwrap returns both causes.
func (e *SubstituteError) Unwrap() []error {
	if e.Last == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Last}
}

// The failures of an Iterable that gives nil.
var (
	errNoIterator = errors.New("Samples returned nil, want an iterator")
	errNoSample   = errors.New("the iterator gave neither a sample nor an error")
	// Those of a Stream.
	errNoReader  = errors.New("Open returned neither a reader nor an error")
	errNoEncoder = errors.New("the reader gave neither a sample nor an error")
	errNoJSON    = errors.New("AppendMark gave no JSON value")
	errFlush     = errors.New("a reader returned Flush")
)

// errSkipped is for rows that nobody wrote though nothing went wrong.
var errSkipped = errors.New("samples were skipped: a mistake in package loader")
