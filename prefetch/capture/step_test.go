package capture_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/capture"
)

// Replayed steps do what launched ones do, with batches in all places, short last ones,
// several to a copy and on several streams, and with scalars that change at every step.
func TestReplaysAreTheStep(t *testing.T) {
	for _, checked := range []bool{false, true} {
		for _, depth := range []int{1, 2, 3} {
			for _, per := range []int{1, 3} {
				t.Run(fmt.Sprintf("checked=%v/depth=%d/percopy=%d", checked, depth, per), func(t *testing.T) {
					const n, batch, epochs = 39, 4, 12
					r := newRig(t, setting{n: n, batch: batch, lo: loader.Options{Epochs: epochs, Shuffle: true, Last: loader.Exact},
						po: prefetch.Options{Depth: depth, BatchesPerCopy: per}, co: cpu.Options{Adversary: unkind()}, checked: checked})
					step := r.step(capture.Options{})
					steps, err := r.train(step, 0, -1)
					require.NoError(t, err)
					require.Equal(t, 10*epochs, steps)
					require.Equal(t, r.expected(n, batch, steps), r.digests(steps))
					report := step.Report()
					require.NoError(t, report.Reason)
					require.Zero(t, report.Launches)
					require.EqualValues(t, steps, report.Captures+report.Replays)
					require.EqualValues(t, r.bodies, report.Captures, "the step's code runs at captures only")
					if checked {
						require.Zero(t, report.Replays)
					} else {
						require.Positive(t, report.Replays)
					}
					require.LessOrEqual(t, report.Graphs, 2*depth*per)
					r.close(step)
				})
			}
		}
	}
}
