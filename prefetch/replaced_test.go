package prefetch_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A place knows how many samples of its own epoch were replaced before it, whatever was
// read before and wherever Seek and Restore have led.
func TestSeekKnowsTheSubstitutesBeforeAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := canary{n: 32, width: 5, read: failing(2, 9)}
		r := newRig(t, data, adversarial(0), 2, loader.Options{Workers: 2, Epochs: 3, OnError: loader.Substitute, MaxSubstituted: 5}, prefetch.Options{})
		read := func(batches int) {
			t.Helper()
			for b, err := range r.pf.Batches(t.Context()) {
				require.NoError(t, err)
				if b.Release(); batches == 1 {
					break
				}
				batches--
			}
		}
		sought := func(epoch int, position int64, want int) {
			t.Helper()
			require.NoError(t, r.pf.Seek(epoch, position))
			require.Equal(t, want, r.pf.State().Substituted)
		}
		read(6)
		require.Equal(t, 2, r.pf.State().Substituted)
		sought(0, 2, 0)
		sought(0, 4, 1)
		sought(0, 8, 1)
		sought(0, 10, 2)
		sought(1, 10, 0) // nothing of that epoch was read
		sought(1, 0, 0)
		read(3)
		sought(1, 6, 1)
		sought(1, 2, 0)
		sought(1, 4, 1)
		read(16)
		read(3)
		require.Equal(t, 2, r.pf.State().Epoch)
		sought(2, 4, 1)
		sought(2, 2, 0)

		state := r.pf.State()
		state.Position, state.Substituted = 12, 3 // of a run on another machine
		require.NoError(t, r.pf.Restore(state))
		sought(2, 20, 3)
		sought(2, 12, 3)
		sought(2, 6, 0)
		state.Position, state.Substituted = 14, 0
		require.NoError(t, r.pf.Restore(state))
		sought(2, 20, 0)
		r.close()
	})
}
