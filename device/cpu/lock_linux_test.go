package cpu_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
)

// Pages without access can't be locked, not even by root. The refusal is typed,
// says what to do, and leaves nothing behind.
func TestRefusedLock(t *testing.T) {
	mem, err := unix.Mmap(-1, 0, 4096, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(t, err)
	dev, err := cpu.Open(cpu.Options{PinnedBytes: 4096})
	require.NoError(t, err)
	for range 3 {
		_, err = dev.RegisterHost(mem, device.HostOptions{Locked: true})
		require.ErrorIs(t, err, device.ErrOutOfMemory)
		require.ErrorContains(t, err, "RLIMIT_MEMLOCK")
	}
	h, err := dev.RegisterHost(mem, device.HostOptions{})
	require.NoError(t, err)
	require.NoError(t, h.Close())
	require.NoError(t, dev.Close())
	require.NoError(t, unix.Munmap(mem))
}
