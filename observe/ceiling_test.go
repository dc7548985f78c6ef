package observe_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/observe"
	"github.com/leat-go/leat/prefetch"
)

// The ceiling is the step without the reading, and Explain's best is no more than it.
func TestTheCeilingIsTheStepWithDataForFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := load{samples: 100, read: same(20 * ms), body: sleeps(5 * ms)}
		s, _ := l.run(t)
		ld, err := loader.New(&l, 1, loader.Options{})
		require.NoError(t, err)
		replay, err := loader.Replay(t.Context(), ld, 4)
		require.NoError(t, err)
		pf, err := prefetch.NewHost(replay, prefetch.Options{})
		require.NoError(t, err)
		step, err := observe.Ceiling(t.Context(), pf, 50, func(prefetch.Batch) error {
			time.Sleep(5 * ms)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, 5*ms, step)
		require.Equal(t, "With data for free a step takes 5ms, and now it takes 20.1ms: at best 4.01 times as fast.", s.Against(step))
		require.InDelta(t, 4, s.Explain().Gain, 0.05)
		require.Contains(t, s.Against(s.Host.Step.Mean()), "nothing to gain")
		require.Equal(t, "A step with data for free can't take 0s.", s.Against(0))

		broken := errors.New("broken")
		_, err = observe.Ceiling(t.Context(), pf, 50, func(prefetch.Batch) error { return broken })
		require.ErrorIs(t, err, broken)
		_, err = observe.Ceiling(t.Context(), pf, 0, nil)
		require.ErrorContains(t, err, "0 steps")
		require.NoError(t, pf.Close())

		one, err := loader.New(&l, 1, loader.Options{Epochs: 1})
		require.NoError(t, err)
		pf, err = prefetch.NewHost(one, prefetch.Options{})
		require.NoError(t, err)
		_, err = observe.Ceiling(t.Context(), pf, 500, func(prefetch.Batch) error { return nil })
		require.ErrorContains(t, err, "loader.Replay")
		require.NoError(t, pf.Close())
	})
}
