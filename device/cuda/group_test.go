//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/leat-go/leat/device/driver"
)

// Each operation makes these calls with these arguments, whose order and size are
// those of the driver API.
func TestArguments(t *testing.T) {
	f, d := openFake(t, Options{})
	s, e, other := newStream(t, d), newEvent(t, d), newEvent(t, d)
	st, ev := uintptr(s), uintptr(e)
	mem := make([]byte, 48)
	host := start(mem)
	ctx := t.Context()
	const anything = ^uintptr(0) // a place of the group's own, for a result

	cases := []struct {
		name string
		do   func() error
		want []uintptr
	}{
		{"cuStreamCreateWithPriority", func() error { _, err := d.NewStream(driver.StreamConfig{Priority: -2}); return err },
			[]uintptr{anything, 1, 0xfffffffe}},
		{"cuStreamGetCtx", func() error { _, err := d.AdoptStream(0x77); return err }, []uintptr{0x77, anything}},
		{"cuStreamQuery", func() error { _, err := d.StreamDone(s); return err }, []uintptr{st}},
		{"cuStreamSynchronize", func() error { return d.block(pending{wait: d.cu.streamSynchronize, handle: st}) }, []uintptr{st}},
		{"cuStreamWaitEvent", func() error { return d.Wait(s, e) }, []uintptr{st, ev, 0}},
		{"cuEventCreate", func() error { _, err := d.NewEvent(driver.EventConfig{}); return err }, []uintptr{anything, 2}},
		{"cuEventCreate", func() error { _, err := d.NewEvent(driver.EventConfig{Timing: true}); return err }, []uintptr{anything, 0}},
		{"cuEventCreate", func() error { _, err := d.NewEvent(driver.EventConfig{BlockingSync: true}); return err }, []uintptr{anything, 3}},
		{"cuEventRecord", func() error { return d.Record(e, s) }, []uintptr{ev, st}},
		{"cuEventQuery", func() error { _, err := d.EventDone(e); return err }, []uintptr{ev}},
		{"cuEventQuery", func() error { return d.SynchronizeEvent(ctx, e) }, []uintptr{ev}},
		{"cuCtxSynchronize", func() error { return d.Synchronize(ctx) }, nil},
		{"cuEventDestroy_v2", func() error { return d.FreeEvent(other) }, []uintptr{uintptr(other)}},
		{"cuMemAlloc_v2", func() error { _, err := d.Alloc(1000); return err }, []uintptr{anything, 1000}},
		{"cuMemFree_v2", func() error { return d.Free(0xabc00) }, []uintptr{0xabc00}},
		{"cuMemHostAlloc", func() error { _, err := d.AllocHost(100, driver.HostConfig{}); return err }, []uintptr{anything, 100 + 4095, 3}},
		{"cuMemHostRegister_v2", func() error { return d.RegisterHost(mem, driver.HostConfig{}) }, []uintptr{host, 48, 3}},
		{"cuMemHostGetDevicePointer_v2", func() error { _, err := d.HostAddress(mem); return err }, []uintptr{anything, host, 0}},
		{"cuMemHostUnregister", func() error { return d.UnregisterHost(mem) }, []uintptr{host}},
		{"cuMemHostRegister_v2", func() error { return d.RegisterHost(mem, driver.HostConfig{ReadOnly: true}) }, []uintptr{host, 48, 11}},
		{"cuMemcpyHtoDAsync_v2", func() error { return d.CopyH2D(s, 0xabc00, mem) }, []uintptr{0xabc00, host, 48, st}},
		{"cuMemcpyDtoHAsync_v2", func() error { return d.CopyD2H(s, mem, 0xabc00) }, []uintptr{host, 0xabc00, 48, st}},
		{"cuMemcpyDtoDAsync_v2", func() error { return d.CopyD2D(s, 0xabc00, 0xdef00, 77) }, []uintptr{0xabc00, 0xdef00, 77, st}},
		{"cuMemsetD8Async", func() error { return d.Memset(s, 0xabc00, 0x5a, 1<<33) }, []uintptr{0xabc00, 0x5a, 1 << 33, st}},
		{"cuStreamDestroy_v2", func() error { return d.FreeStream(s) }, []uintptr{st}},
	}
	for _, c := range cases {
		f.reset()
		require.NoError(t, c.do(), c.name)
		calls := f.recorded()
		require.NotEmpty(t, calls, c.name)
		require.Equal(t, c.name, calls[0].name)
		for i, want := range c.want {
			if want == anything {
				require.NotZero(t, calls[0].args[i], "%s: argument %d", c.name, i)
				continue
			}
			require.Equal(t, want, calls[0].args[i], "%s: argument %d", c.name, i)
		}
	}
}

func newStream(t *testing.T, d *gpu) driver.Stream {
	s, err := d.NewStream(driver.StreamConfig{})
	require.NoError(t, err)
	return s
}

func newEvent(t *testing.T, d *gpu) driver.Event {
	e, err := d.NewEvent(driver.EventConfig{Timing: true})
	require.NoError(t, err)
	return e
}

// needsNoContext are the functions that CUDA lets any thread call.
func needsNoContext(name string) bool {
	return name == "cuInit" || name == "cuDriverGetVersion" || name == "cuGetErrorName" ||
		strings.HasPrefix(name, "cuDevice") || strings.HasPrefix(name, "cuCtxP")
}

// Every call that needs a context finds the device's own on its thread, however
// many goroutines call, and no thread keeps it.
func TestContextIsCurrentAroundCallsOnly(t *testing.T) {
	f, d := openFake(t, Options{})
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() {
			s, e := newStream(t, d), newEvent(t, d)
			mem := make([]byte, 16)
			for range 20 {
				require.NoError(t, d.CopyH2D(s, 0x100, mem))
				require.NoError(t, d.Record(e, s))
				require.NoError(t, d.Wait(s, e))
				_, err := d.EventDone(e)
				require.NoError(t, err)
				runtime.Gosched()
			}
			require.NoError(t, d.FreeEvent(e))
			require.NoError(t, d.FreeStream(s))
		})
	}
	callers.Wait()
	f.requireNoContext()
	for _, c := range f.recorded() {
		if !needsNoContext(c.name) {
			require.Equal(t, uintptr(fakeContext), c.context, c.name)
		}
	}
}

// The context that a thread had of its own is current again after a call.
func TestAThreadsOwnContextComesBack(t *testing.T) {
	f, d := openFake(t, Options{})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread := unix.Gettid()
	f.mu.Lock()
	f.contexts[thread] = []uintptr{0xabc}
	f.mu.Unlock()
	_, err := d.Alloc(1)
	require.NoError(t, err)
	f.fail("cuMemAlloc_v2", outOfMemory)
	_, err = d.Alloc(1)
	require.Error(t, err)
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Equal(t, []uintptr{0xabc}, f.contexts[thread])
	delete(f.contexts, thread)
}

// A refused context leaves nothing pushed and the thread unlocked.
func TestPushFails(t *testing.T) {
	f, d := openFake(t, Options{})
	f.fail("cuCtxPushCurrent_v2", 201)
	_, err := d.Alloc(1)
	require.ErrorIs(t, err, driver.ErrInvalid)
	_, err = d.Alloc(1)
	require.NoError(t, err)
}

// However many calls there are at once, each has a group of its own, and there are hardly
// more groups than calls.
func TestGroupsBelongToOneCall(t *testing.T) {
	const most = maxPlaces + 16
	for range 3 {
		taken := make(map[*group]bool)
		for range most {
			g := newGroup(nil, "")
			require.False(t, taken[g])
			taken[g] = true
		}
		require.EqualValues(t, maxPlaces, groups.count.Load())
		for g := range taken {
			g.end()
		}
	}
	var made sync.Map
	var callers sync.WaitGroup
	for range most {
		callers.Go(func() {
			for range 200 {
				g := newGroup(nil, "")
				if g.name != "" {
					t.Errorf("a group that %q has", g.name)
				}
				g.name = "another call" // the race detector sees two that have it
				made.Store(g, true)
				runtime.Gosched()
				g.name = ""
				g.end()
			}
		})
	}
	callers.Wait()
	n := 0
	made.Range(func(any, any) bool { n++; return true })
	require.LessOrEqual(t, n, 2*most)
}
