//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// Between refills a child is forked and stays: the GPU gets what was written last,
// whichever way the memory was pinned.
func TestGPUReadsWhatIsWrittenAfterAFork(t *testing.T) {
	dev := openGPU(t, Options{})
	s := gpuStream(t, dev, "s")
	for _, size := range []int64{4096, 64 << 20} {
		t.Run(fmt.Sprintf("bytes=%d", size), func(t *testing.T) {
			host, back := gpuHost(t, dev, size), gpuHost(t, dev, size)
			v := gpuBuffer(t, dev, size)
			var children []int
			defer func() {
				for _, pid := range children {
					endChild(t, pid)
				}
			}()
			for round := range 40 {
				runtime.LockOSThread()
				pid, errno := forkChild()
				runtime.UnlockOSThread()
				require.Zero(t, errno)
				children = append(children, int(pid))
				canary := byte(round%251 + 1)
				fill(host, canary)
				fill(back, 0)
				require.NoError(t, s.CopyH2D(v, host))
				require.NoError(t, s.CopyD2H(back, v))
				require.NoError(t, s.Synchronize(t.Context()))
				require.True(t, bytes.Equal(host, back), "round %d: the GPU read another page, or wrote to one", round)
			}
		})
	}
}
