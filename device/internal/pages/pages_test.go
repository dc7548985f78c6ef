package pages

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestAlloc(t *testing.T) {
	for _, bytes := range []int64{1, int64(Size) - 1, int64(Size), int64(Size) + 1, 1 << 20} {
		mem, err := Alloc(bytes)
		require.NoError(t, err)
		require.Len(t, mem, int(bytes))
		require.Equal(t, int(bytes), cap(mem))
		require.Zero(t, uintptr(unsafe.Pointer(unsafe.SliceData(mem)))%uintptr(Size))
		require.Equal(t, make([]byte, bytes), mem, "zeroed")
		mem[bytes-1] = 1
		require.NoError(t, Free(mem))
	}
}

func TestAllocRefused(t *testing.T) {
	_, err := Alloc(1 << 62)
	require.ErrorIs(t, err, ErrNoMemory)
}

func TestTotal(t *testing.T) {
	total := Total()
	if total == 0 {
		t.Skip("this system doesn't say how much memory it has")
	}
	require.Greater(t, total, int64(64<<20))
}
