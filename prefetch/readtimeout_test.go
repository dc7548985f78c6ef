package prefetch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A Read that hangs for an hour costs its batch a second, and the pipeline no slot.
func TestAReadThatHangsHoldsUpOneBatchForItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := canary{n: 60, width: 5, read: func(_ context.Context, i int) error {
			if i == 17 {
				time.Sleep(time.Hour)
			}
			return nil
		}}
		r := newRig(t, data, cpu.Options{}, 5, loader.Options{
			Epochs: 2, OnError: loader.Substitute, ReadTimeout: time.Second, GracePeriod: 2 * time.Second, Workers: 2,
		}, prefetch.Options{Memory: prefetch.Memory{HostSlots: 3}})
		began := time.Now()
		var got []reading
		late := 0
		for b, err := range r.pf.All(t.Context()) {
			require.NoError(t, err)
			if b.Position().Batch == 3 {
				require.Len(t, b.Substituted(), 1)
				s := b.Substituted()[0]
				require.Equal(t, 17, s.Sample)
				var timeout *loader.TimeoutError
				require.ErrorAs(t, s.Err, &timeout)
				late++
				continue
			}
			require.Empty(t, b.Substituted())
			got = append(got, r.read(b, 0))
		}
		require.Equal(t, 2*time.Second, time.Since(began), "a second an epoch")
		require.Equal(t, 2, late, "once an epoch")
		require.NoError(t, r.dev.Synchronize(t.Context()))
		require.Len(t, got, 22)
		for _, b := range got {
			require.NoError(t, r.verify(b))
		}
		require.NoError(t, r.dev.Synchronize(t.Context()))
		for b, err := range r.pf.Pass(t.Context()) { // another pass has no one to wait for either
			require.NoError(t, err)
			require.Zero(t, b.Position().Batch)
			break
		}
		require.NoError(t, r.pf.Seek(0, 10))
		require.NoError(t, r.dev.Synchronize(t.Context()))
		require.NoError(t, r.pf.Close(), "though two Reads have not returned")
		r.nothingLeft()
		require.NoError(t, r.arena.Close())
		require.NoError(t, r.compute.Close())
		require.NoError(t, r.dev.Close())
		time.Sleep(2 * time.Hour)
	})
}
