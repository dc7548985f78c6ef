//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cuda/latch"
)

// With the copy held by a latch, a consumer that waits for the copy's event sees
// its bytes, and one that doesn't sees the old ones, each every time.
func TestGPUWaitOrdersStreams(t *testing.T) {
	dev := openGPU(t, Options{})
	copies, compute := gpuStream(t, dev, "copy"), gpuStream(t, dev, "compute")
	ready := gpuEvent(t, dev, device.EventOptions{Name: "ready"})
	const n = 1 << 20
	buf, src, dst := gpuBuffer(t, dev, n), gpuHost(t, dev, n), gpuHost(t, dev, n)
	l := gpuLatch(t, dev)
	for lap := range 5 {
		for _, waits := range []bool{true, false} {
			require.NoError(t, copies.Memset(buf, 0xee))
			require.NoError(t, copies.Synchronize(t.Context()))
			fill(src, byte(lap))
			require.NoError(t, l.Hold(copies))
			require.NoError(t, copies.CopyH2D(buf, src))
			require.NoError(t, copies.Record(ready))
			done, err := ready.Done()
			require.NoError(t, err)
			require.False(t, done)
			if waits {
				require.NoError(t, compute.Wait(ready))
				require.NoError(t, compute.CopyD2H(dst, buf))
				done, err = compute.Done()
				require.NoError(t, err)
				require.False(t, done)
				l.Open()
				require.NoError(t, compute.Synchronize(t.Context()))
				require.Equal(t, bytes.Repeat([]byte{byte(lap)}, n), dst)
				continue
			}
			require.NoError(t, compute.CopyD2H(dst, buf))
			require.NoError(t, compute.Synchronize(t.Context()))
			require.Equal(t, bytes.Repeat([]byte{0xee}, n), dst)
			l.Open()
			require.NoError(t, copies.Synchronize(t.Context()))
		}
	}
}

// A Wait binds to the Record issued before it, not to one issued after.
func TestGPUWaitBindsToTheNewestRecord(t *testing.T) {
	dev := openGPU(t, Options{})
	a, b := gpuStream(t, dev, "a"), gpuStream(t, dev, "b")
	e := gpuEvent(t, dev, device.EventOptions{})
	l := gpuLatch(t, dev)
	require.NoError(t, a.Record(e))
	require.NoError(t, b.Wait(e))
	require.NoError(t, l.Hold(a))
	require.NoError(t, a.Record(e))
	require.NoError(t, b.Synchronize(t.Context()), "b waits for the first Record only")
	done, err := e.Done()
	require.NoError(t, err)
	require.False(t, done)
	l.Open()
	require.NoError(t, e.Synchronize(t.Context()))
}

func TestGPUMeasuresTime(t *testing.T) {
	dev := openGPU(t, Options{})
	s := gpuStream(t, dev, "")
	begin, end := gpuEvent(t, dev, device.EventOptions{Timing: true}), gpuEvent(t, dev, device.EventOptions{Timing: true})
	_, err := device.Elapsed(begin, end)
	require.ErrorIs(t, err, device.ErrNotRecorded)
	const spin = 5 * time.Millisecond
	require.NoError(t, s.Record(begin))
	require.NoError(t, latch.Spin(s, spin))
	require.NoError(t, s.Record(end))
	require.NoError(t, end.Synchronize(t.Context()))
	took, err := device.Elapsed(begin, end)
	require.NoError(t, err)
	require.GreaterOrEqual(t, took, spin-100*time.Microsecond)

	l := gpuLatch(t, dev)
	require.NoError(t, l.Hold(s))
	require.NoError(t, s.Record(end))
	_, err = device.Elapsed(begin, end)
	require.ErrorIs(t, err, device.ErrNotComplete)
}

// Host functions run in stream order, and the stream waits for each.
func TestGPUHostFunctions(t *testing.T) {
	dev := openGPU(t, Options{})
	s, buf, mem := gpuStream(t, dev, ""), gpuBuffer(t, dev, 1), gpuHost(t, dev, 1)
	var seen []byte
	for i := range 100 {
		require.NoError(t, s.Memset(buf, byte(i)))
		require.NoError(t, s.CopyD2H(mem, buf))
		require.NoError(t, s.HostFunc(func() { seen = append(seen, mem[0]) }))
	}
	require.NoError(t, s.Synchronize(t.Context()))
	require.Len(t, seen, 100)
	for i, v := range seen {
		require.Equal(t, byte(i), v)
	}
}

// A caller whose context ends leaves while the GPU still works.
func TestGPUSynchronizeLeavesEarly(t *testing.T) {
	dev := openGPU(t, Options{})
	s := gpuStream(t, dev, "")
	l := gpuLatch(t, dev)
	require.NoError(t, l.Hold(s))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Synchronize(ctx), context.DeadlineExceeded)
	l.Open()
	require.NoError(t, s.Synchronize(t.Context()))
}

// A stream freed with work pending is gone at once, and its work goes on.
func TestGPUFreedStreamsWorkGoesOn(t *testing.T) {
	dev := openGPU(t, Options{})
	s, err := dev.NewStream(device.StreamOptions{})
	require.NoError(t, err)
	buf, mem := gpuBuffer(t, dev, 8), gpuHost(t, dev, 8)
	e := gpuEvent(t, dev, device.EventOptions{})
	l := gpuLatch(t, dev)
	require.NoError(t, s.Memset(buf, 0)) // the driver's own kernel loads here, not behind the latch
	require.NoError(t, l.Hold(s))
	require.NoError(t, s.Memset(buf, 7))
	require.NoError(t, s.CopyD2H(mem, buf))
	require.NoError(t, s.Record(e))
	require.NoError(t, s.Close())
	l.Open()
	require.NoError(t, e.Synchronize(t.Context()))
	require.Equal(t, bytes.Repeat([]byte{7}, 8), mem)
}
