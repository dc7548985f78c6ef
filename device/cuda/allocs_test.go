//go:build !race && !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cuda/latch"
	"github.com/leat-go/leat/device/driver"
)

// The race detector makes sync.Pool, on which purego stands, drop what it is given.

func TestSteadyStateAllocatesNothing(t *testing.T) {
	d := openStub(t)
	s, e := driver.Stream(0x10), driver.Event(0x20)
	d.streams.put(s, &stream{owned: true})
	d.events.put(e, &event{})
	kernel := &driver.Kernel{Name: "k"}
	d.kernels.functions = map[*driver.Kernel]function{kernel: {handle: 1, params: []uint8{8, 4}}}
	launch := &driver.Launch{Kernel: kernel, Grid: [3]uint32{1}, Block: [3]uint32{1}}
	launch.Args.AddMemory(0x100, 16, driver.InOut)
	launch.Args.AddUint32(3)
	mem := make([]byte, 64)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var dev driver.Peer = d
	other := newGPU(d.cu, Options{Index: 1})
	other.ctx = 1
	other.events.put(e, &event{})
	graph := driver.Exec(0x30)
	d.execs.put(graph, &instance{})
	here, there := driver.Place{Device: d, Address: 0x100}, driver.Place{Device: other, Address: 0x200}

	batch := func() {
		check(t, dev.Wait(s, e))
		check(t, dev.CopyH2D(s, 0x100, mem))
		check(t, dev.CopyD2H(s, mem, 0x100))
		check(t, dev.CopyD2D(s, 0x100, 0x200, 64))
		check(t, dev.WaitPeer(s, other, e))
		check(t, dev.CopyPeer(s, here, there, 64))
		check(t, dev.Memset(s, 0x100, 1, 64))
		check(t, dev.Record(e, s))
		check(t, dev.Launch(s, launch))
		check(t, d.LaunchGraph(s, graph))
		_, err := dev.EventDone(e)
		check(t, err)
		_, err = dev.StreamDone(s)
		check(t, err)
		check(t, dev.SynchronizeEvent(ctx, e))
		check(t, d.await(ctx, pending{wait: d.cu.streamSynchronize, handle: uintptr(s)})) // as if there were work to wait for
	}
	batch()
	require.Zero(t, testing.AllocsPerRun(200, batch))
}

func TestGPUSteadyStateAllocatesNothing(t *testing.T) {
	dev := openGPU(t, Options{})
	s, ready := gpuStream(t, dev, ""), gpuEvent(t, dev, device.EventOptions{BlockingSync: true})
	buf, mem := gpuBuffer(t, dev, 1<<20), gpuHost(t, dev, 1<<20)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	batch := func() {
		check(t, s.Wait(ready))
		check(t, s.CopyH2D(buf, mem))
		check(t, s.Record(ready))
		check(t, latch.Spin(s, time.Microsecond))
		check(t, ready.Synchronize(ctx))
	}
	check(t, s.Record(ready))
	batch()
	before := dev.Usage()
	require.Zero(t, testing.AllocsPerRun(500, batch))
	require.Equal(t, before, dev.Usage())
}

// check is require.NoError without its allocations.
func check(t *testing.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// What a call costs beside others, with a driver that does nothing: the goroutines share
// the device, and each has a stream and an event of its own.
func BenchmarkRecord(b *testing.B) {
	for _, goroutines := range []int{1, 2, 4, 8, 16} {
		b.Run(fmt.Sprintf("goroutines=%d", goroutines), func(b *testing.B) {
			d := openStub(b)
			for i := range goroutines {
				d.streams.put(driver.Stream(0x1000*(i+1)), &stream{owned: true})
				d.events.put(driver.Event(0x1000*(i+1)), &event{})
			}
			b.ReportAllocs()
			b.ResetTimer()
			var callers sync.WaitGroup
			for i := range goroutines {
				callers.Go(func() {
					s, e := driver.Stream(0x1000*(i+1)), driver.Event(0x1000*(i+1))
					for range b.N / goroutines {
						if err := d.Record(e, s); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			callers.Wait()
		})
	}
}

// Taking an argument group and giving it back, twice a call, against one list with a lock.
func BenchmarkGroups(b *testing.B) {
	d := openStub(b)
	var list struct {
		sync.Mutex
		free *group
	}
	for _, goroutines := range []int{1, 2, 4, 8, 16} {
		for by, call := range map[string]func(){
			"place": func() { newGroup(d, "").end() },
			"list": func() {
				list.Lock()
				g := list.free
				if g == nil {
					g = new(group)
				} else {
					list.free = g.next
				}
				list.Unlock()
				g.gpu, g.op, g.name = d, "", ""
				g.gpu, g.hold = nil, nil
				list.Lock()
				g.next, list.free = list.free, g
				list.Unlock()
			},
		} {
			b.Run(fmt.Sprintf("goroutines=%d/by=%s", goroutines, by), func(b *testing.B) {
				b.ReportAllocs()
				var callers sync.WaitGroup
				for range goroutines {
					callers.Go(func() {
						for range b.N / goroutines {
							call()
						}
					})
				}
				callers.Wait()
			})
		}
	}
}

// openStub is a device whose driver is one C function that returns 0: callbacks
// into Go allocate, and machine code doesn't.
func openStub(t testing.TB) *gpu {
	code := map[string][]byte{
		"amd64": {0x31, 0xc0, 0xc3},                               // xor eax, eax; ret
		"arm64": {0x00, 0x00, 0x80, 0x52, 0xc0, 0x03, 0x5f, 0xd6}, // mov w0, #0; ret
	}[runtime.GOARCH]
	page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	require.NoError(t, err)
	copy(page, code)
	require.NoError(t, unix.Mprotect(page, unix.PROT_READ|unix.PROT_EXEC))
	t.Cleanup(func() { require.NoError(t, unix.Munmap(page)) })
	s := new(symbols)
	for _, sym := range s.table() {
		*sym.address = uintptr(unsafe.Pointer(&page[0]))
	}
	return newGPU(s, Options{})
}
