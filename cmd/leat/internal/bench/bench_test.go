package bench_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/cmd/leat/internal/bench"
	"github.com/leat-go/leat/cmd/leat/internal/units"
	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/internal/invariants"
)

// card is a modelled H200 on which kernels take no time but the one that spins.
func card() *cpu.Model {
	m := cpu.H200()
	m.KernelLatency = 0
	m.KernelTime = func(l *device.Launch) time.Duration {
		if l.Kernel.Name == "spin" {
			return time.Duration(l.Args.Arg(0).Value)
		}
		return 0
	}
	return &m
}

func open(t *testing.T) (*device.Device, *devicetest.Tap) {
	drv, err := cpu.New(cpu.Options{Model: card(), Adversary: &cpu.Adversary{Poison: true}})
	require.NoError(t, err)
	tap := devicetest.NewTap(drv)
	return device.New(tap), tap
}

func run(t *testing.T, o bench.Options) bench.Report {
	dev, _ := open(t)
	r, err := bench.Run(t.Context(), dev, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), o)
	require.NoError(t, err)
	require.NoError(t, dev.Close(), "something was left on the device")
	return r
}

// small is a bench with little to move.
var small = bench.Options{Runs: 2, Sizes: []units.Bytes{64 << 10}, Images: 64, ImageBatch: 8, Samples: 8192, Timed: 1 << 15}

func only(parts ...string) bench.Options {
	o := small
	o.Only = parts
	return o
}

func TestAModelledCardOverlapsIdeally(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, only("overlap"))
		require.Len(t, r.Targets, 4)
		for _, target := range r.Targets {
			require.InEpsilon(t, 1, target.Value, 1e-6, target.Name)
			require.True(t, target.Met)
			require.Len(t, target.Runs, small.Runs)
		}
		require.Contains(t, r.String(), "overlap/batch=64 KiB/ratio=0.5")
	})
}

func TestAModelledCardBringsResultsBackBesideTheRest(t *testing.T) {
	if invariants.Enabled {
		t.Skip("in this build results are poisoned first, which takes the device's time")
	}
	synctest.Test(t, func(t *testing.T) {
		r := run(t, only("stages"))
		require.Len(t, r.Targets, 2)
		require.InEpsilon(t, 1, r.Targets[0].Value, 1e-3)
		require.InEpsilon(t, 2, r.Targets[1].Value, 0.05, "a modelled bus has two directions, but for the first copy and the last")
		require.True(t, r.Targets[0].Met && r.Targets[1].Met)
	})
}

func TestWithoutOverlapTheTargetIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := only("overlap")
		o.Depth = 1
		for _, target := range run(t, o).Targets {
			require.False(t, target.Met, target.Name)
			require.Greater(t, target.Value, 1.3)
		}
	})
}

func TestProducersThatTakeNoTimeReachTheBus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, only("samples"))
		require.Len(t, r.Targets, 3)
		for _, target := range r.Targets {
			require.InDelta(t, 1, target.Value, 0.25, "%+v", target)
			require.True(t, target.Met)
		}
	})
}

func TestStepsTakeNoLongerThanTheirCompute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, only("images"))
		step := r.Targets[slices.IndexFunc(r.Targets, func(t bench.Target) bool { return t.Name == "images/step" })]
		require.InEpsilon(t, 3, step.Value, 1e-6)
		require.True(t, step.Met)
	})
}

func TestNextAllocatesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, only("next"))
		require.Len(t, r.Targets, 4)
		require.Equal(t, "next/device-allocations", r.Targets[3].Name)
		require.Zero(t, r.Targets[3].Value)
	})
}

func TestWhatArrivesChangedIsAnError(t *testing.T) {
	for _, part := range []string{"overlap", "images", "samples", "next"} {
		t.Run(part, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dev, tap := open(t)
				tap.Arm(devicetest.Rule{Op: devicetest.CopyH2D, Stream: "copy", Swallow: true})
				_, err := bench.Run(t.Context(), dev, time.Now(), only(part))
				require.ErrorContains(t, err, "checksum")
				require.NoError(t, dev.Close())
			})
		})
	}
}

func TestWhatTheDeviceCannotTellIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, only("recycler", "pinning"))
		require.Empty(t, r.Targets)
		require.Len(t, r.Skipped, 2)
	})
}

func TestMistakesInOptionsAreReportedAtOnce(t *testing.T) {
	_, err := bench.Run(t.Context(), nil, time.Now(), bench.Options{
		Only: []string{"overlap", "everything"}, Runs: -1, Sizes: []units.Bytes{64, 7}, Images: -2, Samples: -3, ImageBatch: -6, Workers: -4, Depth: -5,
	})
	for _, field := range []string{`"everything"`, "Runs", "Sizes[1]", "Images", "Samples", "ImageBatch", "Workers", "Depth"} {
		require.ErrorContains(t, err, field)
	}
}
