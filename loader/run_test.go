package loader_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

func newNumbers(t require.TestingT, ds numbers, batchSize int, o loader.Options) *loader.Loader {
	l, err := loader.New(ds, batchSize, o)
	require.NoError(t, err)
	return l
}

func TestEpochsEndOnceAndTheDataForEver(t *testing.T) {
	l := newNumbers(t, numbers{n: 5}, 2, loader.Options{Epochs: 3})
	mem := heap(t, l, 2)
	run := l.Start(t.Context(), loader.Cursor{}, mem)
	for epoch := range 3 {
		batches, err := readEpoch(l, run, mem)
		require.Equal(t, loader.ErrEpochEnd, err)
		require.Equal(t, []int64{0, 1, 2, 3, 4}, indices(batches))
		for i, b := range batches {
			require.Equal(t, epoch, b.filled.Epoch)
			require.Equal(t, i, b.filled.Batch)
			require.Equal(t, loader.Cursor{Epoch: epoch, Position: min(int64(2*i+2), 5)}, b.filled.After)
		}
	}
	for range 3 {
		_, err := run.Next(t.Context())
		require.Equal(t, loader.ErrEnd, err)
	}
	require.NoError(t, run.Close())
	require.NoError(t, run.Close())
	require.Equal(t, 2, mem.Free())
}

func TestOneLoaderServesManyPasses(t *testing.T) {
	l := newNumbers(t, numbers{n: 7}, 3, loader.Options{Shuffle: true, Epochs: 1})
	first, err := readAll(t, l, loader.Cursor{}, 2)
	require.NoError(t, err)
	for range 2 {
		again, err := readAll(t, l, loader.Cursor{}, 2)
		require.NoError(t, err)
		require.Equal(t, first, again)
	}
}

func TestRunsOfOneLoaderDoNotDisturbEachOther(t *testing.T) {
	l := newNumbers(t, numbers{n: 500}, 7, loader.Options{Shuffle: true, Epochs: 2, Workers: 2})
	want, err := readAll(t, l, loader.Cursor{}, 2)
	require.NoError(t, err)
	var all [4][]batch
	var errs [len(all)]error
	var group sync.WaitGroup
	for i := range all {
		group.Go(func() { all[i], errs[i] = readAll(t, l, loader.Cursor{}, 1+i) })
	}
	group.Wait()
	for i := range all {
		require.NoError(t, errs[i])
		require.Equal(t, want, all[i])
	}
}

func TestWithANumberOfEpochsTheRunWorksAheadOverTheBorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newNumbers(t, numbers{n: 2}, 2, loader.Options{Epochs: 2})
		mem := heap(t, l, 4)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		synctest.Wait()
		require.Equal(t, 2, mem.Free(), "both epochs are filled")
		require.NoError(t, run.Close())
	})
}

func TestWithoutANumberOfEpochsTheBorderWaitsToBeAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newNumbers(t, numbers{n: 2}, 2, loader.Options{Workers: 1})
		mem := heap(t, l, 4)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		for epoch := range 5 {
			b, err := read(l, run, mem)
			require.NoError(t, err)
			require.Equal(t, epoch, b.filled.Epoch)
			_, err = read(l, run, mem)
			require.Equal(t, loader.ErrEpochEnd, err)
			synctest.Wait()
			require.Equal(t, 4, mem.Free(), "nothing is filled before somebody asks")
		}
		require.NoError(t, run.Close())
	})
}

func TestReadyTellsWhetherNextWouldWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(context.Context, int, *loader.Row) error {
			time.Sleep(time.Second)
			return nil
		}
		l := newNumbers(t, numbers{n: 2, before: slow}, 1, loader.Options{Workers: 1, Epochs: 2})
		mem := heap(t, l, 4)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		for range 2 {
			for range 2 {
				require.False(t, run.Ready())
				time.Sleep(time.Second)
				synctest.Wait()
				require.True(t, run.Ready())
				require.True(t, run.Ready(), "asking takes nothing")
				_, err := read(l, run, mem)
				require.NoError(t, err)
			}
			require.True(t, run.Ready())
			_, err := read(l, run, mem)
			require.Equal(t, loader.ErrEpochEnd, err)
		}
		require.True(t, run.Ready(), "the end is there")
		require.NoError(t, run.Close())
		require.True(t, run.Ready(), "and so is an error")

		l = newNumbers(t, numbers{n: 1}, 1, loader.Options{})
		run = l.Start(t.Context(), loader.Cursor{Position: 1}, mem)
		synctest.Wait()
		require.True(t, run.Ready())
		_, err := run.Next(t.Context())
		require.Equal(t, loader.ErrEpochEnd, err)
		synctest.Wait()
		require.False(t, run.Ready(), "nobody has asked for the next epoch")
		require.NoError(t, run.Close())
	})
}

func TestTheFirstBatchTakesSamplesByWorkers(t *testing.T) {
	for _, c := range []struct {
		samples, workers int
		want             time.Duration
	}{{8, 1, 80}, {8, 4, 20}, {10, 4, 30}, {3, 8, 10}} {
		synctest.Test(t, func(t *testing.T) {
			slow := func(context.Context, int, *loader.Row) error {
				time.Sleep(10 * time.Millisecond)
				return nil
			}
			l := newNumbers(t, numbers{n: c.samples, before: slow}, c.samples, loader.Options{Workers: c.workers, Epochs: 1})
			mem := heap(t, l, 1)
			began := time.Now()
			run := l.Start(t.Context(), loader.Cursor{}, mem)
			_, err := run.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.want*time.Millisecond, time.Since(began), "%+v", c)
			stats := run.Stats()
			require.Equal(t, c.want*time.Millisecond, stats.WaitBatch)
			var busy time.Duration
			for _, b := range stats.Busy {
				busy += b
			}
			require.Equal(t, time.Duration(c.samples)*10*time.Millisecond, busy)
			require.NoError(t, run.Close())
		})
	}
}

func TestASlowConsumerIsSeenAsAWaitForSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newNumbers(t, numbers{n: 10}, 1, loader.Options{Epochs: 1})
		mem := heap(t, l, 1)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		for range 10 {
			f, err := run.Next(t.Context())
			require.NoError(t, err)
			time.Sleep(time.Second)
			mem.Put(f.Slot)
		}
		stats := run.Stats()
		require.Equal(t, 9*time.Second, stats.WaitSlot)
		require.Zero(t, stats.WaitBatch)
		require.EqualValues(t, 10, stats.Batches)
		require.EqualValues(t, 10, stats.Samples)
		require.NoError(t, run.Close())
	})
}

// Samples of 50 ms and steps of 50 ms overlap over epochs' borders too.
func TestSmallEpochsDoNotStarve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(context.Context, int, *loader.Row) error {
			time.Sleep(50 * time.Millisecond)
			return nil
		}
		l := newNumbers(t, numbers{n: 3, before: slow}, 1, loader.Options{Workers: 1, Epochs: 10})
		mem := heap(t, l, 3)
		began := time.Now()
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		for steps := 0; steps < 30; {
			f, err := run.Next(t.Context())
			if err == loader.ErrEpochEnd {
				continue
			}
			require.NoError(t, err)
			time.Sleep(50 * time.Millisecond)
			mem.Put(f.Slot)
			steps++
		}
		require.Equal(t, 31*50*time.Millisecond, time.Since(began))
		require.NoError(t, run.Close())
	})
}

func TestRandomNumbersBelongToSeedEpochAndPosition(t *testing.T) {
	batches := func(seed uint64, workers int) []batch {
		l := newNumbers(t, numbers{n: 100}, 8, loader.Options{Shuffle: true, Seed: seed, Epochs: 2, Workers: workers})
		all, err := readAll(t, l, loader.Cursor{}, 3)
		require.NoError(t, err)
		return all
	}
	one := batches(1, 1)
	require.Equal(t, one, batches(1, 4))
	require.Equal(t, one, batches(1, 16))
	seen := map[uint64]bool{}
	for _, b := range append(one, batches(2, 4)...) {
		for _, word := range b.random {
			require.False(t, seen[word])
			seen[word] = true
		}
	}
	require.Len(t, seen, 400)
}

func TestACursorOutsideTheDataIsReported(t *testing.T) {
	l := newNumbers(t, numbers{n: 5}, 2, loader.Options{Epochs: 3})
	for _, at := range []loader.Cursor{{Epoch: -1}, {Position: -1}, {Position: 6}} {
		run := l.Start(t.Context(), at, heap(t, l, 1))
		var bad *loader.StateError
		_, err := run.Next(t.Context())
		require.ErrorAs(t, err, &bad)
		require.NoError(t, run.Close())
	}
	run := l.Start(t.Context(), loader.Cursor{Position: 5}, heap(t, l, 1))
	_, err := run.Next(t.Context())
	require.Equal(t, loader.ErrEpochEnd, err, "the end of an epoch is a place in the data")
	require.NoError(t, run.Close())
	run = l.Start(t.Context(), loader.Cursor{Epoch: 3}, heap(t, l, 1))
	_, err = run.Next(t.Context())
	require.Equal(t, loader.ErrEnd, err)
	require.NoError(t, run.Close())
}

func TestASlotTooSmallIsReported(t *testing.T) {
	l := newNumbers(t, numbers{n: 5}, 2, loader.Options{Epochs: 1})
	mem, err := loader.NewHeap(l.Layout().Size()-1, 1)
	require.NoError(t, err)
	run := l.Start(t.Context(), loader.Cursor{}, mem)
	var failure *loader.Error
	_, err = run.Next(t.Context())
	require.ErrorAs(t, err, &failure)
	require.Equal(t, loader.StageSlot, failure.Stage)
	require.NoError(t, run.Close())
	require.Equal(t, 1, mem.Free())
}

// Fields of which no sample has a byte, and samples that have none at all.
func TestEmptyFieldsAndBatches(t *testing.T) {
	ds := loader.FromSlice(make([]struct{}, 5),
		[]loader.Field{{Name: "nothing", DType: dtype.Float32, Shape: []int{3, 0}}},
		func(_ context.Context, _ struct{}, row *loader.Row) error {
			if len(row.Bytes("nothing")) != 0 || loader.Column[float32](row, "nothing") != nil {
				panic("a field of no bytes has some")
			}
			return nil
		})
	l, err := loader.New(ds, 2, loader.Options{Epochs: 1})
	require.NoError(t, err)
	require.Zero(t, l.Layout().Size())
	mem := heap(t, l, 2)
	run := l.Start(t.Context(), loader.Cursor{}, mem)
	for _, n := range []int{2, 2, 1} {
		f, err := run.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, n, f.N)
		require.Empty(t, l.Layout().Rows(0, f))
		mem.Put(f.Slot)
	}
	require.NoError(t, run.Close())
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	if testing.CoverMode() != "" {
		t.Skip("coverage counts its own allocations")
	}
	l := newNumbers(t, numbers{n: 1 << 20}, 16, loader.Options{Shuffle: true, Workers: 2, Epochs: 1, Last: loader.Drop})
	mem := heap(t, l, 4)
	run := l.Start(t.Context(), loader.Cursor{}, mem)
	next := func() {
		f, err := run.Next(context.Background())
		if err != nil {
			panic(err)
		}
		mem.Put(f.Slot)
	}
	for range 100 {
		next()
	}
	require.Zero(t, testing.AllocsPerRun(2000, next))
	require.NoError(t, run.Close())
}
