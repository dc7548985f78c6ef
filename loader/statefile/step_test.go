package statefile_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/statefile"
	"github.com/leat-go/leat/loader/stream"
)

// ranked is one rank's loader of a stream of 6 shards.
func ranked(t *testing.T, rank loader.Shard) *loader.Loader {
	t.Helper()
	numbers := make([]int, 60)
	for i := range numbers {
		numbers[i] = i
	}
	field := []loader.Field{{Name: "n", DType: dtype.Int64}}
	data := stream.Encode(stream.Shuffle(stream.FromSlice(numbers, 6), 5), field, func(_ context.Context, n int, row *loader.Row) error {
		return loader.Write(row, "n", int64(n))
	})
	ld, err := loader.NewStream(data, 12/rank.Count, loader.Options{Seed: 1, Steps: 10, Epochs: 1, Shard: rank})
	require.NoError(t, err)
	return ld
}

// steps takes so many steps of a rank from a State on, and calls after behind each.
func steps(t *testing.T, rank loader.Shard, from loader.State, most int, after func(step int, s loader.State)) (numbers [][]int64) {
	t.Helper()
	ld := ranked(t, rank)
	at := loader.Cursor{}
	if !from.Equal(loader.State{}) {
		require.NoError(t, ld.Check(from))
		at = from.Cursor()
	}
	mem, err := loader.NewHeap(ld.Layout().Size(), 2)
	require.NoError(t, err)
	run := ld.Start(t.Context(), at, mem)
	for range most {
		b, err := run.Next(t.Context())
		if errors.Is(err, loader.ErrEpochEnd) {
			break
		}
		require.NoError(t, err)
		numbers = append(numbers, append([]int64(nil), dtype.As[int64](ld.Layout().Rows(0, b))...))
		mem.Put(b.Slot)
		after(b.Batch+1, ld.StateAt(b.After))
	}
	require.NoError(t, run.Close())
	return numbers
}

// Three ranks save every second step and end at different ones. Any number of ranks goes on
// behind the newest step that all have saved, and the samples are those of the whole run.
func TestRanksGoOnBehindTheNewestStepOfAll(t *testing.T) {
	none := func(int, loader.State) {}
	folder := t.TempDir()
	_, _, err := statefile.Newest(folder)
	require.ErrorIs(t, err, fs.ErrNotExist)
	whole := make([][]int64, 10) // by step, over all ranks
	for index, taken := range []int{7, 9, 5} {
		rank := loader.Shard{Index: index, Count: 3}
		for i, numbers := range steps(t, rank, loader.State{}, 10, none) {
			whole[i] = append(whole[i], numbers...)
		}
		steps(t, rank, loader.State{}, taken, func(step int, s loader.State) {
			if step%2 == 0 {
				require.NoError(t, statefile.SaveStep(folder, int64(step), rank, s))
			}
		})
	}
	step, s, err := statefile.Newest(folder)
	require.NoError(t, err)
	require.EqualValues(t, 4, step)
	for _, ranks := range []int{1, 2, 3, 6} {
		got := make([][]int64, 6)
		for index := range ranks {
			for i, numbers := range steps(t, loader.Shard{Index: index, Count: ranks}, s, 10, none) {
				got[i] = append(got[i], numbers...)
			}
		}
		for i := range got {
			require.ElementsMatch(t, whole[4+i], got[i], "step %d of %d ranks", 4+i, ranks)
		}
	}
}

func TestNewest(t *testing.T) {
	folder := t.TempDir()
	save := func(step int64, ranks int, saved ...int) {
		for _, rank := range saved {
			require.NoError(t, statefile.SaveStep(folder, step, loader.Shard{Index: rank, Count: ranks}, at(t, step)))
		}
	}
	newest := func(want int64) {
		t.Helper()
		step, s, err := statefile.Newest(folder)
		require.NoError(t, err)
		require.Equal(t, want, step)
		require.True(t, s.Equal(at(t, want)))
	}
	save(9, 2, 0, 1)
	save(10, 2, 1)
	newest(9)
	save(10, 1, 0) // a run of one rank
	newest(10)
	for name, text := range map[string]string{"step-000000000011-rank-0-of-1.json.123.new": "", "step-11-rank-0-of-1.json": "",
		"step-000000000011-rank-1-of-1.json": "", "model-000000000011": "",
		"step-000000000011-rank-00-of-1.json": "", "step-99999999999999999999-rank-0-of-1.json": ""} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	newest(10)
	save(10, 2, 0)
	var both *statefile.AmbiguousError
	_, _, err := statefile.Newest(folder)
	require.ErrorAs(t, err, &both)
	require.Equal(t, []int{1, 2}, both.Ranks)
	save(1_000_000_000_000, 1, 0)
	newest(1_000_000_000_000)

	require.NoError(t, statefile.Prune(folder, 1_000_000_000_000))
	newest(1_000_000_000_000)
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, entries, 7, "other files are not touched: %v", entries)

	// States that don't fit together are not passed over for an older step.
	save(1_000_000_000_001, 2, 0)
	other := at(t, 5)
	other.Seed++
	require.NoError(t, statefile.SaveStep(folder, 1_000_000_000_001, loader.Shard{Index: 1, Count: 2}, other))
	_, _, err = statefile.Newest(folder)
	require.ErrorAs(t, err, new(*loader.StateError))
	broken := filepath.Join(folder, "step-1000000000001-rank-1-of-2.json")
	require.NoError(t, os.WriteFile(broken, []byte("{"), 0o600))
	_, _, err = statefile.Newest(folder)
	var where *statefile.Error
	require.ErrorAs(t, err, &where)
	require.Equal(t, broken, where.Path)

	_, _, err = statefile.Newest(broken)
	require.Error(t, err)
	require.NotErrorIs(t, err, fs.ErrNotExist, "a file is no folder; nobody is to begin at the beginning")
	stays := filepath.Join(folder, "step-000000000001-rank-0-of-1.json")
	require.NoError(t, os.MkdirAll(filepath.Join(stays, "inside"), 0o700))
	require.ErrorAs(t, statefile.Prune(folder, 2), &where)
	require.Equal(t, stays, where.Path)

	_, _, err = statefile.Newest(filepath.Join(folder, "missing"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, statefile.Prune(filepath.Join(folder, "missing"), 1), fs.ErrNotExist)
}

func TestMistakesOfSaveStep(t *testing.T) {
	for _, c := range []struct {
		step int64
		rank loader.Shard
		want string
	}{
		{-1, loader.Shard{}, "step is -1, want 0 or more"},
		{0, loader.Shard{Index: 1}, "rank.Index is 1, want 0 to 0"},
		{0, loader.Shard{Index: -1, Count: 3}, "rank.Index is -1, want 0 to 2"},
	} {
		err := statefile.SaveStep(t.TempDir(), c.step, c.rank, at(t, 1))
		require.ErrorContains(t, err, c.want)
		require.ErrorAs(t, err, new(*loader.OptionError))
	}
	require.NoError(t, statefile.SaveStep(t.TempDir(), 0, loader.Shard{}, at(t, 1)), "one rank")
}

func ExampleNewest() {
	folder, err := os.MkdirTemp("", "states")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	_, _, err = statefile.Newest(folder)
	fmt.Println("begin at the beginning:", errors.Is(err, fs.ErrNotExist))
	data := loader.FromFunc(8, []loader.Field{{Name: "x", DType: dtype.Int64}},
		func(_ context.Context, i int, row *loader.Row) error { return loader.Write(row, "x", int64(i)) })
	for index, last := range []int64{3, 2} { // rank 1 is killed before it has saved step 3
		rank := loader.Shard{Index: index, Count: 2}
		ld, err := loader.New(data, 1, loader.Options{Shard: rank, Last: loader.Drop})
		if err != nil {
			panic(err)
		}
		for step := int64(1); step <= last; step++ {
			if err := statefile.SaveStep(folder, step, rank, ld.StateAt(loader.Cursor{Position: 2 * step})); err != nil {
				panic(err)
			}
		}
	}
	step, state, err := statefile.Newest(folder)
	fmt.Println("step", step, "sample", state.Position, err)
	// Output:
	// begin at the beginning: true
	// step 2 sample 4 <nil>
}
