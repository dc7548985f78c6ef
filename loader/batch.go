package loader

import (
	"cmp"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Filled is a batch that Next hands over.
type Filled struct {
	// Slot holds the batch. The caller owns it from here and gives it back to the
	// Memory it came from.
	Slot Slot
	// N is the number of rows in memory. It is 0 only under Exact, on a rank for
	// which the last global batch has nothing.
	N int
	// Valid is the number of rows, the first ones, that are not padding.
	Valid int
	// Epoch and Batch count from 0, the batch within its epoch.
	Epoch, Batch int
	// Position is the place of the first row in the epoch's order; row i is at
	// Position + i, but not of a Stream, whose rows are of several shards. It differs
	// between ranks.
	Position int64
	// After is the cursor once this batch is delivered, the same on every rank except for
	// the number of its substitutes, and for what Cursor says of a Stream's.
	After Cursor
	// LastOfEpoch is set on an epoch's last batch where the number of samples is
	// known, and so never for an Iterable, nor for a Stream without Options.Steps.
	LastOfEpoch bool
	// Substituted lists the rows that Substitute filled, by position. It is
	// borrowed until the slot goes back to its Memory.
	Substituted []Substitution
	// Padding is how many bytes pad rows of ragged fields to the length of longer ones.
	Padding int64
	// Times says when the batch was made.
	Times Times

	extents []int // by field, nil if none is ragged; borrowed as Substituted is
}

// Extent is how long a ragged field's rows are in this batch, in elements along their first
// dimension: each of them, or all together where they are packed. It is 0 for other fields.
func (f Filled) Extent(field int) int {
	if f.extents == nil {
		return 0
	}
	return f.extents[field]
}

// Substitution is a row that holds another sample than its own. It prints as one line, also
// by %+v, where Err by itself would have the stack of what panicked.
type Substitution struct {
	// Row is the row in the batch, Position its place in the epoch's order.
	Row      int
	Position int64
	// Sample could not be read because of Err; Substitute is there instead. Both are
	// indices of the dataset.
	Sample, Substitute int
	// Attempts is the number of samples tried as a substitute.
	Attempts int
	Err      error
}

// String says which sample was replaced by which, and why.
func (s Substitution) String() string {
	return fmt.Sprintf("row %d: sample %d in place of sample %d (position %d), attempt %d: %v",
		s.Row, s.Substitute, s.Sample, s.Position, s.Attempts, s.Err)
}

// batch is a batch being filled. Each slot has one for as long as the Run lives,
// so that a batch costs no allocation.
type batch struct {
	// Written by the dispatcher before it hands over the first rows, apart from
	// filled's counts, which are final before it lets go of its share.
	slot   Slot
	owned  bool  // whether there is a slot: not with a failure between batches
	number int64 // in the run
	order  Order // of a Dataset's samples
	filled Filled

	// encoders are an Iterable's samples by row, nil with a Dataset.
	encoders []Encoder
	// lengths are those of the rows' ragged fields, row by row: each is written by the
	// worker that has claimed the row (R2). extents is what comes of them. Both are nil
	// where no field is ragged.
	lengths []int32
	extents []int
	// places are where a Stream's samples are in the order, nil with other data.
	places []rowPlace

	// open is set from the opening of the batch until its slot leaves the Run.
	open atomic.Bool
	// dropped is set if it is not to be delivered: the iterator ended before the global
	// batch was full.
	dropped atomic.Bool

	// turns are the batch's rows in the order in which they are claimed, where single is set.
	turns []int32
	// leads says of the first turns how many rows may lie before them when they are begun.
	leads []atomic.Int32

	through int64 // the rows of all batches up to this one; the dispatcher's

	// The run's arrivals has these.
	before, ahead, behind *batch
	arrived               bool // whether Next has seen that it is filled

	mu          sync.Mutex
	failure     *Error // at the lowest row so far,
	failedRow   int    // which is this
	abandoned   bool   // the slot has gone back by Close
	substituted []Substitution

	claims
}

// rowPlace is a row's place in the order: a Stream's rows do not lie side by side in it.
type rowPlace struct {
	epoch    int // the pass
	position int64
}

// at is the place of a row.
func (b *batch) at(row int) rowPlace {
	if b.places != nil {
		return b.places[row]
	}
	return rowPlace{b.filled.Epoch, b.filled.Position + int64(row)}
}

// begin makes the batch ready to be filled again. No row of its last lap is
// left: Next has seen it filled.
func (b *batch) begin(r *Run, slot Slot, number int64, filled Filled) {
	b.slot, b.owned, b.number = slot, true, number
	b.filled = filled
	b.filled.Slot = slot
	b.failure, b.substituted = nil, b.substituted[:0]
	b.dropped.Store(false)
	b.before, b.arrived = nil, false
	b.single.Store(false)
	b.claims.begin(number, r.loader.layout.batch)
}

// rowOf is the row of a turn, which was claimed.
func (b *batch) rowOf(turn int) span {
	row := int(b.turns[turn])
	return span{row, row + 1}
}

// release says that so many rows are done, or will not come.
func (b *batch) release(r *Run, rows int) {
	if b.left.Add(-int64(rows)) == 0 {
		b.compact(r.loader.layout)
		b.filled.Times.Filled = time.Now()
		r.arrivals.add(b)
		r.lineup.leave()
	}
}

// compact moves the rows of ragged fields together, if all were written: else some have no
// length, and nobody will see the batch.
func (b *batch) compact(l *Layout) {
	if b.lengths == nil || b.written.Load() != int64(b.filled.N) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.abandoned {
		return // R4
	}
	b.filled.Padding = l.compact(b.slot.Bytes, b.filled.N, b.lengths, b.extents)
	b.filled.extents = b.extents
}

// abandon makes sure that nobody compacts the batch any more: Close waits for no worker
// longer than its grace period, and the one that does is in no sample's code.
func (b *batch) abandon() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.abandoned = true
}

// fail keeps the failure at the lowest row, and has the run skip what is behind the
// batch, unless nobody will hear of the failure.
func (b *batch) fail(r *Run, row int, err *Error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failure == nil || row < b.failedRow {
		b.failure, b.failedRow = err, row
	}
	if !b.dropped.Load() {
		r.fail(b.number)
	}
}

// drop decides that the batch, the newest one, is not delivered. A failure in it is
// as if it had not been.
func (b *batch) drop(r *Run) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dropped.Store(true)
	r.failed.CompareAndSwap(b.number, none)
}

// unwanted reports whether rows from row on need not be read any more, because the
// batch is dropped, or a failure before them will be the one that is reported.
func (b *batch) unwanted(r *Run, row int) bool {
	switch failed := r.failed.Load(); {
	case b.dropped.Load():
		return true
	case failed > b.number:
		return false
	case failed < b.number:
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failure != nil && b.failedRow < row
}

// discard ends the samples of rows that Encode has not taken.
func (b *batch) discard(r *Run, rows span) {
	if b.encoders == nil {
		return
	}
	for row := rows.lo; row < rows.hi; row++ {
		if e := b.encoders[row]; e != nil {
			b.encoders[row] = nil
			r.disposal.add(e, b.filled.Epoch, b.filled.Batch, b.at(row).position)
		}
	}
}

func (b *batch) substitute(s Substitution) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.substituted = append(b.substituted, s)
}

// result is what Next returns for a completed batch. allowed is how many
// substitutions are left to the epoch, negative if there is no limit.
func (b *batch) result(allowed int) (Filled, error) {
	if b.failure != nil {
		return Filled{}, b.failure
	}
	if b.written.Load() != int64(b.filled.N) {
		return Filled{}, errSkipped
	}
	if len(b.substituted) == 0 {
		return b.filled, nil
	}
	sortBy(b.substituted, func(x, y Substitution) int { return cmp.Compare(x.Row, y.Row) })
	if allowed >= 0 && len(b.substituted) > allowed {
		// Which failure is one too many depends on the order alone, not on which
		// worker came first.
		s := b.substituted[allowed]
		return Filled{}, &Error{
			Epoch: b.filled.Epoch, Batch: b.filled.Batch, Sample: s.Sample, Position: s.Position,
			Shard: -1, Stage: StageRead, Err: &SubstituteError{Err: s.Err},
		}
	}
	b.filled.Substituted = b.substituted
	return b.filled, nil
}
