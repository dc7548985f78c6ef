package loader_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/loader"
)

func TestRanksCountAlongTheLastAxisFirst(t *testing.T) {
	m := loader.Mesh{{Name: "replica", Size: 2}, {Name: "data", Size: 3}, {Name: "tensor", Size: 4}}
	ranks, err := m.Ranks()
	require.NoError(t, err)
	require.Equal(t, 24, ranks)
	for rank := range ranks {
		for _, want := range []struct {
			axes         []string
			index, count int
		}{
			{[]string{"replica"}, rank / 12, 2},
			{[]string{"data"}, rank / 4 % 3, 3},
			{[]string{"tensor"}, rank % 4, 4},
			{[]string{"replica", "data"}, rank / 4, 6},
			{[]string{"tensor", "replica"}, rank/12*4 + rank%4, 8},
			{[]string{"replica", "data", "tensor"}, rank, 24},
		} {
			got, err := m.Shard(rank, want.axes...)
			require.NoError(t, err)
			require.Equal(t, loader.Shard{Index: want.index, Count: want.count}, got, "rank %d along %v", rank, want.axes)
		}
	}
}

func TestAMeshSaysAllThatIsWrongWithIt(t *testing.T) {
	good := loader.Mesh{{Name: "data", Size: 2}, {Name: "tensor", Size: 2}}
	for name, c := range map[string]struct {
		mesh  loader.Mesh
		rank  int
		axes  []string
		wrong []string
	}{
		"empty":         {nil, 0, []string{"data"}, []string{"Mesh", "axes"}},
		"sizes":         {loader.Mesh{{Name: "data"}, {Name: "tensor", Size: -1}}, 0, []string{"data"}, []string{"Mesh[0] (data)", "Mesh[1] (tensor)"}},
		"names":         {loader.Mesh{{Name: "data", Size: 1}, {Size: 1}, {Name: "data", Size: 1}}, 0, []string{"data"}, []string{"Mesh[1] ()", "Mesh[2] (data)"}},
		"too many":      {loader.Mesh{{Name: "data", Size: math.MaxInt32}, {Name: "tensor", Size: math.MaxInt32}, {Name: "more", Size: math.MaxInt32}}, 0, []string{"data"}, []string{"Mesh"}},
		"a huge axis":   {loader.Mesh{{Name: "data", Size: math.MaxInt}}, 0, []string{"data"}, []string{"Mesh[0] (data)"}},
		"negative rank": {good, -1, []string{"data"}, []string{"rank"}},
		"rank too high": {good, 4, []string{"data"}, []string{"rank"}},
		"no axis":       {good, 0, nil, []string{"axes"}},
		"unknown axis":  {good, 9, []string{"pipeline"}, []string{"rank", "axes"}},
		"twice":         {good, 0, []string{"data", "data"}, []string{"axes"}},
	} {
		_, err := c.mesh.Shard(c.rank, c.axes...)
		require.Equal(t, c.wrong, options(err), name)
	}
}

// options are the names in the OptionErrors that err joins.
func options(err error) (names []string) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			names = append(names, options(err)...)
		}
		return names
	}
	var wrong *loader.OptionError
	if errors.As(err, &wrong) {
		names = append(names, wrong.Option)
	}
	return names
}

func TestPiecesMakeUpTheSequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ranks := rapid.IntRange(1, 5).Draw(t, "ranks")
		length := 2 * ranks * rapid.IntRange(0, 3).Draw(t, "length")
		dim := rapid.IntRange(0, 2).Draw(t, "dim")
		shape := []int{rapid.IntRange(0, 3).Draw(t, "outer"), rapid.IntRange(1, 3).Draw(t, "inner"), 2}
		shape[dim] = length
		inner := 1
		for _, n := range shape[dim+1:] {
			inner *= n
		}

		var contiguous, headAndTail []int
		for rank := range ranks {
			s := loader.Shard{Index: rank, Count: ranks}
			p, err := s.Contiguous(length)
			require.NoError(t, err)
			require.Equal(t, length/ranks, p.To-p.From)
			both, err := s.HeadAndTail(length)
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
func elements(p loader.Piece, shape []int, dim, inner int) (all []int) {
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
	} {
		p, err := c.shard.Contiguous(c.length)
		var wrong *loader.OptionError
		require.ErrorAs(t, err, &wrong, name)
		require.Zero(t, p.To-p.From, name)
		_, err = c.shard.HeadAndTail(c.length)
		require.ErrorAs(t, err, &wrong, name)
	}
	whole, err := loader.Shard{}.Contiguous(7)
	require.NoError(t, err)
	require.Equal(t, loader.Piece{To: 7}, whole)
	for _, dim := range []int{-1, 0, 2} {
		require.Panics(t, func() { whole.Runs([]int{3, 7}, dim) })
	}
}

// Ranks with one data index have one batch, with the same random numbers and the same
// substitutes; ranks of other data indices have others.
func TestRanksOfOneDataIndexHaveOneBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := loader.Mesh{{Name: "data", Size: 2}, {Name: "context", Size: 2}, {Name: "tensor", Size: 2}}
		unreadable := func(ctx context.Context, i int, _ *loader.Row) error {
			switch {
			case i%7 == 0:
				return errors.New("unreadable")
			case i%11 == 0:
				<-ctx.Done()
			}
			return ctx.Err()
		}
		batches := map[int][]batch{} // of the first rank of each data index
		for rank := range 8 {
			shard, err := m.Shard(rank, "data")
			require.NoError(t, err)
			l := newNumbers(t, numbers{n: 100, before: unreadable}, 4, loader.Options{
				Shuffle: true, Seed: uint64(9), Epochs: 4, Shard: shard, Last: loader.Pad, OnError: loader.Substitute, Workers: 1 + rank%3,
				ReadTimeout: time.Second,
			})
			got, err := readAll(t, l, loader.Cursor{}, 1+rank%4)
			require.NoError(t, err)
			require.Len(t, got, 52)
			got = withoutCauses(got)
			if first := batches[shard.Index]; first != nil {
				require.Equal(t, first, got)
			}
			batches[shard.Index] = got
		}
		for step := range batches[0] {
			require.NotEqual(t, batches[0][step].random, batches[1][step].random)
		}
	})
}

// A state counts each sample once, however many ranks were given it.
func TestAStateCountsWhatReplicasShareOnce(t *testing.T) {
	const n, global, steps = 1000, 8, 25
	run := func(m loader.Mesh, at loader.Cursor) (ranks [][]batch) {
		count, err := m.Ranks()
		require.NoError(t, err)
		seen := map[int]bool{}
		for rank := range count {
			shard, err := m.Shard(rank, "data")
			require.NoError(t, err)
			if seen[shard.Index] {
				continue
			}
			seen[shard.Index] = true
			l := newNumbers(t, numbers{n: n}, global/shard.Count, loader.Options{
				Shuffle: true, Seed: 4, Epochs: 1, Shard: shard, Last: loader.Drop,
			})
			got, err := readAll(t, l, at, 2)
			require.NoError(t, err)
			ranks = append(ranks, got)
		}
		return ranks
	}
	whole := run(loader.Mesh{{Name: "data", Size: 2}, {Name: "tensor", Size: 2}}, loader.Cursor{})
	after := whole[0][steps-1].filled.After
	require.EqualValues(t, global*steps, after.Position)
	for _, m := range []loader.Mesh{
		{{Name: "data", Size: 4}, {Name: "tensor", Size: 1}},
		{{Name: "data", Size: 1}, {Name: "tensor", Size: 4}},
		{{Name: "data", Size: 2}, {Name: "context", Size: 1}, {Name: "tensor", Size: 2}},
	} {
		require.Equal(t, globals(whole)[steps:], globals(run(m, after)))
	}
}

// Eight ranks: two batches at a time, each for a group of four, of which two have the
// sequences' first and last quarters and two the middle.
func ExampleMesh() {
	m := loader.Mesh{{Name: "data", Size: 2}, {Name: "context", Size: 2}, {Name: "tensor", Size: 2}}
	tokens := []int32{0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 17} // of a batch, [2, 8]
	const rank = 6
	data, err := m.Shard(rank, "data") // for loader.Options
	if err != nil {
		log.Fatal(err)
	}
	context, err := m.Shard(rank, "context")
	if err != nil {
		log.Fatal(err)
	}
	pieces, err := context.HeadAndTail(8)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("batch", data.Index, "of", data.Count)
	for _, piece := range pieces {
		for from, to := range piece.Runs([]int{2, 8}, 1) {
			fmt.Println(tokens[from:to])
		}
	}
	// Output:
	// batch 1 of 2
	// [2 3]
	// [12 13]
	// [4 5]
	// [14 15]
}
