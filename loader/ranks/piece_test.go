package ranks_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/ranks"
)

func TestPiecesMakeUpTheSequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 5).Draw(t, "ranks")
		length := 2 * count * rapid.IntRange(0, 3).Draw(t, "length")
		dim := rapid.IntRange(0, 2).Draw(t, "dim")
		shape := []int{rapid.IntRange(0, 3).Draw(t, "outer"), rapid.IntRange(1, 3).Draw(t, "inner"), 2}
		shape[dim] = length
		inner := 1
		for _, n := range shape[dim+1:] {
			inner *= n
		}

		var contiguous, headAndTail []int
		for rank := range count {
			s := loader.Shard{Index: rank, Count: count}
			p, err := ranks.Contiguous(s, length)
			require.NoError(t, err)
			require.Equal(t, length/count, p.To-p.From)
			both, err := ranks.HeadAndTail(s, length)
			require.NoError(t, err)
			require.Equal(t, both[0].From, length-both[1].To, "as far from the end as from the beginning")
			contiguous = append(contiguous, elements(p, shape, dim, inner)...)
			headAndTail = append(headAndTail, append(elements(both[0], shape, dim, inner), elements(both[1], shape, dim, inner)...)...)
			require.Len(t, headAndTail, len(contiguous), "ranks have equally much")
		}
		slices.Sort(contiguous)
		slices.Sort(headAndTail)
		all := []int(nil)
		for i := range shape[0] * shape[1] * shape[2] {
			all = append(all, i)
		}
		require.Equal(t, all, contiguous)
		require.Equal(t, all, headAndTail)
	})
}

// elements are the numbers of those in a piece of a field. Their index along the cut is in
// the piece.
func elements(p ranks.Piece, shape []int, dim, inner int) (all []int) {
	for from, to := range p.Runs(shape, dim) {
		for i := from; i < to; i++ {
			if at := i / inner % shape[dim]; at < p.From || at >= p.To {
				panic(fmt.Sprint(i, " is not in ", p))
			}
			all = append(all, i)
		}
	}
	return all
}

func TestPiecesThatDoNotFit(t *testing.T) {
	for name, c := range map[string]struct {
		shard  loader.Shard
		length int
	}{
		"not a multiple": {loader.Shard{Count: 2}, 5},
		"negative":       {loader.Shard{Count: 2}, -4},
		"rank too high":  {loader.Shard{Index: 2, Count: 2}, 4},
		"rank negative":  {loader.Shard{Index: -1, Count: 2}, 4},
		"many":           {loader.Shard{Count: math.MaxInt}, 4},
		"negative count": {loader.Shard{Count: -1}, 4},
	} {
		p, err := ranks.Contiguous(c.shard, c.length)
		var wrong *loader.OptionError
		require.ErrorAs(t, err, &wrong, name)
		require.Zero(t, p.To-p.From, name)
		_, err = ranks.HeadAndTail(c.shard, c.length)
		require.ErrorAs(t, err, &wrong, name)
	}
	whole, err := ranks.Contiguous(loader.Shard{}, 7)
	require.NoError(t, err)
	require.Equal(t, ranks.Piece{To: 7}, whole)
	_, err = ranks.Contiguous(loader.Shard{Count: math.MaxInt}, 4)
	require.Equal(t, []string{"Shard.Count"}, options(err), "and nothing that follows from it")
	most, err := ranks.Contiguous(loader.Shard{Count: math.MaxInt32}, math.MaxInt32)
	require.NoError(t, err)
	require.Equal(t, ranks.Piece{To: 1}, most)
	for range whole.Runs([]int{3, 7}, 1) { // all rows are one run
		most.To++
	}
	require.Equal(t, 2, most.To)
	for _, c := range []struct {
		p   ranks.Piece
		dim int
	}{{whole, -1}, {whole, 0}, {whole, 2}, {whole, 3}, {ranks.Piece{From: -1, To: 2}, 1}, {ranks.Piece{From: 3, To: 2}, 1}} {
		func() {
			defer func() { require.Contains(t, recover(), "is no piece of dimension") }()
			c.p.Runs([]int{3, 7}, c.dim)
		}()
	}
}
