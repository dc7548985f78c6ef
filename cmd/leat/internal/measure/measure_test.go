package measure_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/cmd/leat/internal/measure"
	"github.com/leat-go/leat/cmd/leat/internal/rig"
	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
)

const ms = time.Millisecond

func TestMedian(t *testing.T) {
	for want, of := range map[int][]int{1: {1}, 2: {3, 2}, 5: {9, 5, 1}, 4: {7, 4, 6, 1}} {
		require.Equal(t, want, measure.Median(of))
	}
	s := []time.Duration{3, 1, 2}
	measure.Median(s)
	require.Equal(t, []time.Duration{3, 1, 2}, s)
}

// open is a rig on a modelled card with two engines for compute.
func open(t *testing.T) *rig.Rig {
	dev, err := cpu.Open(cpu.Options{Model: &cpu.Model{ComputeEngines: 2}})
	require.NoError(t, err)
	return rig.New(dev)
}

func closed(t *testing.T, r *rig.Rig) {
	require.NoError(t, r.Close())
	require.Zero(t, r.Device().Usage().Streams+r.Device().Usage().Events)
	require.NoError(t, r.Device().Close())
}

func busy(s *device.Stream, d time.Duration) func() error {
	return func() error { return s.Launch(cpu.Busy(d)) }
}

func TestAStopwatchTimesTheDeviceAndNotTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t)
		s := r.Stream("s")
		watch := measure.NewStopwatch(r, s)
		require.NoError(t, r.Err())
		runs := 0
		took, err := watch.Median(t.Context(), 3, func() error {
			runs++
			return measure.Repeat(runs, busy(s, 2*ms))()
		})
		require.NoError(t, err)
		require.Equal(t, 6*ms, took, "the runs took 4, 6 and 8 ms, after one that warms up")
		failure := errors.New("not submitted")
		_, err = watch.Time(t.Context(), func() error { return failure })
		require.ErrorIs(t, err, failure)
		closed(t, r)
	})
}

func TestAPairRunsSideBySideBetweenForkAndJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t)
		p := measure.NewPair(r)
		watch := measure.NewStopwatch(r, p.A)
		require.NoError(t, r.Err())
		took, err := watch.Time(t.Context(), func() error {
			if err := busy(p.A, 4*ms)(); err != nil {
				return err
			}
			if err := p.Both(busy(p.A, 3*ms), busy(p.B, 5*ms)); err != nil {
				return err
			}
			return busy(p.A, ms)()
		})
		require.NoError(t, err)
		require.Equal(t, 10*ms, took)
		failure := errors.New("not submitted")
		require.ErrorIs(t, p.Both(busy(p.A, ms), func() error { return failure }), failure)
		closed(t, r)
	})
}

func TestCPUTimeAdvancesWithWork(t *testing.T) {
	before, err := measure.CPUTime()
	require.NoError(t, err)
	after := before
	for sum := 1; after <= before; sum++ { // ends, since it is work
		after, err = measure.CPUTime()
		require.NoError(t, err)
	}
	require.Greater(t, after, before)
}
