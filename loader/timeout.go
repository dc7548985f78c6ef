package loader

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"
)

// maxLate is how many Reads may be late at once, each with a goroutine and a sample's
// memory of its own.
const maxLate = 64

// TimeoutError is a Read that took longer than Options.ReadTimeout. The Error or the
// Substitution around it names the sample.
type TimeoutError struct {
	// Timeout is the option.
	Timeout time.Duration
	// Late is how many Reads were late at that moment and had not returned, this one
	// included. With more than 64 of them the run ends, also under Substitute.
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

// timed is a worker's Dataset under Options.ReadTimeout.
//
// A Read can't be stopped: it may ignore its context, and go on to write to its row. So it
// runs on a goroutine of its own, the reader, into memory of its own, from which the row is
// copied when it has returned in time. One that has not is left alone with both: it can
// write to no batch, nobody waits for it but Close, and the worker takes another reader.
// This costs a sample the hand-over to another goroutine and a copy.
type timed struct {
	Dataset
	worker *worker
	timer  *time.Timer
	reader *reader // nil before the first Read, and after a late one
}

func newTimed(w *worker) *timed {
	t := &timed{Dataset: w.run.loader.dataset, worker: w, timer: time.NewTimer(time.Hour)}
	t.timer.Stop()
	return t
}

// Read implements Dataset.
func (t *timed) Read(ctx context.Context, index int, row *Row) error {
	if t.reader == nil {
		t.reader = t.start(ctx, row)
	}
	r := t.reader
	r.row.epoch = row.epoch
	r.row.move(0, row.position)
	t.timer.Reset(t.worker.run.loader.options.ReadTimeout)
	r.requests <- index
	select {
	case err := <-r.done:
		t.timer.Stop()
		return t.returned(err, row)
	case <-t.timer.C:
	}
	select {
	case err := <-r.done: // at the last moment
		return t.returned(err, row)
	default:
	}
	t.reader = nil
	return r.leave(index)
}

// returned deals with a Read that has returned in time.
func (t *timed) returned(err error, row *Row) error {
	r := t.reader
	if err == errGoexit { // does to the worker what it does without a time limit
		t.reader = nil
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

// end lets the reader end.
func (t *timed) end() {
	if t.reader != nil {
		close(t.reader.requests)
		t.reader = nil
	}
}

// reader reads one sample after the other for a worker: one goroutine, counted by the Run.
// It ends when requests is closed, or when a Read calls runtime.Goexit.
type reader struct {
	worker   *worker
	row      Row // the worker's until it sends a request, and again when done has the answer
	cancel   context.CancelCauseFunc
	requests chan int
	done     chan error
	ended    bool // guarded by lateReads
}

// start starts a reader of samples like row's.
func (t *timed) start(ctx context.Context, row *Row) *reader {
	layout, err := NewLayout(row.layout.names()[:row.layout.written], 1)
	if err != nil {
		panic(err) // a batch of several has room
	}
	r := &reader{worker: t.worker, row: newRow(layout, row.seed), requests: make(chan int), done: make(chan error, 1)}
	r.row.mem, r.row.random = aligned(layout.Size()), rand.New(&r.row.source)
	ctx, r.cancel = context.WithCancelCause(ctx)
	t.worker.run.live.Add(1)
	go r.loop(ctx)
	return r
}

// loop reads what is asked for. done has room for what nobody waits for any more.
func (r *reader) loop(ctx context.Context) {
	run, ended := r.worker.run, false
	defer run.leave()
	defer r.cancel(nil)
	defer func() {
		if !ended {
			r.done <- errGoexit
		}
		run.lateReads.remove(r)
	}()
	r.worker.goroutine.Store(goroutineID())
	for index := range r.requests {
		r.done <- r.read(ctx, index)
	}
	ended = true
}

// read reads one sample and turns a panic into an error. Goexit goes on.
func (r *reader) read(ctx context.Context, index int) (err error) {
	returned := false
	defer func() {
		if !returned {
			err = caught(recover())
		}
	}()
	err = r.worker.run.loader.dataset.Read(ctx, index, &r.row)
	returned = true
	return err
}

// leave leaves a reader alone with its late Read, whose context it cancels.
func (r *reader) leave(index int) *TimeoutError {
	w := r.worker
	b := w.at.Load()
	s := suspect{
		epoch: b.filled.Epoch, number: b.filled.Batch, sample: index, position: r.row.position,
		stage: StageRead, goroutine: w.goroutine.Load(),
	}
	e := &TimeoutError{Timeout: w.run.loader.options.ReadTimeout, Stack: stackOf(s.goroutine)}
	e.Late = w.run.lateReads.add(r, s)
	r.cancel(e)
	close(r.requests)
	return e
}

// lateReads are the Reads that were not waited for any longer, and that have not returned.
type lateReads struct {
	mu    sync.Mutex
	reads map[*reader]suspect
}

// add enters a Read unless it has ended, and returns how many are late.
func (l *lateReads) add(r *reader, s suspect) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reads == nil {
		l.reads = make(map[*reader]suspect)
	}
	if !r.ended {
		l.reads[r] = s
	}
	return len(l.reads)
}

// remove is for a reader that ends, late or not.
func (l *lateReads) remove(r *reader) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.ended = true
	delete(l.reads, r)
}

// suspects are the late Reads. They can write to no batch.
func (l *lateReads) suspects() (all []suspect) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.reads {
		all = append(all, s)
	}
	return all
}

// take copies a whole sample from another row of the same fields.
func (r *Row) take(from *Row) {
	copy(r.lengths, from.lengths)
	for field := range from.layout.Written() {
		r.asked.add(field)
		copy(r.used(field), from.used(field))
	}
}
