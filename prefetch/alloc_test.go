package prefetch_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/internal/invariants"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// steady requires that batches cost no Go allocation, over all goroutines, and no
// allocating driver call, once the first are through. What is left are the CPU
// device's lists, which grow when the host runs further ahead than it did before, and
// the runtime's own: few, and not one a batch. bytes is how many the field of that name has in each.
func (r *rig) steady(bytes int64) {
	r.t.Helper()
	var before, after runtime.MemStats
	var allocations int64
	const warmUp, batches = 2000, 10_000
	n := 0
	for b, err := range r.pf.Batches(context.Background()) {
		if err != nil {
			r.t.Fatal(err)
		}
		if b.Field("bytes").View.Bytes() != bytes {
			r.t.Fatal("not a full batch")
		}
		switch n++; n {
		case warmUp:
			allocations = r.dev.Usage().Allocations
			runtime.GC()
			runtime.ReadMemStats(&before)
		case warmUp + batches:
			runtime.ReadMemStats(&after)
		}
		if n == warmUp+batches {
			break
		}
	}
	require.Equal(r.t, allocations, r.dev.Usage().Allocations)
	require.Less(r.t, after.Mallocs-before.Mallocs, uint64(batches/50))
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	data := canary{n: 1 << 20, width: 16}
	for name, po := range map[string]prefetch.Options{
		"plain":           {},
		"timing":          {Timing: true},
		"several a copy":  {BatchesPerCopy: 4},
		"transform":       {Transform: passOn(cpuSpin, 0, data)},
		"compute streams": {ComputeStreams: 3},
	} {
		t.Run(name, func(t *testing.T) {
			r := newKindRig(t, data, cpu.Options{}, loader.Options{BatchSize: 16, Shuffle: true, Workers: 2}, po)
			r.steady(16 * 16)
			r.close()
		})
	}
}

func TestAResultAllocatesNothing(t *testing.T) {
	r := newKindRig(t, canary{n: 1 << 20, width: 16}, cpu.Options{}, loader.Options{BatchSize: 16, Shuffle: true, Workers: 2}, prefetch.Options{})
	var before, after runtime.MemStats
	const warmUp, batches = 500, 4000
	n := 0
	step := func(b prefetch.Batch, out prefetch.Fields) error {
		return b.Stream().CopyD2D(out.Field("bytes").View, b.Field("bytes").View)
	}
	for res, err := range r.pf.Map(context.Background(), prefetch.Output{Fields: r.data.Fields()[1:]}, step) {
		if err != nil || len(res.Field("bytes").Bytes) != 16*16 {
			t.Fatal("not a full result", err)
		}
		switch n++; n {
		case warmUp:
			runtime.GC()
			runtime.ReadMemStats(&before)
		case warmUp + batches:
			runtime.ReadMemStats(&after)
		}
		if n == warmUp+batches {
			break
		}
	}
	require.Less(t, after.Mallocs-before.Mallocs, uint64(batches/10))
	r.close()
}

func TestAHostBatchAllocatesNothing(t *testing.T) {
	if invariants.Enabled {
		t.Skip("in this build every host batch has memory of its own")
	}
	ld, err := loader.New(canary{n: 1 << 20, width: 16}, loader.Options{BatchSize: 16, Shuffle: true, Workers: 2})
	require.NoError(t, err)
	pf, err := prefetch.NewHost(ld, prefetch.Options{})
	require.NoError(t, err)
	rd, err := pf.Open(context.Background())
	require.NoError(t, err)
	next := func() {
		b, err := rd.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if dense, err := b.Tensor("bytes"); err != nil || dense.Shape()[0] != 16 {
			t.Fatal("not a full batch", err)
		}
		b.Release()
	}
	for range 500 {
		next()
	}
	require.Less(t, testing.AllocsPerRun(4000, next), 0.1)
	require.NoError(t, rd.Close())
	require.NoError(t, pf.Close())
}
