package group_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/group"
)

// watchAllocations watches every Go allocation from now on. The function that it returns
// lists those that code of this module has made since, by where. It counts by stacks, since a
// total would also have what the runtime makes for itself while a goroutine waits or starts.
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
	for _, other := range []string{
		"group_test.profile", "group_test.watchAllocations",
		"loader.(*costs).note", // a table, once for a Loader, when a sample has taken long
		"runtime.acquireSudog", "runtime.malg", "runtime.allocm", "runtime.newproc",
		"runtime.buildTypeAssertCache", "runtime.buildInterfaceSwitchCache", "runtime.(*timers).addHeap",
		"device/cpu.(*Device).new", // its free lists grow to how far the host has ever been ahead
		// So do these, to how far one device was ever ahead of the other.
		"group.(*sharing).deliver", "group.(*sharing).keep", "group.(*shares).take",
	} {
		if strings.Contains(frames, other) {
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

// plainCards are devices of usual cost.
func plainCards(t testing.TB, n int) (streams []*device.Stream) {
	for range n {
		drv, err := cpu.New(cpu.Options{})
		require.NoError(t, err)
		dev := device.New(drv)
		s, err := dev.NewStream(device.StreamOptions{Name: "compute"})
		require.NoError(t, err)
		t.Cleanup(func() {
			require.NoError(t, s.Close())
			require.NoError(t, dev.Close())
		})
		streams = append(streams, s)
	}
	return streams
}

const warmUp, measured = 500, 3000

func TestAStepAllocatesNothing(t *testing.T) {
	for name, po := range map[string]prefetch.Options{
		"plain":           {},
		"several a copy":  {BatchesPerCopy: 4},
		"compute streams": {Streams: prefetch.Streams{Compute: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			streams := plainCards(t, 2)
			ld, err := loader.New(canary{n: 1 << 20, width: 16}, 32, loader.Options{Shuffle: true, Workers: 2, Last: loader.Drop})
			require.NoError(t, err)
			g, err := group.New(streams, ld, po)
			require.NoError(t, err)
			var made func() []string
			var before [2]int64
			n := 0
			for s, err := range g.Steps(context.Background()) {
				if err != nil || s.Len() != 32 || s.Valid() != 32 || s.Position().Batch != n || s.Batches[1].Field("bytes").View.Size() != 16*16 {
					t.Fatal("not a full step", err)
				}
				if n++; n == warmUp {
					for i := range before {
						before[i] = streams[i].Device().Usage().Allocations
					}
					made = watchAllocations(t)
				}
				if n == warmUp+measured {
					require.Empty(t, made())
					break
				}
			}
			for i := range before {
				require.Equal(t, before[i], streams[i].Device().Usage().Allocations)
			}
			require.NoError(t, g.Close())
		})
	}
}

func TestASharedBatchAllocatesNothing(t *testing.T) {
	for _, asFinished := range []bool{false, true} {
		t.Run(fmt.Sprint("asFinished=", asFinished), func(t *testing.T) {
			streams := plainCards(t, 2)
			data := canary{n: 1 << 20, width: 16}
			ld, err := loader.New(data, 16, loader.Options{Shuffle: true, Workers: 2})
			require.NoError(t, err)
			p, err := group.NewPool(streams, ld, prefetch.Options{})
			require.NoError(t, err)
			work := func(i int, b prefetch.Batch, out prefetch.Fields) error {
				return b.Stream().CopyD2D(out.Field("bytes").View, b.Field("bytes").View)
			}
			var made func() []string
			n := 0
			for r, err := range p.Map(context.Background(), prefetch.Output{Fields: data.Fields()[1:], AsFinished: asFinished}, work) {
				if err != nil || r.Len() != 16 || len(r.Field("bytes").Bytes) != 16*16 {
					t.Fatal("not a full result", err)
				}
				if n++; n == warmUp {
					made = watchAllocations(t)
				}
				if n == warmUp+measured {
					require.Empty(t, made())
					break
				}
			}
			require.NoError(t, p.Close())
		})
	}
}
