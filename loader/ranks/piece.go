package ranks

import (
	"fmt"
	"iter"

	"github.com/leat-go/leat/loader"
)

// Piece is a part of a sequence: its elements from From on, up to To, which is not part of
// it.
type Piece struct {
	From, To int
}

// Contiguous is a rank's part of a sequence that is cut into as many equal parts, one
// behind the other, as there are ranks. A length that is no multiple of their number is a
// *loader.OptionError.
func Contiguous(s loader.Shard, length int) (Piece, error) {
	each, err := cut(s, length, 1)
	return Piece{s.Index * each, (s.Index + 1) * each}, err
}

// HeadAndTail is a rank's part of a sequence that is cut into twice as many equal parts
// as there are n ranks: rank i has part i from the beginning and part i from the end. Under
// causal attention, where later elements cost more, all ranks then have the same work. A
// length that is no multiple of 2n is a *loader.OptionError.
func HeadAndTail(s loader.Shard, length int) ([2]Piece, error) {
	each, err := cut(s, length, 2)
	return [2]Piece{
		{s.Index * each, (s.Index + 1) * each},
		{length - (s.Index+1)*each, length - s.Index*each},
	}, err
}

// cut is the length of each of so many parts a rank, 0 with an error.
func cut(s loader.Shard, length, parts int) (each int, err error) {
	ranks := max(s.Count, 1)
	var wrong mistakes
	wrong.check(s.Count >= 0 && s.Count <= most, "Shard.Count", s.Count, fmt.Sprintf("0 (one rank) to %d", most))
	wrong.check(s.Index >= 0 && s.Index < ranks, "Shard.Index", s.Index, fmt.Sprintf("0 to %d", ranks-1))
	if err := wrong.err(); err != nil {
		return 0, err
	}
	by := int64(ranks) * int64(parts)
	wrong.check(length >= 0 && int64(length)%by == 0, "length", length, fmt.Sprintf("a multiple of %d", by))
	if err := wrong.err(); err != nil {
		return 0, err
	}
	return int(int64(length) / by), nil
}

// Runs is where the piece lies in a field of a batch that is cut along a dimension: from
// and to are numbers of elements, from the field's beginning. The shape is the batch's,
// rows first, as prefetch.Field has it; so dimension 1 of tokens in [rows, length] is the
// length. There is one run if dimension 0 is cut, or if all before it are 1, and then the
// piece is a part of the field's memory as it is; else there is one for each index before
// it. Runs panics if the shape has no such dimension, or if the piece is outside of it.
func (p Piece) Runs(shape []int, dim int) iter.Seq2[int, int] {
	if dim < 0 || dim >= len(shape) || p.From < 0 || p.To < p.From || p.To > shape[dim] {
		panic(fmt.Sprintf("ranks: %v is no piece of dimension %d of %v", p, dim, shape))
	}
	outer, inner := product(shape[:dim]), product(shape[dim+1:])
	pitch := shape[dim] * inner
	if p.From == 0 && p.To == shape[dim] {
		outer, inner, pitch = min(outer, 1), outer*inner, 0 // all of it
	}
	return func(yield func(int, int) bool) {
		for i := range outer {
			if !yield(i*pitch+p.From*inner, i*pitch+p.To*inner) {
				return
			}
		}
	}
}

func product(dims []int) int {
	n := 1
	for _, dim := range dims {
		n *= dim
	}
	return n
}
