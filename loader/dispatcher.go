package loader

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/leat-go/leat/observe/journal"
)

// dispatcher opens batches in order, each in a slot of its own, and hands their
// rows over to the workers: one goroutine, started and counted by the Run. It is the
// only sender on the Run's order, and closes it.
type dispatcher struct {
	run     *Run
	batches map[int]*batch // by slot ID
	number  int64          // of the next batch
	merger  merging        // of a Stream's shards, else nil
	dear    dear

	// What a report on a dispatcher that hangs needs; see suspect.
	goroutine       atomic.Uint64
	epoch, position atomic.Int64
	getting         atomic.Bool  // inside Memory.Get
	waited          atomic.Int64 // for slots
	// iterating is since when, after the Run's start, the user's iterator has had
	// the goroutine; 0 while it has not. It is to give the sample at position.
	iterating atomic.Int64
	// crowded is since when, after the Run's start, it has waited for the Close of
	// samples that no batch takes; 0 while it does not.
	crowded atomic.Int64
	// agreeing is since when, after the Run's start, Options.Agree has had the goroutine; 0
	// while it has not.
	agreeing atomic.Int64
	// refused is the failure that no open batch is to blame for, and that has ended the run.
	refused atomic.Pointer[Error]
}

// merging fills batches from the shards of a Stream. NewStream alone brings what does it: a
// program without a Stream is not to carry that code.
type merging interface {
	// merge opens the batches of one epoch. It reports whether the run goes on.
	merge(ctx context.Context, at Cursor) bool
	// end ends the shards' goroutines, and waits for them.
	end()
	// suspects are the shards that are in user code.
	suspects() []suspect
	// reading is how long each shard has worked.
	reading() []time.Duration
}

// loop opens the batches from the cursor on.
func (d *dispatcher) loop(ctx context.Context, at Cursor) {
	d.goroutine.Store(goroutineID())
	r := d.run
	if r.recorder != nil {
		r.recorder.Goroutine(journal.Dispatcher, 0)
	}
	defer r.leave()
	if d.merger != nil {
		defer d.merger.end() // when Next knows how the run ends: a reader may take its time
	}
	defer close(r.order)
	defer r.lineup.end()
	defer r.reserve.end()
	returned := false
	defer func() {
		if !returned { // the Memory's methods are all of the user's that is called outside of all
			d.fail(ctx, &Error{Sample: -1, Shard: -1, Epoch: at.Epoch, Stage: StageSlot, Err: caught(recover())})
		}
	}()
	r.exhausted = d.epochs(ctx, at)
	returned = true
}

// epochs opens one epoch after the other. It reports whether it came to the end of
// the last.
func (d *dispatcher) epochs(ctx context.Context, at Cursor) bool {
	r := d.run
	epoch := d.indexed
	switch {
	case r.loader.iterable != nil:
		epoch = d.iterate
	case d.merger != nil:
		epoch = d.merger.merge
	case r.loader.replay != nil:
		epoch = d.again
	case r.loader.deal != nil:
		epoch = d.dealt
	}
	epochs := r.loader.options.Epochs
	for epochs == 0 || at.Epoch < epochs {
		d.dear.known = r.loader.costs.known()
		if !epoch(ctx, at) || !d.push(ctx, nil) {
			return false
		}
		at = Cursor{Epoch: at.Epoch + 1}
		if epochs > 0 {
			continue
		}
		select {
		case <-r.demand:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// indexed opens the batches of one epoch of a Dataset. It reports whether the
// run goes on.
func (d *dispatcher) indexed(ctx context.Context, at Cursor) bool {
	l := d.run.loader
	order := l.order(at.Epoch)
	for left := l.split.left(at); left > 0; left-- {
		var ok bool
		if at, ok = d.step(ctx, at, order, left == 1); !ok {
			return false
		}
	}
	return true
}

// step opens the batch of the first step of a Dataset from a place on, and returns the place
// behind it. It reports whether the run goes on.
func (d *dispatcher) step(ctx context.Context, at Cursor, order Order, last bool) (after Cursor, ok bool) {
	l := d.run.loader
	step, from, _ := l.split.step(at)
	at.Position = from
	p := step.part(from)
	b := d.open(ctx, Filled{Epoch: at.Epoch, Batch: l.split.number(at), Position: p.position, After: at})
	if b == nil {
		return at, false
	}
	b.order = order
	b.filled.N, b.filled.Valid, b.filled.LastOfEpoch = p.rows, p.valid, last
	b.filled.After.Position = p.after
	first, ok := d.rank(b, p.rows)
	if !ok {
		return at, false
	}
	b.single.Store(first > 0)
	d.run.lineup.hand(b, p.rows, true)
	d.run.lineup.early(b, first)
	d.handed(b, p.rows)
	at.Position = p.after
	return at, true
}

// open waits for a slot and enters its batch in the order of delivery. filled has the
// batch's place; its After is where the global batch begins. It returns nil when the run is
// over.
func (d *dispatcher) open(ctx context.Context, filled Filled) *batch {
	r := d.run
	ahead := d.dear.ahead > 0
	if ahead { // what costs much may lie behind many rows that do not
		r.lineup.watch(d.few())
	} else {
		r.lineup.hold(d.few())
	}
	if r.failed.Load() != none {
		return nil
	}
	filled.Times.Asked = time.Now()
	slot, err := d.get(ctx, filled)
	filled.Times.Opened = time.Now()
	if ahead {
		filled.Times.Asked = r.lineup.watched(filled.Times.Asked, filled.Times.Opened)
	}
	d.waited.Add(int64(filled.Times.Opened.Sub(filled.Times.Asked)))
	if ctx.Err() != nil {
		if err == nil {
			r.mem.Put(slot)
		}
		return nil
	}
	var b *batch
	if err == nil {
		b, err = d.batch(slot)
	}
	if err != nil {
		d.fail(ctx, noSlot(filled, err))
		return nil
	}
	b.begin(r, slot, d.number, filled)
	d.number++
	if !d.push(ctx, b) {
		return nil
	}
	return b
}

// few is how many rows are to be left that no worker has claimed when another batch is opened:
// as many as each claims twice.
func (d *dispatcher) few() int {
	return 2 * int(d.run.lineup.allowed.Load()) * int(d.run.group.Load())
}

// get asks the Memory for a slot. A panic there is an error, and runtime.Goexit is
// made the run's failure at once: nothing is returned then.
func (d *dispatcher) get(ctx context.Context, filled Filled) (slot Slot, err error) {
	d.epoch.Store(int64(filled.Epoch))
	d.position.Store(filled.After.Position)
	d.getting.Store(true)
	returned := false
	defer func() {
		d.getting.Store(false)
		if returned {
			return
		}
		if err = caught(recover()); isExit(err) {
			d.fail(ctx, noSlot(filled, err))
		}
	}()
	if err = context.Cause(ctx); err == nil { // in this order with getting, as in worker.fill
		slot, err = d.run.mem.Get(ctx)
	}
	returned = true
	return slot, err
}

// noSlot is the failure of a batch that got no slot.
func noSlot(filled Filled, err error) *Error {
	return &Error{Epoch: filled.Epoch, Batch: filled.Batch, Sample: -1, Position: filled.Position, Shard: -1, Stage: StageSlot, Err: err}
}

// batch returns the batch that belongs to a slot, which the Memory has given out.
func (d *dispatcher) batch(slot Slot) (*batch, error) {
	l := d.run.loader
	b := d.batches[slot.ID]
	if b == nil {
		b = new(batch)
		if l.iterable != nil {
			b.encoders = make([]Encoder, l.layout.batch)
		}
		if n := len(l.layout.ragged); n > 0 {
			b.lengths, b.extents = make([]int32, n*l.layout.batch), make([]int, len(l.layout.fields))
		}
		if l.stream != nil {
			b.encoders = make([]Encoder, l.layout.batch)
			b.places = make([]rowPlace, l.layout.batch)
		}
		d.batches[slot.ID] = b
	}
	if !b.open.CompareAndSwap(false, true) {
		return nil, fmt.Errorf("slot %d was given out while it was out", slot.ID)
	}
	var err error
	if at := uintptr(unsafe.Pointer(unsafe.SliceData(slot.Bytes))); at%slotAlign != 0 {
		err = fmt.Errorf("slot %d begins at %#x, want a multiple of %d", slot.ID, at, slotAlign)
	} else if need := l.layout.bytes; int64(len(slot.Bytes)) < need {
		err = fmt.Errorf("slot %d has %d bytes, a batch takes %d", slot.ID, len(slot.Bytes), need)
	}
	if err != nil {
		d.run.mem.Put(slot)
	}
	return b, err
}

// sinceStart is the time since the Run's start, never 0.
func (d *dispatcher) sinceStart() int64 { return max(1, int64(time.Since(d.run.began))) }

// fail ends the run with a failure that no open batch is to blame for, behind
// those that are open.
func (d *dispatcher) fail(ctx context.Context, err *Error) {
	d.refused.Store(err)
	d.push(ctx, &batch{failure: err, number: d.number, arrived: true})
}

// hasFailed reports whether a failure has ended the run. Any goroutine may call it.
func (d *dispatcher) hasFailed() bool {
	return d.run.failed.Load() != none || d.refused.Load() != nil
}

// cause is the failure that has ended the run, nil if none has.
func (d *dispatcher) cause() *Error {
	failed := d.run.failed.Load()
	for _, b := range d.batches {
		if b.number == failed {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.failure
		}
	}
	return d.refused.Load()
}

// push enters b, or the end of an epoch if b is nil, in the order of delivery. It
// reports false when the run is over; then b's slot has gone back.
func (d *dispatcher) push(ctx context.Context, b *batch) bool {
	if ctx.Err() == nil { // else Close may no longer look at what is in order
		select {
		case d.run.order <- b: // there is room: a select of this alone takes half as long
			return true
		default:
		}
		select {
		case d.run.order <- b:
			return true
		case <-ctx.Done():
		}
	}
	if b != nil && b.owned {
		b.open.Store(false)
		d.run.mem.Put(b.slot)
	}
	return false
}

// handed lets go of b, of which so many rows were handed over: no more will come.
func (d *dispatcher) handed(b *batch, rows int) {
	b.release(d.run, d.run.loader.layout.batch-rows+1)
}
