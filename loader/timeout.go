package loader

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// maxLate is how many Reads of a Run may be late at once, each with a goroutine and a
// sample's memory of its own.
const maxLate = 64

// TimeoutError is a sample whose Read, or Encode, took longer than Options.ReadTimeout. The
// Error, the Substitution or the Skipped around it names the sample.
type TimeoutError struct {
	// Timeout is the option.
	Timeout time.Duration
	// Late is how many Reads were late at that moment and had not returned, this one
	// included. With more than 64 of them the run ends, whatever OnError says.
	Late int
	// Stack is where the Read hung, nil if it returned meanwhile.
	Stack []byte
}

// Error implements error. It is one line, with the place; Stack and %+v have the way there.
func (e *TimeoutError) Error() string {
	s := fmt.Sprintf("not read within %v, ReadTimeout", e.Timeout)
	if e.Late > maxLate {
		s = fmt.Sprintf("%s; %d Reads are late at once, more than %d", s, e.Late, maxLate)
	}
	return s + userCode(e.Stack)
}

// Format implements fmt.Formatter: %+v adds the stack.
func (e *TimeoutError) Format(s fmt.State, verb rune) { format(s, verb, e) }

// hopeless reports whether no other sample may be read in the place of one that failed.
func hopeless(err error) bool {
	e, ok := err.(*TimeoutError)
	return ok && e.Late > maxLate
}

// limit is Options.ReadTimeout for one goroutine that has samples read: a worker, or a
// shard. For a Dataset it is the Dataset with the limit.
//
// A Read can't be stopped: it may ignore its context, and go on to write to its row. So it
// runs on a goroutine of its own, the reader, into memory of its own, from which the row is
// copied when it has returned in time. One that has not is left alone with both: it can
// write to no batch, nobody waits for it, and the next sample has another reader.
// This costs a sample the hand-over to another goroutine and a copy.
type limit struct {
	Dataset   // nil for a Stream
	run       *Run
	timer     *time.Timer
	reader    *reader       // nil before the first Read, and after a late one
	exit      error         // of a reader that user code has ended
	goroutine atomic.Uint64 // the reader's
}

// newLimit makes the limit, nil if there is none.
func newLimit(r *Run) *limit {
	if r.loader.options.ReadTimeout == 0 {
		return nil
	}
	l := &limit{Dataset: r.loader.dataset, run: r, timer: time.NewTimer(time.Hour)}
	l.timer.Stop()
	return l
}

// Read implements Dataset.
func (l *limit) Read(ctx context.Context, index int, row *Row) error {
	return l.ask(ctx, request{index: index}, row)
}

// encode is sample.Encode with the limit.
func (l *limit) encode(ctx context.Context, sample Encoder, row *Row) error {
	return l.ask(ctx, request{encoder: sample}, row)
}

// ask has the reader read a sample.
func (l *limit) ask(ctx context.Context, q request, row *Row) error {
	if l.reader == nil {
		l.reader = l.start(ctx, row)
	}
	r := l.reader
	r.row.epoch = row.epoch
	r.row.move(0, row.position)
	l.timer.Reset(l.run.loader.options.ReadTimeout)
	r.requests <- q
	select {
	case err := <-r.done:
		l.timer.Stop()
		return l.returned(err, row)
	case <-l.timer.C:
	}
	select {
	case err := <-r.done: // at the last moment
		return l.returned(err, row)
	default:
	}
	return l.leave()
}

// returned deals with a Read that has returned in time.
func (l *limit) returned(err error, row *Row) error {
	r := l.reader
	if r.exited { // does to the caller what it does without a limit
		l.reader, l.exit = nil, err
		runtime.Goexit()
	}
	if err == nil {
		err = r.row.unwritten()
	}
	if err == nil {
		row.take(&r.row)
	}
	return err
}

// exited is err of exited, which where there is a limit is of the reader.
func (l *limit) exited(err error) error {
	if l == nil || l.exit == nil {
		return err
	}
	return l.exit
}

// leave leaves the reader alone with a late Read, whose context it cancels.
func (l *limit) leave() *TimeoutError {
	r := l.reader
	l.reader = nil
	e := &TimeoutError{Timeout: l.run.loader.options.ReadTimeout, Stack: stackOf(l.goroutine.Load())}
	late, has := l.run.lateReads.add(r)
	if has {
		l.run.leave() // for it: nobody waits for it any more
	}
	e.Late = late
	r.cancel(e)
	close(r.requests)
	return e
}

// end lets the reader end.
func (l *limit) end() {
	if l != nil && l.reader != nil {
		close(l.reader.requests)
		l.reader = nil
	}
}

// reader reads one sample after the other for others: one goroutine, counted by the Run. It
// ends when requests is closed, or when a Read calls runtime.Goexit.
type reader struct {
	run      *Run
	row      Row // the caller's until it sends a request, and again when done has the answer
	cancel   context.CancelCauseFunc
	requests chan request
	done     chan error // has room for what nobody waits for any more
	exited   bool       // whether user code has ended it; set before done has the error
	ended    bool       // guarded by lateReads
}

// request is a sample: of a Dataset its index.
type request struct {
	encoder Encoder // else nil
	index   int
}

// start starts a reader of samples like row's.
func (l *limit) start(ctx context.Context, row *Row) *reader {
	layout, err := NewLayout(row.layout.names(), 1)
	if err != nil {
		panic(err) // a batch of several has room
	}
	r := &reader{run: l.run, row: newRow(layout, row.seed), requests: make(chan request), done: make(chan error, 1)}
	r.row.mem, r.row.random = aligned(layout.Size()), rand.New(&r.row.source)
	ctx, r.cancel = context.WithCancelCause(ctx)
	l.run.live.Add(1)
	go r.loop(ctx, &l.goroutine)
	return r
}

// loop reads what is asked for.
func (r *reader) loop(ctx context.Context, goroutine *atomic.Uint64) {
	ended := false
	defer r.cancel(nil)
	defer func() {
		if !ended {
			r.exited = true
			r.done <- exited()
		}
		if late := r.run.lateReads.remove(r); !late {
			r.run.leave()
		}
	}()
	goroutine.Store(goroutineID())
	for q := range r.requests {
		r.done <- r.read(ctx, q)
	}
	ended = true
}

// read reads one sample and turns a panic into an error. Goexit goes on.
func (r *reader) read(ctx context.Context, q request) (err error) {
	returned := false
	defer func() {
		if !returned {
			err = caught(recover())
		}
	}()
	if q.encoder != nil {
		err = q.encoder.Encode(ctx, &r.row)
	} else {
		err = r.run.loader.dataset.Read(ctx, q.index, &r.row)
	}
	returned = true
	return err
}

// lateReads are the Reads that were not waited for any longer, and that have not returned.
type lateReads struct {
	mu    sync.Mutex
	reads map[*reader]bool
}

// add enters a Read unless it has ended, and returns how many are late, and whether it is.
func (l *lateReads) add(r *reader) (all int, late bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reads == nil {
		l.reads = make(map[*reader]bool)
	}
	if !r.ended {
		l.reads[r] = true
	}
	return len(l.reads), !r.ended
}

// remove is for a reader that ends. It reports whether it was late.
func (l *lateReads) remove(r *reader) (late bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.ended = true
	late = l.reads[r]
	delete(l.reads, r)
	return late
}

// take copies a whole sample from another row of the same fields.
func (r *Row) take(from *Row) {
	copy(r.lengths, from.lengths)
	for field := range from.layout.Written() {
		r.asked.add(field)
		copy(r.used(field), from.used(field))
	}
}
