//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Pinned memory lies on the GPU's NUMA node where the system has several.
func TestGPUPinnedMemoryIsNear(t *testing.T) {
	dev := openGPU(t, Options{})
	node := unwrapped(dev).place.Node
	nodes, err := filepath.Glob("/sys/devices/system/node/node[0-9]*")
	if err != nil || node < 0 || len(nodes) < 2 {
		t.Skipf("the GPU's node is %d, and the system has %d", node, len(nodes))
	}
	t.Log(dev.Notes())
	mem := gpuHost(t, dev, 64<<20)
	on := nodeOf(t, mem)
	require.Equal(t, slices.Repeat([]int{node}, len(on)), on)
}

// nodeOf asks the kernel where a page of each MiB of mem lies.
func nodeOf(t *testing.T, mem []byte) []int {
	var nodes []int
	for i := 0; i < len(mem); i += 1 << 20 {
		node, err := pageNode(&mem[i])
		if err != nil {
			t.Skip("the kernel does not say where a page lies:", err)
		}
		nodes = append(nodes, node)
	}
	return nodes
}

func pageNode(page *byte) (int, error) {
	const self, one, keep = 0, 1, 0
	pages, status := [one]unsafe.Pointer{unsafe.Pointer(page)}, int32(0)
	_, _, errno := unix.Syscall6(unix.SYS_MOVE_PAGES, self, one,
		uintptr(unsafe.Pointer(&pages)), keep, uintptr(unsafe.Pointer(&status)), 0)
	switch {
	case errno != 0:
		return 0, errno
	case status < 0:
		return 0, unix.Errno(-status)
	}
	return int(status), nil
}
