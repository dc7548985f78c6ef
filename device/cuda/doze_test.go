//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/driver"
)

// After a few waits of a millisecond the driver's own wait is not needed any more,
// and each wait costs a few questions; one that is suddenly longer ends in time.
func TestABlockingWaitIsSleptThrough(t *testing.T) {
	f, d := openFake(t, Options{})
	h, err := d.NewEvent(driver.EventConfig{BlockingSync: true})
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		var complete time.Time
		f.does("cuEventQuery", func([]uintptr) result {
			if time.Now().Before(complete) {
				return notReady
			}
			return success
		})
		f.does("cuEventSynchronize", func([]uintptr) result {
			time.Sleep(time.Until(complete))
			return success
		})
		wait := func(takes time.Duration) (late time.Duration, asked, blocked int) {
			f.reset()
			complete = time.Now().Add(takes)
			require.NoError(t, d.SynchronizeEvent(context.Background(), h))
			for _, name := range f.callNames() {
				switch name {
				case "cuEventQuery":
					asked++
				case "cuEventSynchronize":
					blocked++
				}
			}
			return time.Since(complete), asked, blocked
		}
		const ms = time.Millisecond
		_, _, blocked := wait(ms)
		require.Equal(t, 1, blocked, "nothing is known of the first")
		for range 50 {
			late, asked, blocked := wait(ms)
			require.Zero(t, blocked)
			require.LessOrEqual(t, asked, 6)
			require.Less(t, late, 150*time.Microsecond)
			require.GreaterOrEqual(t, late, time.Duration(0))
		}
		late, _, blocked := wait(100 * ms)
		require.Equal(t, 1, blocked, "far longer than expected is the driver's")
		require.Zero(t, late)
		for range 60 {
			wait(10 * time.Microsecond)
		}
		late, asked, _ := wait(10 * time.Microsecond)
		require.Less(t, late, briefest)
		require.LessOrEqual(t, asked, 2, "short waits are not slept through")
	})
	require.NoError(t, d.FreeEvent(h))
}
