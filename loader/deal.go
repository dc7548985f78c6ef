package loader

import (
	"context"
	"fmt"
)

// dealer says which step of an epoch a Run takes next; see Loader.Deal.
type dealer func(ctx context.Context, epoch int) (at Cursor, ok bool)

// Deal makes n Loaders for n pipelines that share the steps of l: each reads whole batches,
// of the steps that it is dealt and in that order, and the workers are divided as Divide
// does. next is called by the goroutines of the Runs, several at once, whenever pipeline i
// could begin to read another batch, up to the moment at which it waits for a slot. It
// returns a place at which a step of the epoch begins, or ok false if the epoch is over for
// that pipeline. It may wait, until ctx is done, to keep a step for another one.
//
// A Run begins with an epoch, and where its Cursor lies in it has no meaning. Places, states
// and the number of epochs are l's to tell; those of the n Loaders know of their own batches
// only. It is an *OptionError for samples without random access, and for n below 1.
func (l *Loader) Deal(n int, next func(ctx context.Context, i, epoch int) (at Cursor, ok bool)) ([]*Loader, error) {
	var wrong mistakes
	wrong.check(n >= 1 && n <= maxWorkers, "n", n, fmt.Sprintf("1 to %d", maxWorkers))
	wrong.check(next != nil, "next", "nil", "a function")
	wrong.add(l.random("Deal"))
	if err := wrong.err(); err != nil {
		return nil, err
	}
	all := make([]*Loader, n)
	for i := range all {
		one := *l
		one.options.Epochs = 0 // nobody but the dealer knows whether there is another
		one.shareStaff(i, n)
		one.deal = func(ctx context.Context, epoch int) (Cursor, bool) { return next(ctx, i, epoch) }
		all[i] = &one
	}
	return all, nil
}

// Advance is the place so many steps behind another one in the same epoch, for a dealer. ok is
// false if there is no such place, or no random access. It allocates nothing.
func (l *Loader) Advance(at Cursor, steps int) (to Cursor, ok bool) {
	at.Substituted = 0
	if steps < 0 || l.dataset == nil || l.validate(at) != nil {
		return Cursor{}, false
	}
	to, n := l.split.advance(at, int64(steps))
	if n < int64(steps) {
		return Cursor{}, false
	}
	if _, from, more := l.split.step(to); more {
		to.Position = from // what is left out lies before it
	}
	return to, true
}

// dealt opens the batches of one epoch that this run is dealt. It reports whether the run
// goes on.
func (d *dispatcher) dealt(ctx context.Context, at Cursor) bool {
	l := d.run.loader
	order := l.order(at.Epoch)
	for {
		d.run.lineup.hold(d.few()) // first: what is dealt here no other pipeline reads
		next, ok := l.deal(ctx, at.Epoch)
		switch {
		case ctx.Err() != nil:
			return false
		case !ok:
			return true
		}
		if err := l.begins(next, at.Epoch); err != nil {
			d.fail(ctx, &Error{Epoch: at.Epoch, Sample: -1, Shard: -1, Position: next.Position, Stage: StageSlot, Err: err})
			return false
		}
		if _, ok := d.step(ctx, next, order, false); !ok {
			return false
		}
	}
}

// begins is a *StateError if no step of the epoch begins at a place.
func (l *Loader) begins(at Cursor, epoch int) error {
	if at.Epoch == epoch && l.split.holds(at.Position) {
		if _, from, ok := l.split.step(at); ok && from == at.Position {
			return nil
		}
	}
	return &StateError{Field: "Cursor", Got: at, Want: fmt.Sprintf("the beginning of a step of epoch %d", epoch)}
}
