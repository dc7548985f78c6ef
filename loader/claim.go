package loader

import (
	"context"

	"github.com/leat-go/leat/observe/journal"
)

// A Claim is a pipeline's hold on a Loader. Package prefetch has one for each of its
// pipelines; programs that use prefetch need none.
//
// A source that gives its samples once (FromSeq) keeps them until they are delivered, and
// must know when that is. Without a Claim a batch counts as delivered when Run.Next returns
// it. A pipeline that works ahead of its consumer claims the source, and then says itself
// what is delivered. A Run of a Stream that Claim.Start has started keeps what a State needs
// from the last place on that Delivered told, and any other from the last that Run.Next
// returned. For other data Delivered and Reported do nothing.
type Claim struct{ loader *Loader }

// Claim makes the caller the only pipeline of a source that gives its samples once; the
// caller then has to call Loader.Close. It is an *OnePassError if another pipeline has
// claimed the source, or the source is closed. Other data can be claimed any number of
// times.
func (l *Loader) Claim() (Claim, error) {
	if l.once != nil {
		if err := l.once.claim(); err != nil {
			return Claim{}, err
		}
	}
	return Claim{l}, nil
}

// Start is Loader.Start for a Run of which Delivered will say what is delivered. It tells to,
// unless that is nil, what its goroutines do.
func (c Claim) Start(ctx context.Context, at Cursor, mem Memory, to journal.Recorder) *Run {
	return start(ctx, c.loader, at, mem, true, to)
}

// Delivered says that all before the cursor is delivered: its samples are not given
// again, and a Stream's places before it are forgotten.
func (c Claim) Delivered(before Cursor) {
	if before.track != nil {
		before.track.delivered(before)
	}
	if c.loader.once != nil {
		c.loader.once.delivered(before)
	}
}

// Reported says that the consumer has been told of a failure that Run.Next returned:
// the sample that failed is not given again.
func (c Claim) Reported(err error) {
	if c.loader.once != nil {
		c.loader.once.told(err)
	}
}

// Normalize returns the beginning of the next epoch for a cursor behind the last batch of
// one. Any other cursor, and each where the number of samples is not known, is returned as
// it is.
func (c Claim) Normalize(at Cursor) Cursor { return c.loader.normalize(at) }

// Restore returns the place of a State that Check has found to be right: stands, if that is
// the place where the caller stands already.
func (c Claim) Restore(s State, stands Cursor) Cursor {
	if c.loader.stream != nil && c.loader.samePlace(s, stands) {
		return stands
	}
	return c.Normalize(s.Cursor())
}

// Seek returns the place at a position of an epoch. stands is where the caller stands: of a
// Stream only that place and an epoch's beginning can be told by two numbers. Any other, or
// one that there is not, is a *StateError.
func (c Claim) Seek(epoch int, position int64, stands Cursor) (Cursor, error) {
	to := Cursor{Epoch: epoch, Position: position}
	if c.loader.stream != nil && stands.same(to) && (position != 0 || c.loader.options.Steps > 0) {
		return stands, nil // at position 0 it could be behind batches without rows
	}
	if c.loader.stream != nil && position != 0 {
		return Cursor{}, c.loader.validate(to)
	}
	s := c.loader.StateAt(Cursor{})
	s.Epoch, s.Position = epoch, position
	if err := c.loader.Check(s); err != nil {
		return Cursor{}, err
	}
	return c.Normalize(to), nil
}
