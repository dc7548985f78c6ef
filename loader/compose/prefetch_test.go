package compose_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/compose"
	"github.com/leat-go/leat/prefetch"
)

// onDevice reads some batches of "x" back from device memory, after a state or none, and
// returns the state behind them.
func onDevice(t *testing.T, ds loader.Dataset, from *loader.State, most int) (read []int64, after loader.State) {
	dev, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	compute, err := dev.NewStream(device.StreamOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, compute.Close()) }()
	ld, err := loader.New(ds, 8, loader.Options{Epochs: 2})
	require.NoError(t, err)
	pf, err := prefetch.New(compute, ld, prefetch.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, pf.Close()) }()
	if from != nil {
		require.NoError(t, pf.Restore(*from))
	}
	batches := 0
	for batch, err := range pf.All(t.Context()) {
		require.NoError(t, err)
		view := batch.Field("x").View
		host := make([]byte, 8*batch.Len())
		require.NoError(t, compute.CopyD2H(host, view))
		require.NoError(t, compute.Synchronize(t.Context()))
		read = append(read, dtype.As[int64](host)...)
		if batches++; batches == most {
			break
		}
	}
	return read, pf.State()
}

// A set that is split, mixed, cached and mapped reaches device memory as it should, also
// with a stop in the second epoch.
func TestACompositionOnADevice(t *testing.T) {
	parts, err := compose.Split(values(upTo(0, 100)...), 1, 0.8, 0.2)
	require.NoError(t, err)
	cache, err := compose.CacheMemory(parts[0], 1<<20)
	require.NoError(t, err)
	mixed := must(compose.Mix(3, compose.UntilAllEnded,
		compose.Source{Dataset: cache, Weight: 3}, compose.Source{Dataset: values(upTo(1000, 10)...), Weight: 1}))
	ds := must(compose.Map(mixed, xField, plus(5)))
	want := contents(t, ds, 2)
	whole, _ := onDevice(t, ds, nil, -1)
	require.Equal(t, append(want[0], want[1]...), whole)
	for _, stop := range []int{1, len(want[0])/8 + 1, len(want[0])/8 + 4} {
		first, state := onDevice(t, ds, nil, stop)
		rest, _ := onDevice(t, ds, &state, -1)
		require.Equal(t, whole, append(first, rest...), "stop after %d batches", stop)
	}
	require.EqualValues(t, parts[0].Len(), cache.Stats().Reads)
}
