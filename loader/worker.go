package loader

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/leat-go/leat/observe/journal"
)

// maxClaim bounds the rows of a claim, and a worker's scratch space with it.
const maxClaim = 2048

// worker reads samples into rows: one goroutine, which the Run counts and starts when
// there is something to read for it.
type worker struct {
	run    *Run
	number int
	near   NearMemory // nil if no processor is nearer to the memory than another

	dataset    Dataset // the loader's, or limit
	limit      *limit  // nil if there is none
	row        Row
	pace       pace
	claim      span       // the rows at hand; those that are given back are taken off
	began      time.Time  // with them,
	ended      time.Time  // and was done
	indices    []int      // of them
	candidates candidates // for the sample at hand, if any sample is excluded
	item       *item      // the sample at hand, if it is of a source that gives each once
	origin     Origin     // that of the sample at hand, if it is of a Stream

	// What a report on a worker that hangs needs; see suspect.
	goroutine atomic.Uint64
	at        atomic.Pointer[batch]
	position  progress
	standIn   atomic.Int64 // the substitute being read, -1 if none

	turn    int64        // counts the claims
	several atomic.Int64 // the turn of the last claim, if it was of several rows, else 0
	late    atomic.Int64 // the turn in which the inspector found the worker late

	usual   time.Duration // a sample takes that is claimed by itself
	busy    atomic.Int64
	read    atomic.Int64 // rows
	slowest slowest

	// Workers lie one behind the other, and each is written to for every sample: no
	// cache line is to hold parts of two.
	_ [128]byte
}

func newWorker(r *Run, number int) *worker {
	w := &worker{run: r, number: number, indices: make([]int, min(r.loader.layout.batch, maxClaim))}
	w.near, _ = r.mem.(NearMemory)
	w.dataset = r.loader.dataset
	if !r.loader.options.Skips { // else the shards have it
		if w.limit = newLimit(r); w.limit != nil {
			w.dataset = w.limit
		}
	}
	w.pace.rows = 1
	w.row = newRow(r.loader.layout, r.loader.options.Seed)
	w.row.random = rand.New(&w.row.source)
	w.standIn.Store(-1)
	return w
}

// loop reads rows until there are no more.
func (w *worker) loop(ctx context.Context) {
	if to := w.run.recorder; to != nil {
		to.Goroutine(journal.Worker, w.number)
	}
	known := false // the goroutine: to find that out takes as long as many a sample
	ended, retired := false, false
	r := w.run
	defer func() {
		if !ended {
			// A sample called runtime.Goexit. It has failed its batch, but the
			// batches before still need somebody to read them.
			go w.loop(ctx)
			return
		}
		if !retired {
			w.limit.end()
		}
		r.leave()
	}()
	for {
		// Nothing is claimed any more once the dispatcher has ended, which it does
		// when ctx is done: all workers selecting on one Done channel would fight
		// for its lock.
		b, rows := r.lineup.claim(w.pace.rows)
		if b == nil {
			ended = true
			return
		}
		if !known {
			w.goroutine.Store(goroutineID())
			known = true
		}
		w.claim = rows
		w.fill(ctx, b)
		if t := r.tuning; t != nil {
			t.look(w.ended)
			if r.reserve.retire(w) { // another goroutine may have w already
				ended, retired = true, true
				return
			}
		}
		r.reserve.yield(w)
	}
}

// fill reads the samples of the claimed rows.
func (w *worker) fill(ctx context.Context, b *batch) {
	// In this order with the test of ctx: whoever cancels ctx and then finds no
	// batch here knows that none will be written to.
	w.at.Store(b)
	defer func() {
		b.discard(w.run, w.claim) // what was not encoded
		w.at.Store(nil)
		b.release(w.run, w.claim.hi-w.claim.lo)
	}()
	if ctx.Err() != nil || b.unwanted(w.run, w.claim.lo) {
		w.skip(b)
		return
	}
	claimed := w.claim.hi - w.claim.lo
	if w.near != nil {
		w.near.Approach(w.number)
	}
	w.turn++
	if claimed == 1 {
		w.several.Store(0)
	} else if w.several.Store(w.turn); w.run.lineup.spare() {
		w.run.inspector.start()
	}
	to := w.run.recorder
	if to != nil {
		to.Reading(w.number)
	}
	w.began = time.Now()
	w.row.mem, w.row.epoch = b.slot.Bytes, b.filled.Epoch
	if b.encoders == nil {
		b.order.Fill(w.indices[:claimed], b.filled.Position+int64(w.claim.lo))
	}
	next, ok := w.claim.lo, true
	for next < w.claim.hi && ok {
		next, ok = w.rows(ctx, b, next)
	}
	w.ended = time.Now()
	took := w.ended.Sub(w.began)
	w.busy.Add(int64(took))
	w.read.Add(int64(next - w.claim.lo))
	if ok {
		rows := w.claim.hi - w.claim.lo
		w.slowest.note(b, w.claim, took, w.pace.cost)
		b.written.Add(int64(rows))
		w.measure(took, rows)
		if claimed == 1 {
			w.learn(took)
		}
		if to != nil && rows > 0 {
			to.Read(journal.Read{
				Worker: w.number, Epoch: b.filled.Epoch, Batch: b.filled.Batch, Position: b.at(w.claim.lo).position,
				Sample: w.sample(b, w.claim.lo), Samples: rows, From: w.began, Took: took,
			})
		}
		if rows < claimed {
			w.pace.rows = 1 // what follows may take as long as what made it late
		}
	}
}

// learn keeps what a sample took that was claimed by itself.
func (w *worker) learn(took time.Duration) {
	if w.usual == 0 {
		w.usual = took
	}
	w.usual += (took - w.usual) / 16
	if c := w.run.loader.costs; c != nil {
		c.note(w.indices[0], took, w.usual)
	}
}

// skip takes the rows that were never claimed with those at hand, since no row behind
// these needs to be read: one claim after the other would take long for a large batch.
func (w *worker) skip(b *batch) {
	if b.single.Load() { // rows before it may be left
		return
	}
	rest, exhausted := b.take(b.number, math.MaxInt32)
	if exhausted {
		w.run.lineup.advance()
	}
	if rest.lo < rest.hi {
		b.discard(w.run, rest)
		b.release(w.run, rest.hi-rest.lo)
	}
}

// measure takes the time of a claim into account.
func (w *worker) measure(took time.Duration, rows int) {
	w.pace.measure(took, rows)
	// All workers read it: it changes only when it is wrong by a factor.
	if now, group := int64(w.pace.aim), w.run.group.Load(); now >= 2*group || 2*now <= group {
		w.run.group.Store(now)
	}
}

// rows reads rows from lo on, until the claim's end or a row that fails. It
// returns the row to go on from, or false if the rest is not to be read.
func (w *worker) rows(ctx context.Context, b *batch, lo int) (next int, ok bool) {
	row, returned := lo, false
	defer func() {
		if returned {
			return
		}
		if err := caught(recover()); isExit(err) {
			w.fail(ctx, b, row, w.limit.exited(err))
		} else {
			next, ok = w.failed(ctx, b, row, err)
		}
	}()
	// Looked up once: between two cheap samples each look at memory counts.
	first, end, turn := w.claim.lo, w.claim.hi, w.turn
	position, encoders, places := b.filled.Position, b.encoders, b.places
	dataset, halted := w.dataset, &w.run.halted
	excluding := w.run.loader.excluded != nil
	every := w.pace.patience()
	for look := 0; row < end; row++ {
		if look--; look < 0 {
			if ctx.Err() != nil {
				returned = true
				return row, false
			}
			look = every - 1
		}
		if halted.Load() {
			returned = true
			return row, false
		}
		if row > first && w.late.Load() == turn {
			w.giveBack(b, row)
			break
		}
		at := position + int64(row)
		if places != nil {
			w.row.epoch, at = places[row].epoch, places[row].position
		}
		w.row.move(row, at)
		w.position.set(at)
		var err error
		if e := encoders; e != nil {
			sample := e[row]
			if places != nil {
				w.origin = Origin{}         // while it panics
				w.origin = originOf(sample) // Encode may give the sample away
			}
			e[row] = nil // it is Encode's from here on
			w.item, _ = sample.(*item)
			if w.limit != nil {
				err = w.limit.encode(ctx, sample, &w.row)
			} else {
				err = sample.Encode(ctx, &w.row)
			}
		} else if excluding {
			err = w.readOther(ctx, b, row)
		} else {
			err = dataset.Read(ctx, w.indices[row-first], &w.row)
		}
		if err == nil {
			err = w.row.unwritten()
		}
		if err != nil {
			returned = true
			return w.failed(ctx, b, row, err)
		}
		if b.lengths != nil {
			b.keepLengths(row, w.row.lengths)
		}
	}
	returned = true
	return w.claim.hi, true
}

// giveBack lets other workers read the rows from row on.
func (w *worker) giveBack(b *batch, row int) {
	rest := span{row, w.claim.hi}
	w.claim.hi = row
	w.run.lineup.giveBack(b, rest)
}

// caught is the error behind a call that did not return; recovered is what
// recover returned in the deferred function.
func caught(recovered any) error {
	if recovered == nil {
		return exited()
	}
	return &PanicError{Value: recovered, Stack: debug.Stack()}
}

// failed deals with a row that could not be read. It returns the row to go on
// from, or false if the rest of the claim is not to be read.
func (w *worker) failed(ctx context.Context, b *batch, row int, err error) (next int, ok bool) {
	if w.run.loader.options.OnError == Substitute && ctx.Err() == nil && !hopeless(err) {
		if err = w.substitute(ctx, b, row, err); err == nil {
			return row + 1, true
		}
	}
	w.fail(ctx, b, row, err)
	return row, false
}

// fail makes err the failure of a row.
func (w *worker) fail(ctx context.Context, b *batch, row int, err error) {
	failure := &Error{
		Epoch: b.filled.Epoch, Batch: b.filled.Batch, Sample: w.sample(b, row),
		Position: b.at(row).position, Shard: -1, Stage: b.stage(), Err: err,
	}
	if b.encoders == nil && failure.Sample >= 0 {
		failure.Origin = w.run.loader.origin(failure.Epoch, failure.Sample)
	}
	if b.places != nil {
		failure.Shard, failure.Origin = w.run.loader.shardAt(failure.Position), w.origin
		if errors.Is(err, Skip) {
			failure.Err = fmt.Errorf("%w: a sample can be left out with Options.Skips, or OnError: SkipFailed", err)
		}
	}
	if w.item != nil {
		failure.of = w.item.ticket()
	}
	if ctx.Err() == nil {
		b.fail(w.run, row, failure)
		return
	}
	// Nobody will see the batch, and an error may be ctx's own, but not a panic, unless
	// another sample would have been read in its place, or the next range will tell of it.
	if _, panicked := err.(*PanicError); panicked && w.run.loader.options.OnError != Substitute && w.item == nil {
		w.run.late(failure)
	}
}

// substitute reads another sample into the row, the same one on every machine.
func (w *worker) substitute(ctx context.Context, b *batch, row int, cause error) error {
	returned := false
	defer func() {
		w.standIn.Store(-1)
		if !returned { // Goexit: the callers' deferred functions are all that runs yet
			w.fail(ctx, b, row, &SubstituteError{Err: cause, Last: w.limit.exited(exited())})
		}
	}()
	last := error(nil)
	position := b.filled.Position + int64(row)
	from := candidates{loader: w.run.loader, epoch: b.filled.Epoch, position: position}
	if from.loader.excluded != nil {
		from = w.candidates // behind the one that stands in for an excluded sample
	}
	for attempt := 1; attempt <= attempts && ctx.Err() == nil && !hopeless(last); attempt++ {
		w.row.move(row, position)
		var index int
		if index, last = w.try(ctx, &from); last == nil {
			if b.lengths != nil {
				b.keepLengths(row, w.row.lengths)
			}
			b.substitute(Substitution{
				Row: row, Position: position, Sample: w.sample(b, row), Substitute: index,
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
	if hopeless(last) {
		return fmt.Errorf("%w; in its place: %w", cause, last)
	}
	return &SubstituteError{Err: cause, Last: last}
}

// try reads the next candidate and turns a panic into an error. Goexit goes on.
func (w *worker) try(ctx context.Context, from *candidates) (index int, err error) {
	returned := false
	defer func() {
		if !returned {
			err = caught(recover())
		}
	}()
	index, ok := from.next()
	if err = errAllExcluded; ok {
		w.standIn.Store(int64(index))
		err = w.dataset.Read(ctx, index, &w.row)
	}
	returned = true
	if err == nil {
		err = w.row.unwritten()
	}
	return index, err
}

// sample is batch.sample of a row that this worker reads: of an excluded one the sample
// that is read in its place.
func (w *worker) sample(b *batch, row int) int {
	if b.encoders != nil {
		return b.sample(row)
	}
	return w.indices[row-w.claim.lo]
}

// sample is the number by which the user knows the sample of a row.
func (b *batch) sample(row int) int {
	position := b.at(row).position
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
