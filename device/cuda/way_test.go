//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/driver"
)

// The ways are told by what the driver says of the pair, in that direction.
func TestWays(t *testing.T) {
	type pair struct{ rank, access, atomics int32 }
	for name, c := range map[string]struct {
		there, back pair
		want        [2]driver.Way
	}{
		"NVLink": {pair{0, 1, 1}, pair{0, 1, 1}, [2]driver.Way{{Kind: driver.NVLink}, {Kind: driver.NVLink}}},
		"PCIe":   {pair{1, 1, 0}, pair{1, 1, 0}, [2]driver.Way{{Kind: driver.PCIe, Rank: 1}, {Kind: driver.PCIe, Rank: 1}}},
		"none":   {pair{}, pair{}, [2]driver.Way{{Kind: driver.ThroughHost, Why: "the driver has no direct way to cuda:1"}, {Kind: driver.ThroughHost, Why: "the driver has no direct way to cuda:0"}}},
		"one":    {pair{2, 1, 0}, pair{}, [2]driver.Way{{Kind: driver.PCIe, Rank: 2}, {Kind: driver.ThroughHost, Why: "the driver has no direct way to cuda:0"}}},
	} {
		t.Run(name, func(t *testing.T) {
			f, here, there := openPeers(t)
			f.does("cuDeviceGetP2PAttribute", func(a []uintptr) result {
				p := c.there
				if a[2] == 1 {
					p = c.back
				}
				require.NotEqual(t, a[2], a[3])
				write(a[0], map[uintptr]int32{pairPerformanceRank: p.rank, pairAccess: p.access, pairAtomics: p.atomics}[a[1]])
				return success
			})
			require.Equal(t, c.want, [2]driver.Way{here.Way(there), there.Way(here)})
		})
	}
}

func TestWaysThatAreNotTold(t *testing.T) {
	f, here, there := openPeers(t)
	again, err := open(here.cu, Options{}, nil)
	require.NoError(t, err)
	require.Equal(t, driver.SameMemory, here.Way(again).Kind)
	require.NoError(t, again.Close())
	require.Equal(t, driver.UnknownWay, here.Way(nil).Kind)
	f.fail("cuDeviceGetP2PAttribute", invalidValue)
	require.Equal(t, driver.ThroughHost, here.Way(there).Kind)
	here.cu.deviceGetP2PAttribute = 0
	require.Equal(t, driver.UnknownWay, here.Way(there).Kind)
}

// Staged, a pair is closed on both sides and never opened again by a copy.
func TestStage(t *testing.T) {
	f, here, there := openPeers(t)
	s := newStream(t, here)
	require.NoError(t, here.CopyPeer(s, place(there, 1), place(here, 1), 1))
	f.reset()
	require.NoError(t, here.Stage(there, "because"))
	calls := f.recorded()
	require.Equal(t, []string{"cuCtxDisablePeerAccess", "cuCtxDisablePeerAccess"}, f.callNames())
	require.Equal(t, secondContext, calls[0].args[0])
	require.Equal(t, firstContext, calls[0].context)
	require.Equal(t, firstContext, calls[1].args[0])
	require.Equal(t, secondContext, calls[1].context)
	for _, w := range []driver.Way{here.Way(there), there.Way(here)} {
		require.Equal(t, driver.Way{Kind: driver.ThroughHost, Why: "because"}, w)
	}
	f.reset()
	require.NoError(t, here.CopyPeer(s, place(there, 1), place(here, 1), 1))
	require.NoError(t, there.CopyPeer(newStream(t, there), place(there, 1), place(here, 1), 1))
	require.NotContains(t, f.callNames(), "cuCtxEnablePeerAccess")
}

func TestStageRefuses(t *testing.T) {
	f, here, there := openPeers(t)
	f.fail("cuCtxDisablePeerAccess", peerAccessNotEnabled)
	require.NoError(t, here.Stage(there, "it was never open"))
	require.ErrorIs(t, here.Stage(nil, ""), driver.ErrInvalid)
	f.fail("cuCtxDisablePeerAccess", 700)
	require.ErrorIs(t, here.Stage(there, ""), driver.ErrFault)
	there.cu.ctxDisablePeerAccess = 0
	require.ErrorIs(t, there.Stage(here, ""), driver.ErrUnsupported)
}

// What Connect copies arrives: on real GPUs too, whatever the way.
func TestGPUConnect(t *testing.T) {
	here := openGPU(t, Options{})
	there := openGPU(t, secondGPU(t))
	for _, pair := range [][2]*device.Device{{here, there}, {there, here}} {
		way, err := pair[0].Connect(t.Context(), pair[1])
		require.NoError(t, err)
		require.NotEqual(t, device.UnknownWay, way.Kind)
		t.Logf("%v to %v: %v, rank %d %s", pair[0], pair[1], way.Kind, way.Rank, way.Why)
	}
	again := openGPU(t, Options{})
	way, err := here.Connect(t.Context(), again)
	require.NoError(t, err)
	require.Equal(t, device.SameMemory, way.Kind)
}
