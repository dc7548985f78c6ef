package prefetch_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// What is missing is named before anything has begun.
func TestWhatIsNilIsRefused(t *testing.T) {
	_, err := prefetch.NewMeter(nil, 4)
	require.ErrorContains(t, err, "NewMeter needs a device")
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 40, width: 4}, adversarial(0), 4, loader.Options{}, prefetch.Options{})
		m, err := prefetch.NewMeter(r.dev, 4)
		require.NoError(t, err)
		memory, err := r.dev.Alloc(4)
		require.NoError(t, err)
		_, err = m.Push(nil, memory.View())
		require.ErrorContains(t, err, "the stream is nil")
		require.NoError(t, m.Close())
		require.NoError(t, memory.Close())

		n := 0
		for _, err = range r.pf.Map(t.Context(), prefetch.Output{Fields: r.data.Fields()}, nil) {
			n++
		}
		require.Equal(t, 1, n)
		require.ErrorContains(t, err, "the step is nil")
		require.Zero(t, r.pf.State().Position)
		require.Len(t, r.until(100, "break"), 10, "nothing was taken")
		r.close()
	})
}
