package slots_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/order"
	"github.com/leat-go/leat/internal/slots"
)

// A checker's report names a slot by its description, wherever its memory is.
func TestReportsNameASlot(t *testing.T) {
	for _, onHost := range []bool{false, true} {
		drv, err := cpu.New(cpu.Options{})
		require.NoError(t, err)
		checker := order.New(order.Options{ListOnly: true})
		dev := device.New(checker.Wrap(drv))
		o := options
		o.OnHost = onHost
		s, err := slots.New(dev, o)
		require.NoError(t, err)
		s.Describe(func(int64, int64) (name, hint string) { return "slot of a test", "" })
		a, err := dev.NewStream(device.StreamOptions{})
		require.NoError(t, err)
		b, err := dev.NewStream(device.StreamOptions{})
		require.NoError(t, err)

		require.NoError(t, a.Memset(s.Memory, 1))
		require.NoError(t, b.Memset(s.Memory, 2))
		reports := checker.Reports()
		require.Len(t, reports, 1)
		require.ErrorContains(t, reports[0], "slot of a test")

		require.NoError(t, dev.Synchronize(t.Context()))
		require.NoError(t, s.Close())
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
		require.NoError(t, dev.Close())
	}
}
