package group

import (
	"context"
	"iter"

	"github.com/leat-go/leat/prefetch"
)

// All yields all steps that are left, of all epochs that the loader's options state; if they
// state none it goes on for ever. It begins where the cursor is.
func (g *Group) All(ctx context.Context) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		for !g.finished() && g.epoch(ctx, someEpoch, yield) {
		}
	}
}

// Epochs yields the number of each epoch that is left, from 0, and its steps. The first may
// be one of which a part was delivered already. An error of the steps ends the epochs too. A
// body that leaves an epoch's steps and goes on to the next number leaves out the rest of the
// epoch; one that leaves both loops keeps the position.
func (g *Group) Epochs(ctx context.Context) iter.Seq2[int, iter.Seq2[Step, error]] {
	return func(yield func(int, iter.Seq2[Step, error]) bool) {
		for !g.finished() {
			epoch, failed := g.Epoch(), false
			steps := func(yield func(Step, error) bool) {
				if failed || g.Epoch() != epoch {
					return
				}
				g.epoch(ctx, epoch, func(s Step, err error) bool {
					failed = failed || err != nil
					return yield(s, err)
				})
			}
			if !yield(epoch, steps) || failed {
				return
			}
			if g.Epoch() != epoch {
				continue
			}
			if err := g.Seek(epoch+1, 0); err != nil {
				yield(epoch+1, func(yield func(Step, error) bool) { yield(Step{}, err) })
				return
			}
		}
	}
}

// Steps yields what is left of the current epoch. With all of the loader's Epochs delivered
// it yields nothing.
func (g *Group) Steps(ctx context.Context) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) { g.epoch(ctx, someEpoch, yield) }
}

// Pass yields the steps of one whole epoch, the first, wherever the cursor stands: for
// validation, which sees the same steps each time.
func (g *Group) Pass(ctx context.Context) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		if err := g.Seek(0, 0); err != nil {
			yield(Step{}, err)
			return
		}
		g.epoch(ctx, someEpoch, yield)
	}
}

// finished reports whether all of a stated number of epochs are delivered.
func (g *Group) finished() bool {
	epochs := g.loader.Options().Epochs
	return epochs > 0 && g.Epoch() >= epochs
}

// someEpoch stands for whichever epoch there is something left of.
const someEpoch = -1

// epoch yields what is left of the current epoch, and reports whether that has come to its
// end. Of an Iterable nobody knows that nothing is left before it is asked for more: then the
// next epoch is yielded in its place, unless it is to be only that one.
func (g *Group) epoch(ctx context.Context, only int, yield func(Step, error) bool) (whole bool) {
	r, err := g.Open(ctx)
	if err != nil {
		yield(Step{}, err)
		return false
	}
	failed := false
	defer func() { g.keep(r.close(failed)) }()
	for {
		s, err := r.Next(ctx)
		switch {
		case err == prefetch.ErrEpochEnd:
			return true
		case err != nil:
			failed = true
			yield(Step{}, err)
			return false
		}
		if only != someEpoch && s.Position().Epoch != only {
			s.Release()
			g.keep(r.close(failed))
			g.keep(g.Seek(only+1, 0))
			return true
		}
		if !s.lend(yield) {
			return false
		}
	}
}
