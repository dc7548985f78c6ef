//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/leat-go/leat/device/driver"
)

// forkChild forks as a C library may, without Go's runtime knowing. The child sleeps
// until it is killed.
//
//go:norace
//go:nosplit
func forkChild() (pid uintptr, errno syscall.Errno) {
	pid, _, errno = syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if pid != 0 || errno != 0 {
		return pid, errno
	}
	forever := syscall.Timespec{Sec: 1 << 20}
	for {
		syscall.RawSyscall6(syscall.SYS_PPOLL, 0, 0, uintptr(unsafe.Pointer(&forever)), 0, 0, 0)
	}
}

// endChild kills the child and waits for its end.
func endChild(t *testing.T, pid int) {
	require.NoError(t, unix.Kill(pid, unix.SIGKILL))
	_, err := unix.Wait4(pid, nil, 0, nil)
	require.NoError(t, err)
}

// mapped reports whether any byte of mem is mapped in the process.
func mapped(t *testing.T, pid int, mem []byte) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		var from, to uintptr
		_, err := fmt.Sscanf(line, "%x-%x", &from, &to)
		require.NoError(t, err)
		if from < start(mem)+uintptr(len(mem)) && start(mem) < to {
			return true
		}
	}
	return false
}

// What is pinned here stays out of a forked child: the pages that the device reads are
// those that this process writes.
func TestPinnedMemoryStaysOutOfForkedChildren(t *testing.T) {
	_, d := openFake(t, Options{})
	var pinned [][]byte
	for _, bytes := range []int64{mappedFrom, mappedFrom + 1, 3*mappedFrom - 1} {
		mem, err := d.AllocHost(bytes, driver.HostConfig{})
		require.NoError(t, err)
		pinned = append(pinned, mem)
	}
	pageable, err := d.AllocHost(mappedFrom, driver.HostConfig{Pageable: true})
	require.NoError(t, err)

	pid, errno := forkChild()
	require.Zero(t, errno)
	for _, mem := range pinned {
		require.False(t, mapped(t, int(pid), mem))
		require.True(t, mapped(t, os.Getpid(), mem))
	}
	require.True(t, mapped(t, int(pid), pageable), "the child is a child")
	endChild(t, int(pid))
	require.Empty(t, d.Properties().Notes[1:], "nothing was refused")
	for _, mem := range append(pinned, pageable) {
		mem[0]++
		require.NoError(t, d.FreeHost(mem))
	}
}

// The advice is for whole pages of ours and for nobody else's.
func TestOnlyOurPagesStayOutOfChildren(t *testing.T) {
	_, d := openFake(t, Options{})
	mem, err := d.AllocHost(mappedFrom+1, driver.HostConfig{})
	require.NoError(t, err)
	file, err := os.Open("/proc/self/smaps")
	require.NoError(t, err)
	defer file.Close()
	var from, to, kept uintptr
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var a, b uintptr
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x ", &a, &b); n == 2 {
			from, to = a, b
		}
		if flags, ok := strings.CutPrefix(lines.Text(), "VmFlags:"); ok && strings.Contains(flags+" ", " dc ") &&
			from < start(mem)+uintptr(cap(mem)) && start(mem) < to {
			kept += to - from
		}
	}
	page := uintptr(os.Getpagesize())
	require.Equal(t, (uintptr(len(mem))+page-1)/page*page, kept)
	require.NoError(t, d.FreeHost(mem))
}
