package chain_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/chain"
)

// A batch through every operation costs less than half an allocation: what there is, the
// runtime makes for itself.
func TestAChainAllocatesNothing(t *testing.T) {
	drv, err := cpu.New(cpu.Options{})
	require.NoError(t, err)
	dev := device.New(drv)
	compute, err := dev.NewStream(device.StreamOptions{})
	require.NoError(t, err)
	transform, err := chain.New(pictures{}.Fields(),
		chain.Crop("image", 4, 4, chain.CropOptions{Pad: 1, FlipProbability: 0.5}),
		chain.Normalize("image", chain.NormalizeOptions{Mean: []float32{.5, .4, .3}, Std: []float32{1, 2, 3}, Layout: kernels.ToPlanar}),
		chain.Convert("image", dtype.Float16),
		chain.OneHot("label", 4))
	require.NoError(t, err)
	ld, err := loader.New(pictures{1 << 20}, 4, loader.Options{Workers: 2})
	require.NoError(t, err)
	pf, err := prefetch.New(compute, ld, prefetch.Options{Transform: transform})
	require.NoError(t, err)
	const warmUp, batches = 1000, 4000
	var before, after runtime.MemStats
	n := 0
	for _, err := range pf.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == warmUp {
			runtime.ReadMemStats(&before)
		}
		if n == warmUp+batches {
			runtime.ReadMemStats(&after)
			break
		}
	}
	require.Less(t, after.Mallocs-before.Mallocs, uint64(batches/2))
	require.NoError(t, pf.Close())
	require.NoError(t, compute.Close())
	require.NoError(t, dev.Close())
}
