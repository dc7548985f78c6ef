package group

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/pinnedpool"
	"github.com/leat-go/leat/prefetch"
)

func TestDivideBudget(t *testing.T) {
	const batch = 4 << 20
	alone := prefetch.Options{Depth: 5}
	require.Equal(t, alone, divide(alone, 0, 1, batch), "one device has what it would have without a group")

	for name, c := range map[string]struct {
		memory prefetch.Memory
		batch  int64
		want   int
	}{
		"large":               {prefetch.Memory{PinnedBytes: 1 << 40}, batch, 8},
		"larger":              {prefetch.Memory{PinnedBytes: 1 << 40}, 4 * batch, 3}, // and not 2
		"just not large":      {prefetch.Memory{PinnedBytes: 1 << 40}, batch - 1, 0},
		"stated":              {prefetch.Memory{PinnedBytes: 1 << 40, HostSlots: 5}, batch, 5},
		"the budget is small": {prefetch.Memory{PinnedBytes: 20 * batch}, batch, 5},
		"at least":            {prefetch.Memory{PinnedBytes: 1 << 40, MinHostSlots: 9}, batch, 9},
	} {
		got := divide(prefetch.Options{Memory: c.memory}, 1, 4, c.batch)
		require.Equal(t, c.want, got.Memory.HostSlots, name)
		require.Equal(t, c.memory.PinnedBytes/4, got.Memory.PinnedBytes, name)
	}
	require.EqualValues(t, -3, divide(prefetch.Options{Memory: prefetch.Memory{PinnedBytes: -3}}, 0, 2, 8).Memory.PinnedBytes, "a mistake stays one")
	require.InEpsilon(t, pinnedpool.DefaultBudget()/2, divide(prefetch.Options{}, 0, 2, 8).Memory.PinnedBytes, 0.01)
}
