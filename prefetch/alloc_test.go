package prefetch_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/internal/invariants"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/observe"
	"github.com/leat-go/leat/prefetch"
)

// watchAllocations watches every Go allocation from now on. The function that it
// returns lists those that code of this module has made since, by where. It counts by
// stacks, since a total would also have what the runtime makes for itself while a
// goroutine waits or starts, and that varies with the machine's load.
func watchAllocations(t *testing.T) func() []string {
	rate := runtime.MemProfileRate
	runtime.MemProfileRate = 1
	t.Cleanup(func() { runtime.MemProfileRate = rate })
	before := profile()
	return func() (made []string) {
		for stack, n := range profile() {
			if n -= before[stack]; n > 0 && ours(stack) {
				made = append(made, fmt.Sprintf("%d times\n%s", n, describe(stack)))
			}
		}
		return made
	}
}

type stack [32]uintptr

// profile is the number of allocations by stack.
func profile() map[stack]int64 {
	runtime.GC() // an allocation is in the profile when the cycle after its own is over
	runtime.GC()
	n, _ := runtime.MemProfile(nil, true)
	records := make([]runtime.MemProfileRecord, 2*n)
	n, ok := runtime.MemProfile(records, true)
	if !ok {
		panic("the profile has doubled meanwhile")
	}
	counts := make(map[stack]int64, n)
	for _, r := range records[:n] {
		counts[r.Stack0] += r.AllocObjects
	}
	return counts
}

func ours(s stack) bool {
	frames := describe(s)
	if strings.Contains(frames, "prefetch_test.profile") || strings.Contains(frames, "prefetch_test.watchAllocations") {
		return false
	}
	for _, own := range []string{
		"loader.(*costs).note", // a table, once for a Loader, when a sample has taken long
		"runtime.acquireSudog", "runtime.malg", "runtime.allocm", "runtime.newproc",
		"runtime.buildTypeAssertCache", "runtime.buildInterfaceSwitchCache", "runtime.(*timers).addHeap",
		// The CPU device's free lists, newOp and its like, grow to how far the host has
		// ever been ahead; and what checks the order is no part of the pipeline.
		"device/cpu.(*Device).new", "leat/device/order.",
		"ebitengine/purego.", // its pool has an object for each processor that ever made a call
	} {
		if strings.Contains(frames, own) {
			return false
		}
	}
	return strings.Contains(frames, "leat-go/leat/")
}

func describe(s stack) string {
	var b strings.Builder
	frames := runtime.CallersFrames(s[:slices.Index(append(s[:], 0), 0)])
	for {
		f, more := frames.Next()
		fmt.Fprintf(&b, "\t%s %s:%d\n", f.Function, f.File, f.Line)
		if !more {
			return b.String()
		}
	}
}

// steady requires that batches cost no Go allocation and no allocating driver call
// once the first are through. bytes is how many the field of that name has in each.
func (r *rig) steady(bytes int64) {
	r.t.Helper()
	const batches = 5000
	warmUp := 500 + 2*r.pf.Plan().HostSlots // the loader has something of its own for each
	var made func() []string
	var allocations int64
	n := 0
	for b, err := range r.pf.Batches(context.Background()) {
		if err != nil {
			r.t.Fatal(err)
		}
		if b.Field("bytes").View.Size() != bytes {
			r.t.Fatal("not a full batch")
		}
		if n++; n == warmUp {
			allocations = r.dev.Usage().Allocations
			made = watchAllocations(r.t)
		}
		if n == warmUp+batches {
			require.Empty(r.t, made()) // before the loop's end, which has its own
			break
		}
	}
	require.Equal(r.t, allocations, r.dev.Usage().Allocations)
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	data := canary{n: 1 << 20, width: 16}
	for name, po := range map[string]prefetch.Options{
		"plain":           {},
		"timing":          {Timing: true},
		"several a copy":  {BatchesPerCopy: 4},
		"transform":       {Transform: passOn(cpuSpin, 0, data)},
		"compute streams": {Streams: prefetch.Streams{Compute: 3}},
		"recorder":        {Recorder: observe.NewRecorder(observe.Options{})},
		"all recorded":    {Recorder: observe.NewRecorder(observe.Options{}), Timing: true, BatchesPerCopy: 4, Transform: passOn(cpuSpin, 0, data)},
	} {
		t.Run(name, func(t *testing.T) {
			r := newKindRig(t, data, cpu.Options{}, 16, loader.Options{Shuffle: true, Workers: 2}, po)
			r.steady(16 * 16)
			r.close()
		})
	}
}

func TestAResultAllocatesNothing(t *testing.T) {
	r := newKindRig(t, canary{n: 1 << 20, width: 16}, cpu.Options{}, 16, loader.Options{Shuffle: true, Workers: 2}, prefetch.Options{})
	const warmUp, results = 500, 4000
	step := func(b prefetch.Batch, out prefetch.Fields) error {
		return b.Stream().CopyD2D(out.Field("bytes").View, b.Field("bytes").View)
	}
	var made func() []string
	n := 0
	for res, err := range r.pf.Map(context.Background(), prefetch.Output{Fields: r.data.Fields()[1:]}, step) {
		if err != nil || len(res.Field("bytes").Bytes) != 16*16 {
			t.Fatal("not a full result", err)
		}
		if n++; n == warmUp {
			made = watchAllocations(t)
		}
		if n == warmUp+results {
			require.Empty(t, made())
			break
		}
	}
	r.close()
}

func TestAHostBatchAllocatesNothing(t *testing.T) {
	if invariants.Enabled {
		t.Skip("in this build every host batch has memory of its own")
	}
	ld, err := loader.New(canary{n: 1 << 20, width: 16}, 16, loader.Options{Shuffle: true, Workers: 2})
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
		if f := b.Field("bytes"); f.Shape[0] != 16 || len(f.Bytes) != 16*16 {
			t.Fatal("not a full batch")
		}
		b.Release()
	}
	for range 500 {
		next()
	}
	made := watchAllocations(t)
	for range 4000 {
		next()
	}
	require.Empty(t, made())
	require.NoError(t, rd.Close())
	require.NoError(t, pf.Close())
}
