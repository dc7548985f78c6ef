package loader

import (
	"context"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/leat-go/leat/loader/internal/mix"
)

// maxChunk bounds a worker's scratch space.
const maxChunk = 2048

// attempts is how many substitutes are tried for one sample. Where a hundredth
// of the samples are bad, as many bad ones in a row do not happen.
const attempts = 16

// worker reads samples into rows: one goroutine, started and counted by the Run.
type worker struct {
	run     *Run
	row     Row
	indices []int // of the chunk at hand
	item    *item // the sample at hand, if it is of a source that gives each once
	tally   tally

	// What a report on a worker that hangs needs; see suspect.
	goroutine atomic.Uint64
	at        atomic.Pointer[batch]
	position  progress
	standIn   atomic.Int64 // the substitute being read, -1 if none

	busy atomic.Int64

	// Workers lie one behind the other, and each is written to for every sample: no
	// cache line is to hold parts of two.
	_ [128]byte
}

func newWorker(r *Run) *worker {
	w := &worker{run: r, indices: make([]int, min(r.loader.layout.batch, maxChunk))}
	w.row.layout, w.row.seed = r.loader.layout, r.loader.options.Seed
	w.row.random = rand.New(&w.row.source)
	w.row.asked = newFieldSet(len(w.row.layout.fields))
	w.standIn.Store(-1)
	return w
}

// loop serves chunks until there are no more.
func (w *worker) loop(ctx context.Context) {
	w.goroutine.Store(goroutineID())
	ended := false
	defer func() {
		if !ended {
			// A sample called runtime.Goexit. It has failed its batch, but the
			// batches before still need somebody to read them.
			go w.loop(ctx)
			return
		}
		w.run.leave()
	}()
	// The dispatcher closes the channel when ctx is done: all workers selecting on
	// one Done channel would fight for its lock.
	for c := range w.run.work {
		w.fill(ctx, c)
		// With every P busy, a goroutine that returns from a blocking driver
		// call would otherwise wait for the scheduler to preempt somebody.
		runtime.Gosched()
	}
	ended = true
}

// fill reads the samples of one chunk.
func (w *worker) fill(ctx context.Context, c chunk) {
	b := c.batch
	// In this order with the test of ctx: whoever cancels ctx and then finds no
	// batch here knows that none will be written to.
	w.at.Store(b)
	defer b.release(w.run)
	defer w.at.Store(nil)
	defer b.discard(w.run, c.lo, c.hi) // what was not encoded
	if ctx.Err() != nil || w.run.failed.Load() < b.number || b.failedBefore(c.lo) {
		return
	}
	began := time.Now()
	w.row.mem, w.row.epoch = b.slot.Bytes, b.filled.Epoch
	if b.encoders == nil {
		b.order.Fill(w.indices[:c.hi-c.lo], b.filled.Position+int64(c.lo))
	}
	next, ok := c.lo, true
	for next < c.hi && ok {
		next, ok = w.rows(ctx, c, next)
	}
	took := time.Since(began)
	w.busy.Add(int64(took))
	if ok {
		b.written.Add(int64(c.hi - c.lo))
		w.run.measure(&w.tally, took, c.hi-c.lo)
	}
}

// rows reads rows from lo on, until the chunk's end or a row that fails. It
// returns the row to go on from, or false if the rest is not to be read.
func (w *worker) rows(ctx context.Context, c chunk, lo int) (next int, ok bool) {
	row, returned := lo, false
	defer func() {
		if returned {
			return
		}
		if err := caught(recover()); err == errGoexit {
			w.fail(ctx, c.batch, row, err)
		} else {
			next, ok = w.failed(ctx, c, row, err)
		}
	}()
	every := w.run.patience()
	for look := 0; row < c.hi; row++ {
		if look--; look < 0 && ctx.Err() != nil || w.run.halted.Load() {
			returned = true
			return row, false
		}
		if look < 0 {
			look = every - 1
		}
		position := c.batch.filled.Position + int64(row)
		w.row.move(row, position)
		w.position.set(position)
		var err error
		if e := c.batch.encoders; e != nil {
			sample := e[row]
			e[row] = nil // it is Encode's from here on
			w.item, _ = sample.(*item)
			err = sample.Encode(ctx, &w.row)
		} else {
			err = w.run.loader.dataset.Read(ctx, w.indices[row-c.lo], &w.row)
		}
		if err == nil {
			err = w.row.unwritten()
		}
		if err != nil {
			returned = true
			return w.failed(ctx, c, row, err)
		}
	}
	returned = true
	return c.hi, true
}

// caught is the error behind a call that did not return; recovered is what
// recover returned in the deferred function.
func caught(recovered any) error {
	if recovered == nil {
		return errGoexit
	}
	return &PanicError{Value: recovered, Stack: debug.Stack()}
}

// failed deals with a row that could not be read. It returns the row to go on
// from, or false if the rest of the chunk is not to be read.
func (w *worker) failed(ctx context.Context, c chunk, row int, err error) (next int, ok bool) {
	if w.run.loader.options.OnError == Substitute && ctx.Err() == nil {
		if err = w.substitute(ctx, c.batch, row, err); err == nil {
			return row + 1, true
		}
	}
	w.fail(ctx, c.batch, row, err)
	return row, false
}

// fail makes err the failure of a row.
func (w *worker) fail(ctx context.Context, b *batch, row int, err error) {
	failure := &Error{
		Epoch: b.filled.Epoch, Batch: b.filled.Batch, Sample: b.sample(row),
		Position: b.filled.Position + int64(row), Stage: b.stage(), Err: err,
	}
	if w.item != nil {
		failure.of = w.item.ticket()
	}
	if ctx.Err() == nil {
		b.fail(w.run, failure)
		return
	}
	// Nobody will see the batch, and an error may be ctx's own, but not a panic.
	if _, panicked := err.(*PanicError); panicked {
		w.run.late(failure)
	}
}

// substitute reads another sample into the row, the same one on every machine.
func (w *worker) substitute(ctx context.Context, b *batch, row int, cause error) error {
	returned := false
	defer func() {
		w.standIn.Store(-1)
		if !returned { // Goexit: the callers' deferred functions are all that runs yet
			w.fail(ctx, b, row, &SubstituteError{Err: cause, Last: errGoexit})
		}
	}()
	samples, last := uint64(b.order.Len()), error(nil)
	position := b.filled.Position + int64(row)
	for attempt := 1; attempt <= attempts && ctx.Err() == nil; attempt++ {
		h := mix.Hash(w.run.loader.options.Seed, uint64(b.filled.Epoch), uint64(position), uint64(attempt), 2)
		index, _ := bits.Mul64(h, samples)
		w.standIn.Store(int64(index))
		w.row.move(row, position)
		if last = w.try(ctx, int(index)); last == nil {
			b.substitute(Substitution{
				Row: row, Position: position, Sample: b.sample(row), Substitute: int(index),
				Attempts: attempt, Err: cause,
			})
			returned = true
			return nil
		}
	}
	returned = true
	if ctx.Err() != nil {
		return cause
	}
	return &SubstituteError{Err: cause, Last: last}
}

// try reads one sample and turns a panic into an error. Goexit goes on.
func (w *worker) try(ctx context.Context, index int) (err error) {
	returned := false
	defer func() {
		if !returned {
			err = caught(recover())
		}
	}()
	err = w.run.loader.dataset.Read(ctx, index, &w.row)
	returned = true
	if err == nil {
		err = w.row.unwritten()
	}
	return err
}

// sample is the number by which the user knows the sample of a row.
func (b *batch) sample(row int) int {
	position := b.filled.Position + int64(row)
	if b.encoders != nil {
		return int(position)
	}
	return b.order.At(position)
}

func (b *batch) stage() string {
	if b.encoders != nil {
		return StageEncode
	}
	return StageRead
}
