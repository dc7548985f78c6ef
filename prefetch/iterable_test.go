package prefetch_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// stream is data's samples one after the other; the iterator ends with err behind
// them, if it is not nil.
func stream(data canary, err error) loader.Iterable {
	var seq iter.Seq2[int, error] = func(yield func(int, error) bool) {
		for i := range data.n {
			if !yield(i, nil) {
				return
			}
		}
		if err != nil {
			yield(0, err)
		}
	}
	again := func(context.Context, loader.Pass) iter.Seq2[int, error] { return seq }
	return loader.FromSeqFunc(data.Fields(), again, func(ctx context.Context, i int, row *loader.Row) error {
		return data.Read(ctx, i, row)
	})
}

// overStream is r with a Prefetcher over data's stream.
func (r *rig) overStream(err error, lo loader.Options, po prefetch.Options) *loader.Loader {
	r.t.Helper()
	require.NoError(r.t, r.pf.Close())
	ld, failed := loader.NewIterable(stream(r.data, err), lo)
	require.NoError(r.t, failed)
	r.pf, failed = prefetch.New(r.compute, ld, po)
	require.NoError(r.t, failed)
	return ld
}

// A stream's end is found only by asking for more: the tail is delivered all the
// same, every sample once whatever the workers, and every epoch is whole.
func TestTheTailOfAStreamIsDelivered(t *testing.T) {
	for _, c := range []struct {
		samples, batch int
		want           []int
	}{{130, 64, []int{64, 64, 2}}, {128, 64, []int{64, 64}}, {1, 64, []int{1}}, {10, 3, []int{3, 3, 3, 1}}} {
		for _, depth := range []int{1, 2} {
			for _, per := range []int{1, 3} {
				for _, workers := range []int{1, 4} {
					t.Run(fmt.Sprintf("samples=%d/batch=%d/depth=%d/batchespercopy=%d/workers=%d", c.samples, c.batch, depth, per, workers), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							lo := loader.Options{BatchSize: c.batch, Workers: workers, Epochs: 2}
							po := prefetch.Options{Depth: depth, HostSlots: 2, BatchesPerCopy: per}
							r := newRig(t, canary{n: c.samples, width: 7}, adversarial(time.Millisecond), lo, po)
							r.overStream(nil, lo, po)
							for epoch := range 2 {
								require.Equal(t, epoch, r.pf.Epoch())
								all := r.until(1<<30, "break")
								require.NoError(t, r.dev.Synchronize(t.Context()))
								var rows []int
								for i, got := range all {
									require.Equal(t, prefetch.Position{Epoch: epoch, Batch: i, Sample: int64(i * c.batch)}, got.at)
									require.NoError(t, r.verify(got))
									rows = append(rows, got.rows)
								}
								require.Equal(t, c.want, rows)
							}
							require.Empty(t, r.until(1, "break"), "and there is no third")
							r.close()
						})
					})
				}
			}
		}
	}
}

// A stream is gone on with where its state was taken, too.
func TestAStreamGoesOnWhereItWasLeft(t *testing.T) {
	for k := 1; k <= 7; k++ {
		synctest.Test(t, func(t *testing.T) {
			lo := loader.Options{BatchSize: 4, Workers: 2, Epochs: 2}
			r := newRig(t, canary{n: 30, width: 7}, adversarial(time.Millisecond), lo, prefetch.Options{})
			r.overStream(nil, lo, prefetch.Options{})
			all := r.until(k, "break")
			state := r.pf.State()
			lo.Workers = 4
			r.overStream(nil, lo, prefetch.Options{Depth: 1, HostSlots: 1})
			require.NoError(t, r.pf.Restore(state))
			for r.pf.Epoch() < 2 {
				all = append(all, r.until(k, "break")...)
			}
			r.sequence(all, 2)
			r.close()
		})
	}
}

func TestAStreamsErrorComesBehindItsSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lo := loader.Options{BatchSize: 4, Workers: 2}
		r := newRig(t, canary{n: 30, width: 7}, adversarial(time.Millisecond), lo, prefetch.Options{})
		r.overStream(&userError{30}, lo, prefetch.Options{})
		n := 0
		var failed error
		for b, err := range r.pf.Batches(t.Context()) {
			if failed = err; err == nil {
				require.Equal(t, n, b.Position().Batch)
				n++
			}
		}
		require.Equal(t, 7, n, "the whole batches before it")
		var mine *userError
		require.ErrorAs(t, failed, &mine)
		var where *loader.Error
		require.ErrorAs(t, failed, &where)
		require.Equal(t, 7, where.Batch)
		r.close()
	})
}

// A dataset of a billion samples costs no more than a small one: nothing is made
// for each sample, and any place is reached at once.
func TestABillionSamplesCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const samples = 1_000_000_000
		r := newRig(t, canary{n: samples, width: 4}, adversarial(0), loader.Options{BatchSize: 100, Shuffle: true, Workers: 2}, prefetch.Options{})
		for _, at := range []int64{0, samples / 2, samples - 100} {
			require.NoError(t, r.pf.Seek(3, at))
			all := r.until(1, "break")
			require.NoError(t, r.dev.Synchronize(t.Context()))
			require.Len(t, all, 1)
			require.Equal(t, at, all[0].at.Sample)
			require.NoError(t, r.verify(all[0]))
		}
		require.Equal(t, 4, r.pf.Epoch())
		r.close()
	})
}
