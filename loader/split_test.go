package loader_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/loader"
)

// world runs every rank of a world from a cursor and returns its batches.
func world(t require.TestingT, n int, batchSize int, o loader.Options, at loader.Cursor, slots int) [][]batch {
	ranks := make([][]batch, max(o.Shard.Count, 1))
	for rank := range ranks {
		o.Shard.Index = rank
		l, err := loader.New(numbers{n: n}, batchSize, o)
		require.NoError(t, err)
		ranks[rank], err = readAll(t, l, at, slots)
		require.NoError(t, err)
	}
	return ranks
}

// globals joins the ranks' batches to global batches: the samples' indices in
// the epoch's order, padding left out.
func globals(ranks [][]batch) (steps [][]int64) {
	for step := range ranks[0] {
		var global []int64
		for _, batches := range ranks {
			global = append(global, indices(batches[step:step+1])...)
		}
		steps = append(steps, global)
	}
	return steps
}

// drawWorld draws what New accepts for one epoch of n samples.
func drawWorld(t *rapid.T) (n, batchSize int, o loader.Options) {
	batchSize = rapid.IntRange(1, 7).Draw(t, "batch")
	o = loader.Options{
		Shuffle: rapid.Bool().Draw(t, "shuffle"),
		Seed:    rapid.Uint64().Draw(t, "seed"),
		Workers: rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "workers"),
		Epochs:  1,
		Last:    rapid.SampledFrom([]loader.LastPolicy{loader.Drop, loader.Pad, loader.Exact}).Draw(t, "last"),
		Shard:   loader.Shard{Count: rapid.SampledFrom([]int{1, 2, 3, 4, 8}).Draw(t, "ranks")},
	}
	global := batchSize * o.Shard.Count
	least := 1
	if o.Last == loader.Drop {
		least = global
	}
	return rapid.IntRange(least, 3*global+1).Draw(t, "n"), batchSize, o
}

func slotCount(t *rapid.T) int { return rapid.SampledFrom([]int{1, 2, 8}).Draw(t, "slots") }

func TestRanksShareEachEpochExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, batchSize, o := drawWorld(t)
		ranks := world(t, n, batchSize, o, loader.Cursor{}, slotCount(t))
		l, err := loader.New(numbers{n: n}, batchSize, o)
		require.NoError(t, err)
		steps, known := l.Batches()
		require.True(t, known)
		for _, batches := range ranks {
			require.Len(t, batches, steps, "every rank makes the steps that Batches tells before the first")
		}

		var got []int64
		for _, global := range globals(ranks) {
			got = append(got, global...)
		}
		used := n
		if o.Last == loader.Drop {
			used -= n % (batchSize * o.Shard.Count)
		}
		want := make([]int, used)
		epoch := l.Order(0)
		epoch.Fill(want, 0)
		require.Len(t, got, used)
		for i := range want {
			require.EqualValues(t, want[i], got[i], "position %d", i)
		}
	})
}

func TestPaddingWrapsToTheHeadOfTheSameEpoch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, batchSize, o := drawWorld(t)
		o.Last = loader.Pad
		l, err := loader.New(numbers{n: max(n, 1)}, batchSize, o)
		require.NoError(t, err)
		order := l.Order(0)
		for _, batches := range world(t, n, batchSize, o, loader.Cursor{}, 2) {
			for _, b := range batches {
				require.Equal(t, batchSize, b.filled.N)
				for row, index := range b.indices {
					position := b.filled.Position + int64(row)
					require.EqualValues(t, order.At(position), index)
					require.Equal(t, position, b.positions[row])
					require.Equal(t, row < b.filled.Valid, position < int64(n))
				}
			}
		}
	})
}

func TestWorkersAndSlotsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, batchSize, o := drawWorld(t)
		want := world(t, n, batchSize, o, loader.Cursor{}, 1)
		o.Workers = rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "other workers")
		require.Equal(t, want, world(t, n, batchSize, o, loader.Cursor{}, slotCount(t)))
	})
}

func TestWorldsOfTheSameGlobalBatchTrainOnTheSameSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, batchSize, o := drawWorld(t)
		want := globals(world(t, n, batchSize, o, loader.Cursor{}, 2))
		batchSize, o.Shard.Count = batchSize*o.Shard.Count, 1
		require.Equal(t, want, globals(world(t, n, batchSize, o, loader.Cursor{}, 2)))
	})
}

// A run that stops after any batch and goes on elsewhere is the run that did not
// stop, with other workers and slots and even with other ranks.
func TestResumingIsTheUninterruptedRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, batchSize, o := drawWorld(t)
		o.Epochs = 2
		whole := world(t, n, batchSize, o, loader.Cursor{}, 2)
		stop := rapid.IntRange(0, len(whole[0])-1).Draw(t, "stop")
		after := whole[0][stop].filled.After
		for _, batches := range whole {
			require.Equal(t, after, batches[stop].filled.After, "one cursor for all ranks")
		}

		o.Workers = rapid.SampledFrom([]int{1, 3}).Draw(t, "other workers")
		rest := world(t, n, batchSize, o, after, slotCount(t))
		for rank := range whole {
			require.Equal(t, whole[rank], append(whole[rank][:stop+1:stop+1], rest[rank]...))
		}
		if ranks := o.Shard.Count; batchSize%2 == 0 {
			batchSize, o.Shard.Count = batchSize/2, 2*ranks
			want := globals(whole)
			require.Equal(t, want, append(want[:stop+1:stop+1], globals(world(t, n, batchSize, o, after, 2))...))
		}
	})
}

func TestStoppingAtEveryBatchAndResumingTwice(t *testing.T) {
	o := loader.Options{Shuffle: true, Seed: 9, Epochs: 2, Workers: 2}
	l := newNumbers(t, numbers{n: 103}, 4, o)
	whole, err := readAll(t, l, loader.Cursor{}, 3)
	require.NoError(t, err)
	require.Len(t, whole, 52)
	for first := range whole {
		o.Workers = 1 + first%3
		l := newNumbers(t, numbers{n: 103}, 4, o)
		state := l.StateAt(whole[first].filled.After)
		mem := heap(t, l, 1+first%4)
		run := l.Start(t.Context(), state.Cursor(), mem)
		joined := whole[: first+1 : first+1]
		for len(joined) < min(first+8, len(whole)) {
			b, err := read(l, run, mem)
			if err != loader.ErrEpochEnd {
				require.NoError(t, err)
				joined = append(joined, b)
			}
		}
		require.NoError(t, run.Close())
		state = l.StateAt(joined[len(joined)-1].filled.After)
		rest, err := readAll(t, l, state.Cursor(), 2)
		require.NoError(t, err)
		require.Equal(t, whole, append(joined, rest...))
	}
}

// With another global batch the batches begin at the cursor, wherever it is, and
// the order goes on as it was.
func TestResumingInAnotherWorldBeginsAtTheCursor(t *testing.T) {
	o := loader.Options{Shuffle: true, Seed: 5, Epochs: 1, Last: loader.Drop, Shard: loader.Shard{Count: 3}}
	first := world(t, 20, 2, o, loader.Cursor{}, 2)
	after := first[0][0].filled.After
	require.Equal(t, loader.Cursor{Position: 6}, after)

	o.Shard.Count = 1
	rest := world(t, 20, 5, o, after, 2)[0]
	require.Len(t, rest, 2, "14 samples are left, and Drop applies to them")
	require.Equal(t, loader.Cursor{Position: 16}, rest[1].filled.After)
	all := world(t, 20, 20, o, loader.Cursor{}, 2)[0]
	require.Equal(t, indices(all)[:16], append(globals(first[:])[0], indices(rest)...))
}

func TestTenSamplesOnFourRanks(t *testing.T) {
	valid := func(batch int, last loader.LastPolicy) (counts [][]int, total int) {
		o := loader.Options{Epochs: 1, Last: last, Shard: loader.Shard{Count: 4}}
		for _, batches := range world(t, 10, batch, o, loader.Cursor{}, 2) {
			var rank []int
			for _, b := range batches {
				rank = append(rank, b.filled.Valid)
				total += b.filled.Valid
			}
			counts = append(counts, rank)
		}
		return counts, total
	}
	counts, total := valid(2, loader.Drop)
	require.Equal(t, [][]int{{2}, {2}, {2}, {2}}, counts)
	require.Equal(t, 8, total)
	counts, _ = valid(2, loader.Pad)
	require.Equal(t, [][]int{{2, 2}, {2, 0}, {2, 0}, {2, 0}}, counts)
	counts, total = valid(2, loader.Exact)
	require.Equal(t, [][]int{{2, 2}, {2, 0}, {2, 0}, {2, 0}}, counts)
	require.Equal(t, 10, total)

	counts, _ = valid(3, loader.Pad)
	require.Equal(t, [][]int{{3}, {3}, {3}, {1}}, counts)
	o := loader.Options{Epochs: 1, Last: loader.Pad, Shard: loader.Shard{Count: 4}}
	var got []int64
	for _, batches := range world(t, 10, 3, o, loader.Cursor{}, 2) {
		got = append(got, batches[0].indices...)
	}
	require.Equal(t, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1}, got)

	o.Last = loader.Drop
	_, err := loader.New(numbers{n: 10}, 3, o)
	require.ErrorIs(t, err, loader.ErrTooFewSamples)
	require.ErrorContains(t, err, "10 samples, and 4 ranks of batch size 3 take 12 at a time")
}

func TestRanksOfUnevenDatasetsMakeEquallyManySteps(t *testing.T) {
	for _, c := range []struct {
		n, batch, ranks int
		last            loader.LastPolicy
		steps           int
	}{
		{4097, 1024, 4, loader.Drop, 1},
		{4097, 1024, 4, loader.Pad, 2},
		{4097, 1024, 4, loader.Exact, 2},
		{10, 2, 3, loader.Drop, 1},
		{10, 2, 3, loader.Pad, 2},
		{23, 4, 2, loader.Drop, 2},
		{23, 4, 2, loader.Exact, 3},
		{1, 1, 4, loader.Pad, 1},
		{1, 1, 4, loader.Exact, 1},
	} {
		for rank := range c.ranks {
			l, err := loader.New(numbers{n: c.n}, c.batch, loader.Options{
				Last: c.last, Shard: loader.Shard{Index: rank, Count: c.ranks}, Epochs: 1,
			})
			require.NoError(t, err)
			steps, _ := l.Batches()
			require.Equal(t, c.steps, steps, "%+v", c)
			batches, err := readAll(t, l, loader.Cursor{}, 2)
			require.NoError(t, err)
			require.Len(t, batches, c.steps)
		}
	}
}

func TestEpochLengthIsNotMultipliedByWorkers(t *testing.T) {
	for _, workers := range []int{0, 2, 16} {
		l, err := loader.New(numbers{n: 8000}, 20, loader.Options{
			Last: loader.Drop, Shard: loader.Shard{Index: 1, Count: 2}, Workers: workers, Epochs: 1,
		})
		require.NoError(t, err)
		batches, err := readAll(t, l, loader.Cursor{}, 4)
		require.NoError(t, err)
		require.Len(t, batches, 200)
	}
}

func TestOneRankByEachPolicy(t *testing.T) {
	sizes := func(n int, last loader.LastPolicy) (sizes []int) {
		l, err := loader.New(numbers{n: n}, 4, loader.Options{Last: last, Epochs: 1})
		require.NoError(t, err)
		batches, err := readAll(t, l, loader.Cursor{}, 3)
		require.NoError(t, err)
		for i, b := range batches {
			sizes = append(sizes, b.filled.N)
			require.Equal(t, i == len(batches)-1, b.filled.LastOfEpoch)
			require.Equal(t, i, b.filled.Batch)
		}
		return sizes
	}
	require.Equal(t, []int{4, 4, 2}, sizes(10, loader.Keep))
	require.Equal(t, []int{4, 4}, sizes(10, loader.Drop))
	require.Equal(t, []int{4, 4, 4}, sizes(10, loader.Pad))
	require.Equal(t, []int{4, 4, 2}, sizes(10, loader.Exact))
	for _, last := range []loader.LastPolicy{loader.Keep, loader.Drop, loader.Pad, loader.Exact} {
		require.Equal(t, []int{4}, sizes(4, last), "as many samples as a batch")
	}
	require.Equal(t, []int{3}, sizes(3, loader.Keep), "fewer samples than a batch")
	require.Equal(t, []int{4}, sizes(3, loader.Pad))
	require.Equal(t, []int{4}, sizes(1, loader.Pad), "padding wraps more than once")
}

func TestDroppedSamplesDifferBetweenEpochs(t *testing.T) {
	l, err := loader.New(numbers{n: 11}, 4, loader.Options{Last: loader.Drop, Shuffle: true, Epochs: 10})
	require.NoError(t, err)
	batches, err := readAll(t, l, loader.Cursor{}, 2)
	require.NoError(t, err)
	seen := map[int64]bool{}
	for _, index := range indices(batches) {
		seen[index] = true
	}
	require.Len(t, seen, 11, "in ten epochs every sample has its turn")
	require.False(t, slices.Equal(indices(batches[:2]), indices(batches[2:4])))
}
