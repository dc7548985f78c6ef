package loader_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/ranks"
)

// Ranks with one data index have one batch, with the same random numbers and the same
// substitutes; ranks of other data indices have others.
func TestRanksOfOneDataIndexHaveOneBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := ranks.Mesh{{Name: "data", Size: 2}, {Name: "context", Size: 2}, {Name: "tensor", Size: 2}}
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
	run := func(m ranks.Mesh, at loader.Cursor) (all [][]batch) {
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
			all = append(all, got)
		}
		return all
	}
	whole := run(ranks.Mesh{{Name: "data", Size: 2}, {Name: "tensor", Size: 2}}, loader.Cursor{})
	after := whole[0][steps-1].filled.After
	require.EqualValues(t, global*steps, after.Position)
	for _, m := range []ranks.Mesh{
		{{Name: "data", Size: 4}, {Name: "tensor", Size: 1}},
		{{Name: "data", Size: 1}, {Name: "tensor", Size: 4}},
		{{Name: "data", Size: 2}, {Name: "context", Size: 1}, {Name: "tensor", Size: 2}},
	} {
		require.Equal(t, globals(whole)[steps:], globals(run(m, after)))
	}
}
