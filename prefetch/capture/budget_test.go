package capture_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch/capture"
)

// Captures may take a hundredth of the time. Where they take none, as in virtual time, a change
// late in a long run is found within a few steps, and not within a sixteenth of all; and so is
// what is done at every 37th step, after some dozen captures.
func TestALateChangeIsFoundByTheBudget(t *testing.T) {
	const steps, batch, change = 3000, 4, 2711
	for name, c := range map[string]struct {
		factor func(step int) float32
		from   int
		most   int
	}{
		"it stays":        {func(step int) float32 { return float32(step / change) }, change, 25},
		"every 37th step": {func(step int) float32 { return float32((step%37 + 7) / 43) }, 36, 37 * 37},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, setting{n: batch * steps, batch: batch, lo: loader.Options{Epochs: 1}, co: cpu.Options{}})
				n := 0
				scratch := r.scratch(batch * width * 4)
				r.submits = r.scaled(scratch.View(), func() float32 { return c.factor(n) })
				step := r.step(capture.Options{})
				var failure error
				for b, err := range r.pf.All(t.Context()) {
					require.NoError(t, err)
					time.Sleep(time.Millisecond) // the model's
					if failure = step.Run(b, at(n)); failure != nil {
						break
					}
					n++
				}
				var changed *capture.ChangedError
				require.ErrorAs(t, failure, &changed)
				require.GreaterOrEqual(t, n, c.from)
				require.LessOrEqual(t, n-c.from, c.most)
				require.LessOrEqual(t, changed.Replays, int64(c.most))
				require.NoError(t, step.Close())
				require.NoError(t, scratch.Close())
				r.close()
			})
		})
	}
}
