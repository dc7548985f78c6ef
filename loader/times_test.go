package loader_test

import (
	"context"
	"fmt"
	"slices"
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

// Who waited for whom, to the nanosecond, against a reference: rows in order go to the
// worker that is free first, and a batch opens when the one that had its slot is given
// back.
func TestTimesAndStatsAreExact(t *testing.T) {
	const samples = 60
	for _, shape := range []struct {
		name  string
		takes func(index int) time.Duration
	}{
		{"slow reads", func(i int) time.Duration { return 5*ms + time.Duration(i) }},
		{"one slow sample", func(i int) time.Duration {
			if i == 23 {
				return 70*ms + 7
			}
			return ms + time.Duration(i%3)
		}},
	} {
		for _, workers := range []int{1, 2, 5} {
			for _, batchSize := range []int{1, 4, 7} {
				for _, slots := range []int{1, 2, 5} {
					for _, body := range []time.Duration{0, 3*ms + 1, 40 * ms} {
						t.Run(fmt.Sprintf("%s/workers=%d/batch=%d/slots=%d/body=%v", shape.name, workers, batchSize, slots, body), func(t *testing.T) {
							want := schedule(samples, workers, batchSize, slots, body, shape.takes)
							for _, source := range sources {
								l := source.open(t, samples, batchSize, shape.takes, loader.Options{Workers: workers, Epochs: 1})
								want.compare(t, l, slots, body)
							}
						})
					}
				}
			}
		}
	}
}

// reference is what a Run must say of itself, as times since its start.
type reference struct {
	asked, opened, filled, overtaken []time.Duration // overtaken is -1 where nothing overtook

	waitSlot, waitBatch, waitOrder, busy, slowest time.Duration
}

func schedule(samples, workers, batchSize, slots int, body time.Duration, takes func(int) time.Duration) (r reference) {
	free := make([]time.Duration, workers)
	var back, claimed []time.Duration // when each batch was given back, and its last row claimed
	now, asked, index := time.Duration(0), time.Duration(0), 0
	for k := 0; index < samples; k++ {
		// Before, so many batches wait that there are two rows for each worker.
		if first := k - 1 - (2*workers-1)/batchSize; first > 0 {
			asked = max(asked, claimed[first-1])
		}
		opened, filled := asked, time.Duration(0)
		if k >= slots {
			opened = max(asked, back[k-slots])
		}
		var last time.Duration
		for range min(batchSize, samples-index) {
			worker := 0
			for w := range free {
				if free[w] < free[worker] {
					worker = w
				}
			}
			last = max(free[worker], opened)
			free[worker] = last + takes(index)
			filled = max(filled, free[worker])
			r.busy += takes(index)
			r.slowest = max(r.slowest, takes(index))
			index++
		}
		r.asked, r.opened, r.filled = append(r.asked, asked), append(r.opened, opened), append(r.filled, filled)
		claimed = append(claimed, last)
		r.waitSlot += opened - asked
		asked = opened
		r.waitBatch += max(filled-now, 0)
		now = max(now, filled) + body
		back = append(back, now)
	}
	var upTo time.Duration
	for k, filled := range r.filled {
		overtaken := time.Duration(-1)
		if k+1 < len(r.filled) {
			if first := slices.Min(r.filled[k+1:]); first < filled {
				overtaken = first
				r.waitOrder += max(0, filled-max(first, upTo))
			}
		}
		r.overtaken = append(r.overtaken, overtaken)
		upTo = max(upTo, filled)
	}
	return r
}

func (want reference) compare(t *testing.T, l *loader.Loader, slots int, body time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		mem := heap(t, l, slots)
		began := time.Now()
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		since := func(t time.Time) time.Duration {
			if t.IsZero() {
				return -1
			}
			return t.Sub(began)
		}
		for k := range want.filled {
			f, err := run.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, want.asked[k], since(f.Times.Asked), "batch %d", k)
			require.Equal(t, want.opened[k], since(f.Times.Opened), "batch %d", k)
			require.Equal(t, want.filled[k], since(f.Times.Filled), "batch %d", k)
			require.Equal(t, want.overtaken[k], since(f.Times.Overtaken), "batch %d", k)
			time.Sleep(body)
			mem.Put(f.Slot)
		}
		_, err := run.Next(t.Context())
		require.Equal(t, loader.ErrEpochEnd, err)
		s := run.Stats()
		require.Equal(t, want.waitSlot, s.WaitSlot)
		require.Equal(t, want.waitBatch, s.WaitBatch)
		require.Equal(t, want.waitOrder, s.WaitOrder)
		require.Equal(t, want.slowest, s.Slowest.Took)
		require.Equal(t, 1, s.Slowest.Neighbours)
		require.EqualValues(t, s.Slowest.Sample, s.Slowest.Position)
		var busy time.Duration
		for _, b := range s.Busy {
			busy += b
		}
		require.Equal(t, want.busy, busy)
		require.NoError(t, run.Close())
	})
}

// A slow sample among cheap ones, which are timed together: it is one of a few, and the
// others are taken off the time.
func TestTheSlowestOfCheapSamplesIsOneOfAFew(t *testing.T) {
	const cheap, slow, dear, n = 200 * time.Nanosecond, 3 * ms, 2500, 4096
	for _, source := range sources {
		l := source.open(t, n, 512, func(i int) time.Duration {
			if i == dear {
				return slow
			}
			return cheap
		}, loader.Options{Workers: 1, Epochs: 1})
		_, stats := elapsed(t, l, 2)
		s := stats.Slowest
		require.Equal(t, slow, s.Took)
		require.Greater(t, s.Neighbours, 1)
		require.LessOrEqual(t, s.Neighbours, 512)
		require.LessOrEqual(t, s.Position, int64(dear))
		require.Greater(t, s.Position+int64(s.Neighbours), int64(dear))
		require.EqualValues(t, s.Position, s.Sample)
	}
}
