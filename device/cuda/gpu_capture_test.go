//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"context"
	"encoding/binary"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cuda/latch"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// captureGlobally records submit as a graph on s, in the mode that forbids all threads
// what is unsafe. Destroying the graph is all that is done with it.
func captureGlobally(t *testing.T, s *device.Stream, submit func()) {
	const global = 0
	d := unwrapped(s.Device())
	call := func(f uintptr, args func(g *group) []uintptr) uintptr {
		g, err := d.enter("capture")
		require.NoError(t, err)
		r := g.call(f, args(g)...)
		result := g.handle()
		require.NoError(t, g.leave(r))
		return result
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	call(d.cu.streamBeginCapture, func(*group) []uintptr { return []uintptr{uintptr(s.Handle()), global} })
	submit()
	graph := call(d.cu.streamEndCapture, func(g *group) []uintptr { return []uintptr{uintptr(s.Handle()), g.result0()} })
	require.NotZero(t, graph)
	call(d.cu.graphDestroy, func(*group) []uintptr { return []uintptr{graph} })
}

// A graph is captured in the middle of an epoch a hundred times: in global mode with
// the pipeline at rest, and in thread-local mode beside it. Every batch arrives.
func TestGPUGraphsAreCapturedBesideAPipeline(t *testing.T) {
	const batches, tries = 8, 100
	for name, global := range map[string]bool{"global": true, "thread-local": false} {
		t.Run(name, func(t *testing.T) {
			dev := openGPU(t, Options{})
			compute, other := gpuStream(t, dev, "compute"), gpuStream(t, dev, "captured")
			require.NoError(t, latch.Spin(other, time.Microsecond)) // the kernel is loaded
			items := make([]uint64, batches*32)
			for i := range items {
				items[i] = uint64(i) * 0x9e3779b97f4a7c15
			}
			fields := []loader.Field{{Name: "x", DType: dtype.Uint64, Shape: []int{4096}}}
			ld, err := loader.New(loader.FromSlice(items, fields, func(_ context.Context, v uint64, row *loader.Row) error {
				for i, x := 0, loader.Column[uint64](row, "x"); i < len(x); i++ {
					x[i] = v + uint64(i)
				}
				return nil
			}), 32, loader.Options{Epochs: tries})
			require.NoError(t, err)
			pf, err := prefetch.New(compute, ld, prefetch.Options{BatchesPerCopy: 1})
			require.NoError(t, err)
			got := gpuHost(t, dev, tries*batches*8)
			n := 0
			for pf.Epoch() < tries {
				for b, err := range pf.Batches(t.Context()) {
					require.NoError(t, err)
					x := b.Field("x").View
					require.NoError(t, compute.CopyD2H(got[8*n:8*n+8], x.Slice(x.Size()-8, 8)))
					n++
					if b.Position().Batch != 3 {
						continue
					}
					if global {
						require.NoError(t, pf.Quiesce(t.Context()))
						captureGlobally(t, other, func() { require.NoError(t, latch.Spin(other, time.Microsecond)) })
						continue
					}
					g, err := other.Capture(func() error { return latch.Spin(other, time.Microsecond) })
					require.NoError(t, err)
					require.NoError(t, g.Close())
				}
			}
			require.Equal(t, tries*batches, n)
			require.NoError(t, compute.Synchronize(t.Context()))
			for i := range n {
				last := items[i%batches*32+31] + 4095
				require.Equal(t, last, binary.LittleEndian.Uint64(got[8*i:]), "batch %d", i)
			}
			require.NoError(t, pf.Close())
		})
	}
}
