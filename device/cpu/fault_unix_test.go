//go:build unix

package cpu_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/leat-go/leat/device"
)

// A kernel that reads where no memory is ends the device, as on a GPU, and not
// the program.
func TestIllegalAddress(t *testing.T) {
	mem, err := unix.Mmap(-1, 0, 4096, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(t, err)
	both(t, func(r *rig) {
		s := r.stream("s")
		r.do(s.Launch(kernel("stray", func() { mem[0]++ })))
		err := s.Synchronize(background)
		require.ErrorIs(r.t, err, device.ErrFault)
		require.ErrorContains(r.t, err, "memory address")
		r.close()
	})
	require.NoError(t, unix.Munmap(mem))
}
