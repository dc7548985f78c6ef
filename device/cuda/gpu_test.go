//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cuda/latch"
	"github.com/leat-go/leat/device/driver"
)

// The tests in this file want a GPU. Without one they say why they are skipped;
// with LEAT_GPU=required they fail instead.

// openGPU opens a GPU that is closed, and seen to be empty, when the test ends.
func openGPU(t testing.TB, o Options) *device.Device {
	dev := openOrSkip(t, o)
	t.Cleanup(func() {
		require.Zero(t, alive(dev.Usage()))
		require.NoError(t, dev.Close())
	})
	return dev
}

func openOrSkip(t testing.TB, o Options) *device.Device {
	if os.Getenv("LEAT_SYNC") == "1" {
		t.Skip("LEAT_SYNC=1 waits for each call, and a latch is opened after it")
	}
	dev, err := Open(o)
	if err != nil {
		if os.Getenv("LEAT_GPU") == "required" {
			require.NoError(t, err)
		}
		t.Skip(err)
	}
	return dev
}

// unwrapped is dev's driver, below the order checker if there is one.
func unwrapped(dev *device.Device) *gpu { return driver.Unwrap(dev.Driver()).(*gpu) }

// alive is u without what only grows.
func alive(u device.Usage) device.Usage {
	u.Allocations = 0
	return u
}

func gpuStream(t testing.TB, dev *device.Device, name string) *device.Stream {
	s, err := dev.NewStream(device.StreamOptions{Name: name})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func gpuEvent(t testing.TB, dev *device.Device, o device.EventOptions) *device.Event {
	e, err := dev.NewEvent(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

func gpuBuffer(t testing.TB, dev *device.Device, n int64) device.View {
	b, err := dev.Alloc(n)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b.View()
}

func gpuHost(t testing.TB, dev *device.Device, n int64) []byte {
	h, err := dev.AllocHost(n, device.HostOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close()) })
	return h.Bytes()
}

func gpuLatch(t testing.TB, dev *device.Device) *latch.Latch {
	l, err := latch.New(dev)
	require.NoError(t, err)
	t.Cleanup(func() {
		l.Open()
		require.NoError(t, dev.Synchronize(context.Background()))
		require.False(t, l.GaveUp(), "a stream was held until the latch gave up: the test proves nothing")
		require.NoError(t, l.Close())
	})
	return l
}

func fill(mem []byte, value byte) []byte {
	for i := range mem {
		mem[i] = value
	}
	return mem
}

func TestGPUIsDescribed(t *testing.T) {
	dev := openGPU(t, Options{})
	all, err := List()
	require.NoError(t, err)
	p := dev.Properties()
	t.Logf("%+v", p)
	require.Equal(t, all[0].UUID, p.UUID)
	require.NotEmpty(t, p.Description)
	require.NotEmpty(t, p.PCI)
	require.Positive(t, p.CopyEngines)
	require.LessOrEqual(t, p.HighestPriority, p.LowestPriority)
	free, total, err := dev.Memory()
	require.NoError(t, err)
	require.LessOrEqual(t, free, total)
	again, err := Open(Options{UUID: p.UUID})
	require.NoError(t, err)
	require.Equal(t, dev.Name(), again.Name())
	require.NoError(t, again.Close())
	_, err = Open(Options{Index: 1000})
	require.ErrorIs(t, err, device.ErrUnavailable)
}

func TestGPUCallsFromManyGoroutines(t *testing.T) {
	dev := openGPU(t, Options{})
	var callers sync.WaitGroup
	fail := make(chan error, 64)
	for i := range 64 {
		callers.Go(func() {
			if err := uploadAndCheck(dev, byte(i)); err != nil {
				fail <- err
			}
		})
	}
	callers.Wait()
	close(fail)
	for err := range fail {
		require.NoError(t, err)
	}
}

// uploadAndCheck sends canaries to the device and back, with objects of its own.
func uploadAndCheck(dev *device.Device, seed byte) (err error) {
	const n = 64 << 10
	s, err := dev.NewStream(device.StreamOptions{Priority: -int(seed % 8)})
	if err != nil {
		return err
	}
	defer s.Close()
	e, err := dev.NewEvent(device.EventOptions{BlockingSync: seed%2 == 0})
	if err != nil {
		return err
	}
	defer e.Close()
	b, err := dev.Alloc(2 * n)
	if err != nil {
		return err
	}
	defer b.Close()
	h, err := dev.AllocHost(2*n, device.HostOptions{})
	if err != nil {
		return err
	}
	defer h.Close()
	up, down := h.Bytes()[:n], h.Bytes()[n:]
	for lap := range 50 {
		canary := seed + byte(lap)
		fill(up, canary)
		for _, step := range []error{
			s.CopyH2D(b.View().Slice(0, n), up),
			s.CopyD2D(b.View().Slice(n, n), b.View().Slice(0, n)),
			s.CopyD2H(down, b.View().Slice(n, n)),
			s.Record(e),
			e.Synchronize(context.Background()),
		} {
			if step != nil {
				return step
			}
		}
		if !bytes.Equal(up, down) {
			return &device.Error{Op: "check", Device: dev.Name(), Hint: "the canary came back changed"}
		}
	}
	return nil
}

// A refused allocation or pin says so, and the next call is healthy.
func TestGPURefusedMemoryIsNoFault(t *testing.T) {
	dev := openGPU(t, Options{})
	_, err := dev.Alloc(1 << 50)
	require.ErrorIs(t, err, device.ErrOutOfMemory)
	t.Log(err)
	_, err = dev.AllocHost(1<<50, device.HostOptions{})
	require.ErrorIs(t, err, device.ErrOutOfMemory)
	t.Log(err)
	require.NoError(t, uploadAndCheck(dev, 1))

	_, err = dev.RegisterHost(readOnlyMapping(t), device.HostOptions{})
	require.Error(t, err)
	t.Log(err)
	require.NoError(t, uploadAndCheck(dev, 2))
}

// readOnlyMapping is a file of a MiB of canaries.
func readOnlyMapping(t *testing.T) []byte {
	name := filepath.Join(t.TempDir(), "canaries")
	require.NoError(t, os.WriteFile(name, fill(make([]byte, 1<<20), 0x5a), 0o600))
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	mem, err := unix.Mmap(int(f.Fd()), 0, 1<<20, unix.PROT_READ, unix.MAP_SHARED)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Munmap(mem)) })
	return mem
}

func TestGPURegistersAReadOnlyMapping(t *testing.T) {
	dev := openGPU(t, Options{})
	mem := readOnlyMapping(t)
	h, err := dev.RegisterHost(mem, device.HostOptions{ReadOnly: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close()) })
	view, err := h.View()
	require.NoError(t, err)
	require.NotZero(t, view.Address(), "kernels can gather from it")
	s, buf, back := gpuStream(t, dev, ""), gpuBuffer(t, dev, 1<<20), gpuHost(t, dev, 1<<20)
	require.NoError(t, s.CopyH2D(buf, mem))
	require.NoError(t, s.CopyD2H(back, buf))
	require.NoError(t, s.Synchronize(t.Context()))
	require.Equal(t, mem, back)
	require.NoError(t, s.CopyD2D(buf, view), "the device reads it through its own address")
	require.NoError(t, s.Synchronize(t.Context()))
}

// A stream that another library made serves here and stays that library's.
func TestGPUAdoptsForeignStreams(t *testing.T) {
	dev := openGPU(t, Options{})
	d := unwrapped(dev)
	g, err := d.enter("test")
	require.NoError(t, err)
	r := g.call(d.cu.streamCreate, g.result0(), streamNonBlocking, 0)
	native := g.handle()
	require.NoError(t, g.leave(r))

	s, err := dev.StreamFromHandle(native)
	require.NoError(t, err)
	buf, mem := gpuBuffer(t, dev, 8), gpuHost(t, dev, 8)
	require.NoError(t, s.Memset(buf, 9))
	require.NoError(t, s.CopyD2H(mem, buf))
	require.NoError(t, s.Synchronize(t.Context()))
	require.Equal(t, bytes.Repeat([]byte{9}, 8), mem)
	require.NoError(t, s.Close())

	require.NoError(t, d.block(pending{wait: d.cu.streamSynchronize, handle: native}), "the native stream lives")
	require.NoError(t, d.block(pending{wait: d.cu.streamDestroy, handle: native}))
	for _, handle := range []uintptr{0, 1, 2} {
		_, err := dev.StreamFromHandle(handle)
		require.ErrorIs(t, err, device.ErrInvalid)
	}
}

// contextsLeft counts the OS threads of 32 goroutines that have a context current
// after they used dev.
func contextsLeft(t *testing.T, dev *device.Device) int {
	lib, err := openLibrary(libraryName)
	require.NoError(t, err)
	getCurrent, err := lib.lookup("cuCtxGetCurrent")
	require.NoError(t, err)
	var callers sync.WaitGroup
	left := make([]int, 32)
	for i := range left {
		callers.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			if err := uploadAndCheck(dev, byte(i)); err != nil {
				t.Error(err)
			}
			g := newGroup(nil, "test")
			defer g.end()
			if g.call(getCurrent, g.result0()) != success || g.handle() != 0 {
				left[i] = 1
			}
		})
	}
	callers.Wait()
	n := 0
	for _, l := range left {
		n += l
	}
	return n
}

func TestGPUThreadsKeepNoContext(t *testing.T) {
	require.Zero(t, contextsLeft(t, openGPU(t, Options{})))
}

// primaryContextActive reports whether device i has a primary context in this
// process, which costs memory on it.
func primaryContextActive(t *testing.T, i uintptr) bool {
	lib, err := openLibrary(libraryName)
	require.NoError(t, err)
	getState, err := lib.lookup("cuDevicePrimaryCtxGetState")
	require.NoError(t, err)
	g := newGroup(nil, "test")
	defer g.end()
	require.Equal(t, success, g.call(getState, i, g.result0(), g.result1()))
	return g.number(1) != 0
}

func TestGPUCloseReleasesThePrimaryContext(t *testing.T) {
	first := openOrSkip(t, Options{})
	second, err := Open(Options{})
	require.NoError(t, err)
	require.NoError(t, second.Close())
	require.True(t, primaryContextActive(t, 0), "the first device still has it")
	require.NoError(t, first.Close())
	require.False(t, primaryContextActive(t, 0))
}

// A device other than the first costs nothing on the first, whatever threads do.
func TestGPUDevice1LeavesDevice0Alone(t *testing.T) {
	gpus, err := List()
	if err != nil || len(gpus) < 2 {
		if os.Getenv("LEAT_GPU") == "required" && err != nil {
			require.NoError(t, err)
		}
		t.Skipf("this test needs 2 GPUs and sees %d", len(gpus))
	}
	require.False(t, primaryContextActive(t, 0), "another test left a context")
	dev := openGPU(t, Options{Index: 1})
	require.Zero(t, contextsLeft(t, dev))
	require.False(t, primaryContextActive(t, 0))
	require.True(t, primaryContextActive(t, 1))
}

// A stream's handle is CUDA's own, good for other libraries.
func TestGPUHandlesAreNative(t *testing.T) {
	dev := openGPU(t, Options{})
	s := gpuStream(t, dev, "own")
	again, err := dev.StreamFromHandle(uintptr(s.Handle()))
	require.NoError(t, err)
	require.Equal(t, s.Handle(), again.Handle())
	require.NoError(t, again.Close())
	require.NoError(t, s.Synchronize(t.Context()), "the stream has a user left")
}
