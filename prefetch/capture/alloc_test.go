package capture_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch/capture"
)

// A replay allocates nothing, neither for Go nor on the device.
func TestAReplayAllocatesNothing(t *testing.T) {
	r := newRig(t, setting{n: 30, batch: 3, lo: loader.Options{Epochs: 1}})
	step := r.step(capture.Options{})
	rd, err := r.pf.Open(t.Context())
	require.NoError(t, err)
	b, err := rd.Next(t.Context())
	require.NoError(t, err)
	i := 0
	run := func() {
		if err := step.Run(b, at(i)); err != nil {
			panic(err)
		}
		if err := r.compute.Synchronize(t.Context()); err != nil {
			panic(err)
		}
		i++
	}
	for range 500 {
		run()
	}
	driver, quiet := r.dev.Usage().Allocations, 0
	for range 160 {
		captures := step.Report().Captures
		runtime.GC()
		allocated := testing.AllocsPerRun(4, run)
		if step.Report().Captures > captures {
			continue // it was compared meanwhile
		}
		quiet++
		require.Zero(t, allocated)
	}
	require.Greater(t, quiet, 10)
	captures := step.Report().Captures
	require.LessOrEqual(t, r.dev.Usage().Allocations-driver, captures)
	b.Release()
	require.NoError(t, rd.Close())
	r.close(step)
}
