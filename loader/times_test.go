package loader_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
)

const ms = time.Millisecond

// after is an instant in milliseconds since began; -1 is the zero Time.
func after(began, t time.Time) float64 {
	if t.IsZero() {
		return -1
	}
	return float64(t.Sub(began)) / float64(ms)
}

// A sample of 10 ms and others of 1 ms, each a batch, in four slots.
func TestASlowSampleHoldsUpTheBatchesBehindIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := func(_ context.Context, index int, _ *loader.Row) error {
			if index == 0 {
				time.Sleep(9 * ms)
			}
			time.Sleep(ms)
			return nil
		}
		l := newNumbers(t, numbers{n: 6, before: read}, 1, loader.Options{Workers: 2, Epochs: 1})
		mem := heap(t, l, 4)
		began := time.Now()
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		for _, want := range []struct{ asked, opened, filled, overtaken, held float64 }{
			{0, 0, 10, 1, 9},
			{0, 0, 1, -1, 0},
			{0, 0, 2, -1, 0},
			{0, 0, 3, -1, 0},
			{0, 10, 11, -1, 0}, // the Get that began when the slots were out
			{10, 10, 11, -1, 0},
		} {
			f, err := run.Next(t.Context())
			require.NoError(t, err)
			got := f.Times
			require.Equal(t, want.asked, after(began, got.Asked))
			require.Equal(t, want.opened, after(began, got.Opened))
			require.Equal(t, want.filled, after(began, got.Filled))
			require.Equal(t, want.overtaken, after(began, got.Overtaken))
			require.Equal(t, time.Duration(want.held*float64(ms)), got.Held())
			mem.Put(f.Slot)
		}
		require.Equal(t, 9*ms, run.Stats().WaitOrder)
		require.NoError(t, run.Close())
	})
}

// Two slow samples whose times overlap: no moment counts twice.
func TestTheWaitForOrderCountsEachMomentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		takes := []time.Duration{5 * ms, 8 * ms, ms, ms}
		read := func(_ context.Context, index int, _ *loader.Row) error {
			time.Sleep(takes[index])
			return nil
		}
		l := newNumbers(t, numbers{n: len(takes), before: read}, 1, loader.Options{Workers: 4, Epochs: 1})
		mem := heap(t, l, 4)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		for _, held := range []time.Duration{4 * ms, 7 * ms, 0, 0} {
			f, err := run.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, held, f.Times.Held())
			mem.Put(f.Slot)
		}
		require.Equal(t, 7*ms, run.Stats().WaitOrder, "from 1 ms to 8 ms")
		require.NoError(t, run.Close())
	})
}
