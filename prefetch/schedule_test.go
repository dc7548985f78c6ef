package prefetch_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"context"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// modelled is a card whose every H2D copy takes in, whatever its size, and whose
// D2H copies take no time.
func modelled(in time.Duration) *cpu.Model {
	return &cpu.Model{CopyTime: func(way cpu.Direction, _ int64) time.Duration {
		if way == cpu.H2D {
			return in
		}
		return 0
	}}
}

// steps runs batches of compute each through a pipeline and returns the virtual
// time that it took.
func steps(t *testing.T, batches int, in, compute time.Duration, po prefetch.Options) time.Duration {
	t.Helper()
	r := newRig(t, canary{n: batches, width: 8}, cpu.Options{Model: modelled(in)},
		1, loader.Options{Workers: 2}, po)
	start := time.Now()
	require.NoError(t, r.epochs(1, compute))
	took := time.Since(start)
	r.close()
	return took
}

func TestScheduleOverlapsCopyAndCompute(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		batches     int
		in, compute time.Duration
		depth       int
		want        time.Duration
	}{
		{100, 3 * ms, 4 * ms, 1, 700 * ms},
		{100, 3 * ms, 4 * ms, 2, 403 * ms},
		{100, 3 * ms, 4 * ms, 3, 403 * ms},
		{100, 3 * ms, 4 * ms, 8, 403 * ms},
		{100, 4 * ms, 3 * ms, 1, 700 * ms},
		{100, 4 * ms, 3 * ms, 2, 403 * ms}, // compute shorter than the copy: the copies run back to back
		{100, 4 * ms, 3 * ms, 3, 403 * ms},
		{1, 3 * ms, 4 * ms, 3, 7 * ms},
		{2, 3 * ms, 4 * ms, 3, 11 * ms},
	} {
		t.Run(fmt.Sprintf("batches=%d/copy=%v/compute=%v/depth=%d", c.batches, c.in, c.compute, c.depth), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				require.Equal(t, c.want, steps(t, c.batches, c.in, c.compute, prefetch.Options{Depth: c.depth}))
			})
		})
	}
}

func TestTimingSaysWhoWaited(t *testing.T) {
	const ms = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 50, width: 8}, cpu.Options{Model: modelled(4 * ms)},
			1, loader.Options{Workers: 1}, prefetch.Options{Timing: true})
		require.NoError(t, r.epochs(1, 3*ms))
		s := r.pf.Stats()
		require.EqualValues(t, 50, s.TimedUploads)
		require.Equal(t, 200*ms, s.CopyTime)
		require.Equal(t, 4*ms+49*ms, s.WaitCopy, "all of the first copy, and a millisecond of each other")
		require.InDelta(t, 0.735, s.Overlap(), 1e-9)
		r.close()
	})
}

func TestNextSaysWhomItWaitedFor(t *testing.T) {
	const ms = time.Millisecond
	run := func(t *testing.T, read, compute time.Duration) prefetch.Stats {
		data := canary{n: 40, width: 8, read: func(context.Context, int) error { time.Sleep(read); return nil }}
		r := newRig(t, data, cpu.Options{Model: modelled(0)}, 1, loader.Options{Workers: 1}, prefetch.Options{})
		require.NoError(t, r.epochs(1, compute))
		defer r.close()
		return r.pf.Stats()
	}
	synctest.Test(t, func(t *testing.T) {
		s := run(t, 5*ms, 0)
		require.Equal(t, 200*ms, s.WaitProducer, "slow producers")
		require.Zero(t, s.WaitDevice)
	})
	synctest.Test(t, func(t *testing.T) {
		s := run(t, 0, 5*ms)
		require.Zero(t, s.WaitProducer)
		require.Equal(t, (40-3-8)*5*ms, s.WaitDevice, "slow compute, once the rings are full")
	})
}

func TestBorderBetweenEpochsHasNoGap(t *testing.T) {
	const ms = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		data := canary{n: 3, width: 8, read: func(context.Context, int) error { time.Sleep(50 * ms); return nil }}
		r := newRig(t, data, cpu.Options{Model: modelled(0)},
			1, loader.Options{Workers: 1, Epochs: 10}, prefetch.Options{})
		start := time.Now()
		n := 0
		for r.pf.Epoch() < 10 {
			for b, err := range r.pf.Batches(t.Context()) {
				require.NoError(t, err)
				require.Equal(t, n/3, b.Position().Epoch)
				time.Sleep(50 * ms)
				n++
			}
		}
		require.Equal(t, 30, n)
		require.Equal(t, 50*ms+30*50*ms, time.Since(start))
		r.close()
	})
}
