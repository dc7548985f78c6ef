package capture_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/capture"
)

var nothing = &device.Kernel{Name: "nothing", Go: func(*device.Args) {}}

// On a modelled H200 a step of 64 short kernels takes 312 µs launched one by one and 75
// replayed, and the copy of the parameters 3 more; copies of batches are hidden as ever.
func TestAReplayedStepTakesAGraphsTime(t *testing.T) {
	const kernels, batch, steps = 64, 4, 200
	h200 := cpu.H200()
	h200.CopyEngines = 2 // with one the parameters would take turns with a batch's copy
	launched := kernels * h200.KernelLatency
	replayed := h200.KernelLatency + kernels*h200.NodeLatency
	require.InEpsilon(t, 312e3, int(launched), 0.01)
	require.InEpsilon(t, 75e3, int(replayed), 0.01)
	for _, graphs := range []bool{false, true} {
		for _, params := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, setting{n: batch * steps, batch: batch, lo: loader.Options{Epochs: 1}, po: prefetch.Options{BatchesPerCopy: 1}, co: cpu.Options{Model: &h200}})
				body := func(s *device.Stream, _ capture.Batch, _ device.View) error {
					for range kernels {
						if err := launch(s, nothing, func(*device.Args) {}); err != nil {
							return err
						}
					}
					return nil
				}
				without, err := capture.New[struct{}](r.pf, body, capture.Options{Launch: !graphs})
				require.NoError(t, err)
				with, err := capture.New[scalars](r.pf, body, capture.Options{Launch: !graphs})
				require.NoError(t, err)
				each := launched
				if graphs {
					each = replayed
				}
				if params {
					each += h200.H2D.Time(8)
				}
				run := func(b prefetch.Batch, i int) error {
					if params {
						return with.Run(b, at(i))
					}
					return without.Run(b, struct{}{})
				}
				var begun time.Time
				i := 0
				for b, err := range r.pf.All(t.Context()) {
					require.NoError(t, err)
					switch {
					case i < 10: // each by itself
						synctest.Wait()
						time.Sleep(time.Second) // all copies are done
						begun := time.Now()
						require.NoError(t, run(b, i))
						require.NoError(t, r.compute.Synchronize(t.Context()))
						require.Equal(t, each, time.Since(begun))
					case i == 10:
						begun = time.Now()
						fallthrough
					default: // one after the other
						require.NoError(t, run(b, i))
					}
					i++
				}
				require.NoError(t, r.compute.Synchronize(t.Context()))
				require.Equal(t, (steps-10)*each, time.Since(begun))
				require.Equal(t, graphs, with.Report().Replays+without.Report().Replays > 0)
				require.NoError(t, without.Close())
				r.close(with)
			})
		}
	}
}
