package prefetch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// At rest the Prefetcher makes no driver call and reads no sample; then it goes on
// with the very next batch.
func TestQuiescedNothingCallsTheDevice(t *testing.T) {
	for _, per := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			reads := 0
			data := canary{n: 60, width: 8, read: func(context.Context, int) error { reads++; return nil }}
			r := newRig(t, data, adversarial(time.Millisecond), loader.Options{BatchSize: 3, Shuffle: true, Workers: 1, Epochs: 2},
				prefetch.Options{BatchesPerCopy: per, Transform: passOn(cpuSpin, time.Millisecond, data)})
			var all []reading
			for r.pf.Epoch() < 2 {
				for b, err := range r.pf.Batches(t.Context()) {
					require.NoError(t, err)
					all = append(all, r.read(b, 2*time.Millisecond))
					if len(all)%3 == 0 {
						require.NoError(t, r.pf.Quiesce(t.Context()))
						calls, before := r.tap.Calls(), reads
						time.Sleep(time.Second)
						require.Equal(t, calls, r.tap.Calls())
						require.Equal(t, before, reads)
					}
				}
			}
			require.Len(t, all, 40)
			require.NoError(t, r.dev.Synchronize(t.Context()))
			for i, got := range all {
				require.Equal(t, i%20, got.at.Batch)
				require.NoError(t, r.verify(got))
			}
			r.close()
			require.ErrorIs(t, r.pf.Quiesce(t.Context()), prefetch.ErrClosed)
		})
	}
}

func TestQuiesceIsBusyDuringAMap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 20, width: 8}, adversarial(time.Millisecond), plain, prefetch.Options{})
		for _, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: r.data.Fields()}, r.echo(always(0))) {
			require.NoError(t, err)
			require.ErrorIs(t, r.pf.Quiesce(t.Context()), prefetch.ErrBusy)
		}
		require.NoError(t, r.pf.Quiesce(t.Context()), "also where nothing runs")
		r.close()
	})
}
