package serve

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/leat-go/leat/loader"
)

// state is where a request is. All changes are made by line, under its mutex.
type state uint8

const (
	outside  state = iota // it waits for a place
	encoding              // the crew has it
	ready                 // it stands in the line
	late                  // it does, but its answer would come behind its deadline
	inBatch               // it is in a group
	answered              // Do has its answer, or its error
)

// never is a time that does not come.
const never = time.Duration(math.MaxInt64)

// entry is what line knows of a request. Times are since the line's beginning.
type entry struct {
	of       request
	ctx      context.Context // of the Do under way
	row      *loader.Row     // its encoded row
	tenant   *tenant
	came     time.Duration
	deadline time.Duration // never, if there is none
	rank     time.Duration // when it counts as having come, by its priority
	number   uint64        // of coming: the order where ranks are equal

	state  state
	gaveUp bool  // Do is no longer interested
	err    error // of an answered one; while in a batch, that of its Decode
	done   chan struct{}

	links links[entry] // in the line, or outside
	turn  int          // index in its tenant's heap
	due   int          // index in the heap of deadlines, or of late ones
}

// request is a request whose types line does not know.
type request interface {
	// run encodes it, and tells line.
	run()
	// decode makes its answer of a row.
	decode(a Answer) error
	// recycle takes back an entry that nobody refers to any more.
	recycle()
}

func linksOfEntry(e *entry) *links[entry] { return &e.links }

func indexOfTurn(e *entry) *int { return &e.turn }
func indexOfDue(e *entry) *int  { return &e.due }

func goesFirst(a, b *entry) bool {
	return a.rank < b.rank || a.rank == b.rank && a.number < b.number
}
func isDueSooner(a, b *entry) bool { return a.deadline < b.deadline }
func isDueLater(a, b *entry) bool  { return a.deadline > b.deadline }

// errOver is the cause of a request whose time was over when a batch was formed. Its Do tells
// what the context says.
var errOver = errors.New("the request's time is over")

// slowest is how long a context's timer may take behind its deadline.
const slowest = time.Second

// overdue is the cause of a context whose time is over, which its own timer may have to tell
// yet.
func overdue(ctx context.Context) error {
	if ctx.Err() == nil && ctx.Done() != nil {
		timer := time.NewTimer(slowest)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
	}
	if ctx.Err() == nil { // it has a deadline that is never kept
		return context.DeadlineExceeded
	}
	return context.Cause(ctx)
}

// failed is e's error of a stage.
func (e *entry) failed(s Stage, now time.Duration, err error) *Error {
	return &Error{Stage: s, Waited: now - e.came, Err: err}
}

// over is e's error where the Queue has come to its end meanwhile, which was in the stage.
func (e *entry) over(s Stage, now time.Duration, err error) *Error {
	switch err {
	case ErrClosed, ErrFull, ErrTenantFull:
	default:
		s = StagePipeline
	}
	return e.failed(s, now, err)
}
