package loader_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// replayed takes n batches of a Replay, each as all the bytes of its fields.
func replayed(t *testing.T, l *loader.Loader, slots, n int) (batches []string) {
	t.Helper()
	mem := heap(t, l, slots)
	run := l.Start(t.Context(), loader.Cursor{}, mem)
	for i := range n {
		f, err := run.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, i, f.Batch)
		require.Zero(t, f.Epoch)
		require.EqualValues(t, i*l.BatchSize(), f.Position)
		require.Equal(t, loader.Cursor{Position: int64((i + 1) * l.BatchSize())}, f.After)
		batches = append(batches, wholeOf(l, f))
		mem.Put(f.Slot)
	}
	require.NoError(t, run.Close())
	require.Equal(t, slots, mem.Free())
	return batches
}

// wholeOf is all that a batch holds.
func wholeOf(l *loader.Loader, f loader.Filled) string {
	s := fmt.Sprint(f.N, f.Valid)
	for i := range l.Layout().Fields() {
		s += fmt.Sprintf(" %d %x", f.Extent(i), l.Layout().Rows(i, f))
	}
	return s
}

// firstOf takes the first batches of an epoch as they are, up to k.
func firstOf(t *testing.T, l *loader.Loader, k int) (batches []string) {
	mem := heap(t, l, 2)
	run := l.Start(t.Context(), loader.Cursor{}, mem)
	for len(batches) < k {
		f, err := run.Next(t.Context())
		if err != nil {
			require.ErrorIs(t, err, loader.ErrEpochEnd)
			break
		}
		batches = append(batches, wholeOf(l, f))
		mem.Put(f.Slot)
	}
	require.NoError(t, run.Close())
	return batches
}

func TestReplayGivesTheFirstBatchesForEver(t *testing.T) {
	const samples, size = 50, 4
	ragged := []loader.Field{
		{Name: "text", DType: dtype.Uint8, Shape: []int{60}, Ragged: &loader.Ragged{Length: "n", Mask: "m"}},
		{Name: "packed", DType: dtype.Uint16, Shape: []int{60}, Ragged: &loader.Ragged{Offsets: "at"}},
	}
	write := func(_ context.Context, i int, row *loader.Row) error {
		return errors.Join(loader.Write(row, "text", make([]uint8, i)...), loader.Write(row, "packed", make([]uint16, 50-i)...))
	}
	new := func(ds loader.Dataset, o loader.Options) *loader.Loader {
		l, err := loader.New(ds, size, o)
		require.NoError(t, err)
		return l
	}
	count := func(context.Context, loader.Pass) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			for i := 0; i < samples && yield(i, nil); i++ {
			}
		}
	}
	stream, err := loader.NewIterable(loader.FromSeqFunc(numberFields, count, func(_ context.Context, i int, row *loader.Row) error {
		writeNumber(i, row)
		return nil
	}), size, loader.Options{})
	require.NoError(t, err)
	for name, l := range map[string]*loader.Loader{
		"shuffled": new(numbers{n: samples}, loader.Options{Shuffle: true, Workers: 2}),
		"a rank":   new(numbers{n: samples}, loader.Options{Last: loader.Drop, Shard: loader.Shard{Index: 1, Count: 3}}),
		"short":    new(numbers{n: 9}, loader.Options{Epochs: 1}),
		"ragged":   new(loader.FromFunc(samples, ragged, write), loader.Options{}),
		"iterable": stream,
	} {
		for _, k := range []int{1, 2, 3, 20} {
			want := firstOf(t, l, k)
			replay, err := loader.Replay(t.Context(), l, k)
			require.NoError(t, err)
			require.Equal(t, l.Layout(), replay.Layout())
			_, known := replay.Batches()
			require.False(t, known)
			for _, slots := range []int{1, 2, 3, 5} {
				got := replayed(t, replay, slots, 100)
				require.Equal(t, want[:min(slots, len(want))], got[:min(slots, len(want))], "%s: %d of %d slots", name, k, slots)
				require.Subset(t, want, got)
			}
		}
	}
}

func TestReplayReadsOnce(t *testing.T) {
	var reads atomic.Int64
	ds := numbers{n: 100, before: func(context.Context, int, *loader.Row) error { reads.Add(1); return nil }}
	l, err := loader.New(ds, 5, loader.Options{Workers: 1})
	require.NoError(t, err)
	replay, err := loader.Replay(t.Context(), l, 3)
	require.NoError(t, err)
	read := reads.Load()
	require.LessOrEqual(t, read, int64(6*5), "three batches, and what was read ahead")
	require.Subset(t, firstOf(t, l, 3), replayed(t, replay, 4, 1000))
	require.LessOrEqual(t, reads.Load(), read+5*5)
}

// The place in a Replay can be saved, and returned to.
func TestReplayGoesOnAnywhere(t *testing.T) {
	l, err := loader.New(numbers{n: 100}, 5, loader.Options{})
	require.NoError(t, err)
	replay, err := loader.Replay(t.Context(), l, 2)
	require.NoError(t, err)
	state := replay.StateAt(loader.Cursor{Position: 35})
	require.NoError(t, replay.Check(state))
	require.Error(t, l.Check(state))
	mem := heap(t, replay, 2)
	run := replay.Start(t.Context(), state.Cursor(), mem)
	f, err := run.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, 7, f.Batch)
	require.NoError(t, run.Close())

	run = replay.Start(t.Context(), loader.Cursor{Position: 1<<62 - 7}, heap(t, replay, 2))
	_, err = run.Next(t.Context())
	require.NoError(t, err)
	_, err = run.Next(t.Context())
	require.ErrorIs(t, err, loader.ErrEpochEnd, "no number has room for more")
	require.NoError(t, run.Close())
}

func TestReplayTellsOfErrors(t *testing.T) {
	own := errors.New("my own error")
	bad := func(at int) *loader.Loader {
		l, err := loader.New(numbers{n: 100, before: func(_ context.Context, i int, _ *loader.Row) error {
			if i == at {
				return own
			}
			return nil
		}}, 5, loader.Options{})
		require.NoError(t, err)
		return l
	}
	_, err := loader.Replay(t.Context(), bad(12), 3)
	require.ErrorIs(t, err, own)
	require.ErrorContains(t, err, "batch 2, sample 12")
	_, err = loader.Replay(t.Context(), bad(12), 2)
	require.NoError(t, err)

	_, err = loader.Replay(t.Context(), nil, 1)
	require.ErrorContains(t, err, "Loader")
	for _, k := range []int{-1, 0, 1<<16 + 1} {
		_, err = loader.Replay(t.Context(), bad(0), k)
		var option *loader.OptionError
		require.ErrorAs(t, err, &option)
		require.Equal(t, "k", option.Option)
	}
	none, err := loader.NewIterable(loader.FromSeqFunc(numberFields, func(context.Context, loader.Pass) iter.Seq2[int, error] {
		return func(func(int, error) bool) {}
	}, func(context.Context, int, *loader.Row) error { return nil }), 1, loader.Options{Epochs: 1})
	require.NoError(t, err)
	_, err = loader.Replay(t.Context(), none, 1)
	require.ErrorIs(t, err, loader.ErrNoSamples)

	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, err = loader.Replay(ctx, bad(0), 1)
	require.ErrorIs(t, err, cause)
}

// While nobody takes batches nothing is done, and Close ends all.
func TestReplayWaitsForSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := loader.New(numbers{n: 100}, 5, loader.Options{})
		require.NoError(t, err)
		replay, err := loader.Replay(t.Context(), l, 2)
		require.NoError(t, err)
		mem := heap(t, replay, 3)
		run := replay.Start(t.Context(), loader.Cursor{}, mem)
		synctest.Wait()
		require.Zero(t, mem.Free())
		_, err = run.Next(t.Context())
		require.NoError(t, err)
		require.NoError(t, run.Close())
	})
}

func TestReplayAllocatesNothing(t *testing.T) {
	l, err := loader.New(numbers{n: 100}, 5, loader.Options{})
	require.NoError(t, err)
	replay, err := loader.Replay(t.Context(), l, 2)
	require.NoError(t, err)
	mem, ctx := heap(t, replay, 3), t.Context()
	run := replay.Start(ctx, loader.Cursor{}, mem)
	defer run.Close()
	next := func() {
		f, _ := run.Next(ctx)
		mem.Put(f.Slot)
	}
	for range 10 {
		next()
	}
	require.Less(t, testing.AllocsPerRun(1000, next), 0.1)
}

// BenchmarkReplay is what a batch costs that is filled already, beside the same batches
// when they are copied from memory.
func BenchmarkReplay(b *testing.B) {
	ds := newImages(150528, 512)
	l, err := loader.New(ds, 64, loader.Options{Last: loader.Drop, Shuffle: true})
	require.NoError(b, err)
	replay, err := loader.Replay(b.Context(), l, 4)
	require.NoError(b, err)
	for _, c := range []struct {
		name string
		*loader.Loader
	}{{"replay", replay}, {"read", l}} {
		b.Run(c.name, func(b *testing.B) {
			mem := heap(b, c.Loader, 4)
			run := c.Start(b.Context(), loader.Cursor{}, mem)
			b.ReportAllocs()
			for b.Loop() {
				f, err := run.Next(b.Context())
				if errors.Is(err, loader.ErrEpochEnd) {
					continue
				}
				require.NoError(b, err)
				mem.Put(f.Slot)
			}
			require.NoError(b, run.Close())
		})
	}
}
