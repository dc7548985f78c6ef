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
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 40, width: 4}, adversarial(0), 4, loader.Options{}, prefetch.Options{})
		n := 0
		var err error
		for _, err = range r.pf.Map(t.Context(), prefetch.Output{Fields: r.data.Fields()}, nil) {
			n++
		}
		require.Equal(t, 1, n)
		require.ErrorContains(t, err, "step is nil")
		require.Zero(t, r.pf.State().Position)
		require.Len(t, r.until(100, "break"), 10, "nothing was taken")
		r.close()
	})
}
