//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cuda/latch"
	"github.com/leat-go/leat/device/devicetest"
)

// The latches belong to another Device of the same GPU: they share its context, and
// freeing one would block behind streams that others hold.
func TestGPUConformance(t *testing.T) {
	owner := openGPU(t, Options{})
	const most = 8 // the suite holds 5 streams at once
	free := make(chan *latch.Latch, most)
	for range most {
		free <- gpuLatch(t, owner)
	}
	var peer func(t *testing.T) *device.Device
	if gpus, err := List(); err == nil && len(gpus) > 1 {
		peer = func(t *testing.T) *device.Device {
			dev, err := Open(secondGPU(t))
			require.NoError(t, err)
			return dev
		}
	}
	devicetest.Run(t, func(t *testing.T) *device.Device {
		dev, err := Open(Options{})
		require.NoError(t, err)
		return dev
	}, devicetest.Options{
		Latch: func(t *testing.T, s *device.Stream) (release func()) {
			l := <-free
			require.NoError(t, l.Hold(s))
			return func() {
				l.Open()
				free <- l
			}
		},
		UncheckedRanges: true,
		Peer:            peer,
	})
}
