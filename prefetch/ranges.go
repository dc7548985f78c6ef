package prefetch

import (
	"context"
	"iter"
)

// All yields all batches that are left, of all epochs that the loader's options state; if
// they state none it goes on for ever. It begins where the cursor is: behind the last batch
// delivered, or where Restore or Seek has put it. What holds for all ranges is in the
// package's comment.
func (p *Prefetcher) All(ctx context.Context) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		for !p.ahead.place.finished() && p.epoch(ctx, false, yield) {
		}
	}
}

// Epochs yields the number of each epoch that is left, from 0, and its batches. The first
// may be one of which a part was delivered already. An error of the batches ends the
// epochs too. A body that leaves an epoch's batches and goes on to the next number leaves
// out the rest of the epoch; one that leaves both loops keeps the position. A stream that was
// left behind its last sample is not known to be at its end: its epoch comes with no batches.
func (p *Prefetcher) Epochs(ctx context.Context) iter.Seq2[int, iter.Seq2[Batch, error]] {
	return func(yield func(int, iter.Seq2[Batch, error]) bool) {
		for !p.ahead.place.finished() {
			epoch, failed := p.Epoch(), false
			batches := func(yield func(Batch, error) bool) {
				if failed || p.Epoch() != epoch {
					return
				}
				p.epoch(ctx, true, func(b Batch, err error) bool {
					failed = failed || err != nil
					return yield(b, err)
				})
			}
			if !yield(epoch, batches) || failed {
				return
			}
			if p.Epoch() != epoch {
				continue
			}
			if err := p.Seek(epoch+1, 0); err != nil {
				yield(epoch+1, func(yield func(Batch, error) bool) { yield(Batch{}, err) })
				return
			}
		}
	}
}

// Batches yields what is left of the current epoch. With all of the loader's Epochs
// delivered it yields nothing.
func (p *Prefetcher) Batches(ctx context.Context) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) { p.epoch(ctx, false, yield) }
}

// Pass yields the batches of one whole epoch, the first, wherever the cursor stands: for
// validation, which sees the same batches each time, also if the last pass was left early.
func (p *Prefetcher) Pass(ctx context.Context) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		if err := p.Seek(0, 0); err != nil {
			yield(Batch{}, err)
			return
		}
		p.epoch(ctx, false, yield)
	}
}

// epoch yields what is left of the current epoch, and reports whether that has come to its
// end. Of a stream nobody knows that nothing is left before it is asked for more: then the
// next epoch is yielded in its place, unless begun says that this one counts.
func (p *Prefetcher) epoch(ctx context.Context, begun bool, yield func(Batch, error) bool) (whole bool) {
	r, err := p.Open(ctx)
	if err != nil {
		yield(Batch{}, err)
		return false
	}
	r.begun = begun
	failed := false
	defer func() { p.ahead.notes.keep(r.close(failed)) }()
	for {
		b, err := r.next(ctx, false)
		if err == errEpochOver {
			return true
		}
		if err != nil {
			failed = true
			yield(Batch{}, err)
			return false
		}
		if !b.runBody(yield) {
			return false
		}
	}
}

// runBody is one turn of a loop; break, return and panic end the lease too.
func (b Batch) runBody(yield func(Batch, error) bool) bool {
	defer b.end()
	return yield(b, nil)
}
