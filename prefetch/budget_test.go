package prefetch_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// The number of host slots that is chosen keeps large rings within a cache's size
// and gives small ones more slots than a few.
func TestHostSlotsAreChosenByTheirSize(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct{ bytes, budget, want int }{
		{1000, 0, 8}, {mib - 1, 0, 8}, {mib, 0, 32}, {4 * mib, 0, 32}, {16 * mib, 0, 8}, {38 * mib, 0, 3}, {60 * mib, 0, 3},
		{8 * mib, 48 * mib, 6}, {8 * mib, 24 * mib, 3},
	} {
		t.Run(fmt.Sprintf("bytes=%d/budget=%d", c.bytes, c.budget), func(t *testing.T) { // 256 are the index field's
			ld, err := loader.New(canary{n: 1, width: c.bytes - 256}, 1, loader.Options{})
			require.NoError(t, err)
			pf, err := prefetch.NewHost(ld, prefetch.Options{Memory: prefetch.Memory{PinnedBytes: int64(c.budget)}})
			require.NoError(t, err)
			require.Equal(t, c.want, pf.Plan().HostSlots)
			require.NoError(t, pf.Close())
		})
	}
}

func TestResultsAndOutputsCountInTheBudgets(t *testing.T) {
	data := canary{n: 8, width: 1000}
	bytes := func(po prefetch.Options) prefetch.Plan {
		r := newRig(t, data, cpu.Options{}, 2, plain, po)
		defer r.close()
		return r.pf.Plan()
	}(prefetch.Options{Depth: 2, Memory: prefetch.Memory{HostSlots: 2}})
	for name, po := range map[string]prefetch.Options{
		"pinned": {Depth: 2, Memory: prefetch.Memory{HostSlots: 2, PinnedBytes: bytes.HostBytes + 2*bytes.BatchBytes}},
		"device": {Depth: 2, Memory: prefetch.Memory{HostSlots: 2, DeviceBytes: bytes.DeviceBytes + 2*bytes.BatchBytes}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, data, cpu.Options{}, 2, plain, po)
			before := r.dev.Usage()
			for _, err := range r.pf.Map(context.Background(), prefetch.Output{Fields: data.Fields(), Slots: 3}, r.echo(always(0))) {
				require.ErrorIs(t, err, device.ErrOutOfMemory)
				require.ErrorContains(t, err, "budget")
			}
			require.Equal(t, before, r.dev.Usage(), "nothing was allocated")
			n := 0
			for _, err := range r.pf.Map(context.Background(), prefetch.Output{Fields: data.Fields(), Slots: 2}, r.echo(always(0))) {
				require.NoError(t, err)
				n++
			}
			require.Equal(t, 4, n, "what fits works")
			r.close()
		})
	}
	t.Run("a host consumer's output", func(t *testing.T) {
		ld, err := loader.New(data, 2, plain)
		require.NoError(t, err)
		_, err = prefetch.NewHost(ld, prefetch.Options{Transform: passOn(cpuSpin, 0, data), Memory: prefetch.Memory{PinnedBytes: 3 * bytes.BatchBytes}})
		require.ErrorIs(t, err, device.ErrOutOfMemory)
		_, err = prefetch.NewHost(ld, prefetch.Options{Memory: prefetch.Memory{PinnedBytes: bytes.BatchBytes, HostSlots: 2}})
		require.ErrorIs(t, err, device.ErrOutOfMemory)
		require.ErrorContains(t, err, fmt.Sprintf("the budget is %d bytes (raise Memory.PinnedBytes", bytes.BatchBytes))
	})
}

// vast samples are of a size whose products wrap to 0.
type vast struct{ canary }

func (vast) Fields() []loader.Field {
	return []loader.Field{{Name: "x", DType: dtype.Uint8, Shape: []int{min(1<<55, math.MaxInt)}}}
}

// No product of sizes and counts wraps round to one that a budget allows.
func TestSizesThatWrapAreOverEveryBudget(t *testing.T) {
	if math.MaxInt == math.MaxInt32 {
		t.Skip("an int has 32 bits: no sample is as large")
	}
	dev, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	compute, err := dev.NewStream(device.StreamOptions{})
	require.NoError(t, err)
	ld, err := loader.New(vast{canary{n: 4, width: 1}}, 1, loader.Options{})
	require.NoError(t, err)
	for _, po := range []prefetch.Options{
		{BatchesPerCopy: 512}, {BatchesPerCopy: 1 << 16}, {BatchesPerCopy: 1 << 9, Depth: 1 << 6},
		{BatchesPerCopy: 512, Memory: prefetch.Memory{DeviceBytes: math.MaxInt64, PinnedBytes: math.MaxInt64}},
		{BatchesPerCopy: 256, Depth: 1, Memory: prefetch.Memory{HostSlots: 256, DeviceBytes: math.MaxInt64, PinnedBytes: math.MaxInt64}},
	} {
		_, err := prefetch.New(compute, ld, po)
		require.ErrorIs(t, err, device.ErrOutOfMemory, "%+v", po)
		po.Transform = &prefetch.Transform{Out: vast{}.Fields(), Scratch: vast{}.Fields(), Apply: func(*device.Stream, prefetch.Fields, prefetch.Fields) error { return nil }}
		_, err = prefetch.New(compute, ld, po)
		require.ErrorIs(t, err, device.ErrOutOfMemory, "%+v", po)
		_, err = prefetch.NewHost(ld, po)
		require.ErrorIs(t, err, device.ErrOutOfMemory, "%+v", po)
	}
	require.NoError(t, compute.Close())
	require.NoError(t, dev.Close())
}
