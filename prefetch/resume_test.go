package prefetch_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// sequence requires that readings are the batches of whole epochs, one after the
// other, from the first of the first, and that each holds its own samples.
func (r *rig) sequence(all []reading, epochs int) {
	r.t.Helper()
	require.NoError(r.t, r.dev.Synchronize(r.t.Context()))
	per, _ := r.ld.Batches()
	require.Len(r.t, all, epochs*per)
	for i, got := range all {
		want := prefetch.Position{Epoch: i / per, Batch: i % per, First: int64(i % per * r.ld.BatchSize())}
		require.Equal(r.t, want, got.at)
		require.NoError(r.t, r.verify(got))
	}
}

// Stopped at every batch, and once more a few batches later, each time to go on
// from a saved state with other workers, slots and uploads: what comes is the
// uninterrupted run, and the epochs behind are whole.
func TestResumingTwiceAtEveryBatchIsTheUninterruptedRun(t *testing.T) {
	const samples, batch, epochs = 103, 4, 3
	const perEpoch = (samples + batch - 1) / batch
	resumed := func(t *testing.T, way int, from []byte, stop int) ([]reading, []byte) {
		data := canary{n: samples, width: 5}
		lo := loader.Options{Shuffle: true, Seed: 11, Epochs: epochs, Workers: 1 + way%5}
		po := prefetch.Options{Depth: 1 + way%4, BatchesPerCopy: 1 + way%2, Memory: prefetch.Memory{HostSlots: 1 + way%3}}
		r := newRig(t, data, adversarial(time.Millisecond), batch, lo, po)
		if from != nil {
			var st loader.State
			require.NoError(t, json.Unmarshal(from, &st))
			require.NoError(t, r.pf.Restore(st))
			require.NoError(t, r.pf.Restore(st), "restoring twice is restoring once")
		}
		var all []reading
		for r.pf.Epoch() < epochs && len(all) < stop {
			all = append(all, r.until(stop-len(all), "break")...)
		}
		require.NoError(t, r.dev.Synchronize(t.Context()))
		for i := range all {
			require.NoError(t, r.verify(all[i]))
			all[i].index, all[i].bytes = nil, nil // the rig's memory goes
		}
		state, err := json.Marshal(r.pf.State())
		require.NoError(t, err)
		r.close()
		return all, state
	}
	for k := range perEpoch + 1 {
		synctest.Test(t, func(t *testing.T) {
			all, state := resumed(t, k, nil, k)
			second, state := resumed(t, k+7, state, 5)
			third, _ := resumed(t, k+13, state, epochs*perEpoch)
			all = append(append(all, second...), third...)
			require.Len(t, all, epochs*perEpoch)
			for i, got := range all {
				require.Equal(t, prefetch.Position{Epoch: i / perEpoch, Batch: i % perEpoch, First: int64(i % perEpoch * batch)}, got.at)
			}
		})
	}
}

// In the body of batch k, batch k counts as delivered; batches that were only
// uploaded don't.
func TestTheStateCountsDeliveredBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 40, width: 4}, adversarial(0), 4, loader.Options{Workers: 2, Epochs: 2}, prefetch.Options{})
		require.EqualValues(t, 0, r.pf.State().Position)
		for b, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err)
			synctest.Wait() // all that can be uploaded ahead is
			at := b.Position()
			if at.Batch < 9 {
				require.Equal(t, int64(at.Batch+1)*4, r.pf.State().Position)
				require.Zero(t, r.pf.State().Epoch)
				continue
			}
			require.Zero(t, r.pf.State().Position, "behind the last batch is the next epoch")
			require.Equal(t, 1, r.pf.State().Epoch)
		}
		r.close()
	})
}

// A state is no use elsewhere: it is refused with all that doesn't fit, and nothing
// changes.
func TestAStateOfOtherDataChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 40, width: 4}, adversarial(0), 4, loader.Options{Workers: 1, Seed: 1}, prefetch.Options{})
		r.until(3, "break")
		other := newRig(t, canary{n: 41, width: 4}, adversarial(0), 4, loader.Options{Workers: 1, Seed: 2}, prefetch.Options{})
		before := r.pf.State()
		err := r.pf.Restore(other.pf.State())
		var state *loader.StateError
		require.ErrorAs(t, err, &state)
		require.Equal(t, `prefetch: Restore: the state does not fit: loader: the dataset has 40 samples, the state was saved with 41
loader: the seed is 1, the state was saved with 2`, err.Error())
		require.ErrorContains(t, r.pf.Restore(loader.State{}), "the state is the zero value")
		require.ErrorAs(t, r.pf.Seek(0, 41), &state)
		require.Equal(t, "loader: Position is 41, want 0 to 40", state.Error(), "a Seek has no state")
		require.ErrorAs(t, r.pf.Seek(-1, 0), &state)
		require.Equal(t, before, r.pf.State())
		require.Len(t, r.until(100, "break"), 7, "the rest of the epoch")
		r.close()
		other.close()
	})
}

// One loader serves any number of ranges and of Prefetchers, and none disturbs
// another: every range is a whole epoch.
func TestOneLoaderServesManyRanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lo := loader.Options{Shuffle: true, Seed: 5, Workers: 3}
		r := newRig(t, canary{n: 30, width: 4}, adversarial(time.Millisecond), 4, lo, prefetch.Options{})
		second, err := prefetch.New(r.compute, r.ld, prefetch.Options{Depth: 1})
		require.NoError(t, err)
		first := r.pf
		var all, other []reading
		for range 3 {
			all = append(all, r.until(100, "break")...)
			r.pf = second
			other = append(other, r.until(100, "break")...)
			r.pf = first
		}
		r.sequence(all, 3)
		r.sequence(other, 3)
		require.NoError(t, second.Close())
		r.close()
	})
}

// The order is another in each epoch, and the same whatever brings it.
func TestEpochsHaveOrdersOfTheirOwnForAnyPipeline(t *testing.T) {
	orders := map[string]bool{}
	for _, workers := range []int{1, 4} {
		for epoch := range 3 {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, canary{n: 30, width: 4}, adversarial(0), 7, loader.Options{Shuffle: true, Seed: 9, Workers: workers},
					prefetch.Options{Depth: workers, Memory: prefetch.Memory{HostSlots: workers}})
				require.NoError(t, r.pf.Seek(epoch, 0))
				var indexes []byte
				all := r.until(100, "break")
				require.NoError(t, r.dev.Synchronize(t.Context()))
				for _, got := range all {
					require.NoError(t, r.verify(got))
					indexes = append(indexes, got.index...)
				}
				orders[fmt.Sprint(indexes)] = true
				r.close()
			})
		}
	}
	require.Len(t, orders, 3)
}

// A place behind the last of a stated number of epochs is no place; their end is one,
// where nothing is left.
func TestThereIsNoPlaceBehindTheLastEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := canary{n: 40, width: 4}
		r := newRig(t, data, adversarial(0), 4, loader.Options{Epochs: 2}, prefetch.Options{})
		longer := newRig(t, data, adversarial(0), 4, loader.Options{Epochs: 9}, prefetch.Options{})
		require.NoError(t, longer.pf.Seek(3, 4))
		r.until(3, "break")
		before := r.pf.State()
		for _, err := range []error{
			r.pf.Seek(3, 0), r.pf.Seek(9, 0), r.pf.Seek(2, 4), r.pf.Seek(1<<30, 0), r.pf.Restore(longer.pf.State()),
		} {
			var state *loader.StateError
			require.ErrorAs(t, err, &state)
			require.Equal(t, before, r.pf.State())
		}
		for _, end := range []func() error{
			func() error { return r.pf.Seek(2, 0) },
			func() error { return r.pf.Seek(1, 40) },
			func() error { return r.pf.Restore(r.pf.State()) },
		} {
			require.NoError(t, end())
			require.Equal(t, 2, r.pf.Epoch())
			require.Empty(t, r.until(1, "break"))
		}
		require.NoError(t, r.pf.Seek(1, 36))
		require.Len(t, r.until(100, "break"), 1)
		r.close()
		longer.close()
	})
}

// A Prefetcher that is closed goes nowhere.
func TestAClosedPrefetcherIsNotMoved(t *testing.T) {
	for _, form := range forms {
		t.Run(form.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pf := form.open(t, canary{n: 40, width: 4}, 4, loader.Options{Epochs: 2}, prefetch.Options{}, 0)
				for _, err := range pf.Batches(t.Context()) {
					require.NoError(t, err)
					break
				}
				before := pf.State()
				require.NoError(t, pf.Close())
				require.ErrorIs(t, pf.Seek(1, 0), prefetch.ErrClosed)
				require.ErrorIs(t, pf.Restore(before), prefetch.ErrClosed)
				require.Equal(t, before, pf.State())
			})
		})
	}
	synctest.Test(t, func(t *testing.T) { // a source that is closed with it
		ld, err := loader.NewIterable(newOnce(canary{n: 8, width: 4}).iterable(), 4, loader.Options{Epochs: 1})
		require.NoError(t, err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{})
		require.NoError(t, err)
		before := pf.State()
		require.NoError(t, pf.Close())
		require.Equal(t, prefetch.ErrClosed, pf.Seek(0, 0))
		require.Equal(t, prefetch.ErrClosed, pf.Restore(before))
	})
}
