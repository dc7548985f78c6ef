package prefetch_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// Every size around the ring's own, for every shape of the ring: exactly once, in
// order, the right bytes, on a device as unkind as the rules allow.
func TestEveryBatchOnceInOrder(t *testing.T) {
	for _, workers := range []int{1, 2, 8} {
		for _, depth := range []int{1, 2, 3, 8} {
			for _, hostSlots := range []int{1, 2, 8} {
				t.Run(fmt.Sprintf("workers=%d/depth=%d/hostslots=%d", workers, depth, hostSlots), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						const batch = 3
						for batches := 1; batches <= 3*depth+1; batches += 1 + batches/4 {
							n := batches*batch - batches%batch // whole and short last batches
							r := newRig(t, canary{n: n, width: 5}, adversarial(2*time.Millisecond),
								batch, loader.Options{Shuffle: true, Seed: 3, Workers: workers, Epochs: 2},
								prefetch.Options{Depth: depth, Memory: prefetch.Memory{HostSlots: hostSlots}})
							require.NoError(t, r.epochs(2, 3*time.Millisecond), "%d samples", n)
							r.close()
						}
					})
				})
			}
		}
	}
}

// However the range is left, and however often, what was delivered is a prefix, the
// rest follows, and nothing is left behind.
func TestAnyStopKeepsThePosition(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(rt, "samples")
		batchSize, lo := rapid.IntRange(1, 9).Draw(rt, "batch"), loader.Options{
			Shuffle: true, Seed: rapid.Uint64().Draw(rt, "seed"),
			Workers: rapid.IntRange(1, 8).Draw(rt, "workers"), Epochs: rapid.IntRange(1, 3).Draw(rt, "epochs"),
		}
		po := prefetch.Options{Depth: rapid.IntRange(1, 4).Draw(rt, "depth"), Timing: rapid.Bool().Draw(rt, "timing"), BatchesPerCopy: rapid.IntRange(1, 4).Draw(rt, "batchesPerCopy"), Streams: prefetch.Streams{Compute: rapid.IntRange(1, 3).Draw(rt, "computeStreams"), RoundRobin: rapid.Bool().Draw(rt, "roundRobin")}, Memory: prefetch.Memory{HostSlots: rapid.IntRange(1, 5).Draw(rt, "hostSlots")}}
		data := canary{n: n, width: 5}
		if rapid.Bool().Draw(rt, "transform") {
			po.Transform = passOn(cpuSpin, time.Duration(rapid.IntRange(0, 3).Draw(rt, "transforming"))*time.Millisecond, data)
		}
		stops := rapid.SliceOfN(rapid.IntRange(0, 8), 0, 6).Draw(rt, "stops")
		ways := rapid.SliceOfN(rapid.SampledFrom([]string{"break", "panic", "cancel", "seek", "restore"}), 6, 6).Draw(rt, "ways")
		co := cpu.Options{Model: engines(modelled(time.Duration(rapid.IntRange(0, 5).Draw(rt, "copy"))*time.Millisecond), rapid.IntRange(1, 3).Draw(rt, "engines")),
			Adversary: &cpu.Adversary{Poison: true, LateRead: true, CheckInputs: true, Reorder: true, Seed: rapid.Uint64().Draw(rt, "adversary")}}
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, data, co, batchSize, lo, po)
			var all []reading
			for i := 0; r.pf.Epoch() < lo.Epochs; i++ {
				stop := 1 << 30
				if i < len(stops) {
					stop = stops[i]
				}
				all = append(all, r.until(stop, ways[min(i, 5)])...)
			}
			require.NoError(t, r.dev.Synchronize(t.Context()))
			per, _ := r.ld.Batches()
			require.Len(t, all, per*lo.Epochs)
			for i, got := range all {
				require.Equal(t, i/per, got.at.Epoch)
				require.Equal(t, int64(i%per*batchSize), got.at.First)
				require.NoError(t, r.verify(got))
			}
			r.close()
		})
	})
}

// engines is m with that many compute engines.
func engines(m *cpu.Model, n int) *cpu.Model {
	m.ComputeEngines = n
	return m
}

// until reads at most stop batches, then leaves the range in the given way.
func (r *rig) until(stop int, way string) (all []reading) {
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	defer func() {
		if v := recover(); v != nil && v != "stop" {
			panic(v)
		}
		require.Zero(r.t, r.pf.Stats().Leases)
		switch way {
		case "restore":
			require.NoError(r.t, r.pf.Restore(r.pf.State()))
		case "seek":
			st := r.pf.State()
			require.NoError(r.t, r.pf.Seek(st.Epoch, st.Position))
		}
	}()
	for b, err := range r.pf.Batches(ctx) {
		if way == "cancel" && err != nil {
			require.ErrorIs(r.t, err, context.Canceled)
			require.GreaterOrEqual(r.t, len(all), stop)
			return all
		}
		require.NoError(r.t, err)
		all = append(all, r.read(b, 2*time.Millisecond))
		if len(all) < stop {
			continue
		}
		switch way {
		case "panic":
			panic("stop")
		case "cancel":
			cancel()
		default:
			return all
		}
	}
	return all
}
