package prefetch_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

func TestAHostBatchHasTheDigestOfTheLoadersBatch(t *testing.T) {
	ld, err := loader.New(everyType(), 4, loader.Options{Workers: 2, Epochs: 1, Shuffle: true})
	require.NoError(t, err)
	mem, err := loader.NewHeap(ld.Layout().Size(), 2)
	require.NoError(t, err)
	var want, got []loader.Digest
	run := ld.Start(t.Context(), loader.Cursor{}, mem)
	for {
		f, err := run.Next(t.Context())
		if err != nil {
			break
		}
		want = append(want, ld.Layout().Digest(f))
		mem.Put(f.Slot)
	}
	require.NoError(t, run.Close())

	pf, err := prefetch.NewHost(ld, prefetch.Options{})
	require.NoError(t, err)
	for b, err := range pf.All(t.Context()) {
		require.NoError(t, err)
		d, err := b.Digest()
		require.NoError(t, err)
		got = append(got, d)
	}
	require.NoError(t, pf.Close())
	require.Len(t, got, 3)
	require.NoError(t, loader.FirstDifference(slices.Values(want), slices.Values(got)))
}

func TestABatchOnADeviceHasNoDigest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 3, width: 5}, cpu.Options{}, 3, loader.Options{Epochs: 1}, prefetch.Options{})
		for b, err := range r.pf.All(t.Context()) {
			require.NoError(t, err)
			_, err := b.Digest()
			var wrong *prefetch.ColumnError
			require.ErrorAs(t, err, &wrong)
		}
		r.close()
	})
}
