//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cuda/latch"
)

// BenchmarkGPUCalls is the price of the calls on a pipeline's path, to the
// goroutine that makes them.
func BenchmarkGPUCalls(b *testing.B) {
	dev := openGPU(b, Options{})
	s, e := gpuStream(b, dev, ""), gpuEvent(b, dev, device.EventOptions{})
	buf, mem := gpuBuffer(b, dev, 4096), gpuHost(b, dev, 4096)
	for _, op := range []struct {
		name string
		do   func() error
	}{
		{"record", func() error { return s.Record(e) }},
		{"wait", func() error { return s.Wait(e) }},
		{"done", func() error { _, err := e.Done(); return err }},
		{"copy4KiB", func() error { return s.CopyH2D(buf, mem) }},
		{"launch", func() error { return latch.Spin(s, 0) }},
	} {
		b.Run("op="+op.name, func(b *testing.B) {
			const calls = 256 // fewer than a stream holds before submitting blocks
			var spent time.Duration
			b.ReportAllocs()
			for b.Loop() {
				began := time.Now()
				for range calls {
					if err := op.do(); err != nil {
						b.Fatal(err)
					}
				}
				spent += time.Since(began)
				require.NoError(b, s.Synchronize(context.Background()))
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N*calls), "ns/call")
		})
	}
}

// BenchmarkGPUCopy is the bus: pinned memory against pageable, each way.
func BenchmarkGPUCopy(b *testing.B) {
	dev := openGPU(b, Options{})
	s := gpuStream(b, dev, "")
	for _, bytes := range []int64{64 << 10, 1 << 20, 4 << 20, 64 << 20, 256 << 20} {
		for _, memory := range []string{"pinned", "pageable"} {
			buf := gpuBuffer(b, dev, bytes)
			h, err := dev.AllocHost(bytes, device.HostOptions{Pageable: memory == "pageable"})
			require.NoError(b, err)
			mem := h.Bytes()
			for _, way := range []string{"h2d", "d2h"} {
				b.Run(fmt.Sprintf("way=%s/memory=%s/bytes=%d", way, memory, bytes), func(b *testing.B) {
					b.SetBytes(bytes)
					const ahead = 32
					n := 0
					for b.Loop() {
						if way == "h2d" {
							noError(b, s.CopyH2D(buf, mem))
						} else {
							noError(b, s.CopyD2H(mem, buf))
						}
						if n++; n%ahead == 0 {
							noError(b, s.Synchronize(context.Background()))
						}
					}
					noError(b, s.Synchronize(context.Background()))
				})
			}
			require.NoError(b, h.Close())
		}
	}
}

func noError(b *testing.B, err error) {
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkGPUPin compares the two ways of pinning. The baseline is cuMemHostAlloc.
func BenchmarkGPUPin(b *testing.B) {
	dev := openGPU(b, Options{})
	d := unwrapped(dev)
	for _, bytes := range []int64{256 << 10, 2 << 20, 64 << 20, 1 << 30} {
		for way, alloc := range map[string]func(int64) ([]byte, error){"register": d.mapPinned, "cuMemHostAlloc": d.allocHost} {
			b.Run(fmt.Sprintf("way=%s/bytes=%d", way, bytes), func(b *testing.B) {
				var pinning time.Duration
				for b.Loop() {
					began := time.Now()
					mem, err := alloc(bytes)
					pinning += time.Since(began)
					noError(b, err)
					noError(b, d.FreeHost(mem))
				}
				b.ReportMetric(float64(pinning.Microseconds())/float64(b.N)/1000, "ms/pin")
			})
		}
	}
}

// BenchmarkGPUWaiting is what waiting on the host costs: the time after the work is
// done, and the CPU meanwhile.
func BenchmarkGPUWaiting(b *testing.B) {
	dev := openGPU(b, Options{})
	s := gpuStream(b, dev, "")
	const work = 2 * time.Millisecond
	for _, blocking := range []bool{false, true} {
		for _, cancellable := range []bool{false, true} {
			b.Run(fmt.Sprintf("blocking=%v/cancellable=%v", blocking, cancellable), func(b *testing.B) {
				e := gpuEvent(b, dev, device.EventOptions{BlockingSync: blocking})
				ctx := context.Background()
				if cancellable {
					ctx = b.Context()
				}
				b.ReportAllocs()
				before := cpuTime(b)
				for b.Loop() {
					noError(b, latch.Spin(s, work))
					noError(b, s.Record(e))
					noError(b, e.Synchronize(ctx))
				}
				b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
			})
		}
	}
}

func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	require.NoError(b, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
