package loader

import "fmt"

// split cuts an epoch's order into global batches and gives each rank its rows
// inside every one of them. So what a step trains on does not depend on the
// number of ranks, one number says where an epoch stands on all of them, and the
// number of steps is computed, never discovered.
type split struct {
	samples     int64
	batch, rank int64
	ranks       int64
	last        LastPolicy
}

// global is the number of samples that all ranks together take in a step.
func (s split) global() int64 { return s.batch * s.ranks }

// takes is how many samples a global batch takes, for errors.
func (s split) takes() string {
	if s.ranks == 1 {
		return fmt.Sprintf("a batch takes %d", s.batch)
	}
	return fmt.Sprintf("%d ranks of batch size %d take %d at a time", s.ranks, s.batch, s.global())
}

// holds reports whether a position can be one of an epoch.
func (s split) holds(position int64) bool { return position >= 0 && position <= s.samples }

// rows is the most rows that an epoch has before a position, over all ranks.
func (s split) rows(position int64) int64 {
	if s.last == Pad && position == s.samples {
		return position + s.global() - 1 // the last batch is filled up
	}
	return position
}

// steps is the number of batches, the same on every rank, from a position to the
// end of the epoch. Where the position is not a multiple of the global batch,
// because another number of ranks got there, the batches begin at it all the same.
func (s split) steps(from int64) int64 {
	left := max(s.samples-from, 0)
	steps := left / s.global()
	if s.last != Drop && left%s.global() > 0 {
		steps++
	}
	return steps
}

// part is one rank's part of a global batch.
type part struct {
	// position is that of the part's first row.
	position int64
	// rows to be filled, the first valid of which are not padding.
	rows, valid int
	// after is the position once the global batch is delivered.
	after int64
}

// part returns this rank's part of the global batch that begins at from, which
// must be a step's beginning.
func (s split) part(from int64) part {
	p := part{
		position: from + s.rank*s.batch,
		rows:     int(s.batch),
		after:    min(from+s.global(), s.samples),
	}
	p.valid = int(min(max(s.samples-p.position, 0), s.batch))
	if s.last != Pad {
		p.rows = p.valid
	}
	return p
}
