package kerneltest

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/cuda"
)

// A Rig is a device with one stream, and short ways to bring data there and back.
// It belongs to a test, which frees all of it at its end.
type Rig struct {
	T      testing.TB
	Device *device.Device
	Stream *device.Stream

	owned []io.Closer // in use by the stream until the test's end
}

// CPU is a Rig on a CPU device that checks every launch: its arguments against the
// kernel's PTX, and what the kernel says of its memory. Before a kernel runs, what
// it claims to overwrite is poisoned; what it claims only to read must be the same
// afterwards.
func CPU(t testing.TB) *Rig {
	return onCPU(t, cpu.Options{Adversary: &cpu.Adversary{Poison: true, CheckInputs: true}})
}

// Plain is a Rig on a CPU device without those checks, for benchmarks.
func Plain(t testing.TB) *Rig { return onCPU(t, cpu.Options{}) }

func onCPU(t testing.TB, o cpu.Options) *Rig {
	d, err := cpu.New(o)
	require.NoError(t, err)
	return newRig(t, device.New(&checked{Device: d}))
}

// CUDA is a Rig on the first GPU. Without one the test is skipped, with the
// reason, or fails if LEAT_GPU is "required".
func CUDA(t testing.TB) *Rig {
	d, err := cuda.Open(cuda.Options{})
	if err != nil && os.Getenv("LEAT_GPU") != "required" {
		t.Skipf("no GPU: %v", err)
	}
	require.NoError(t, err)
	return newRig(t, d)
}

func newRig(t testing.TB, d *device.Device) *Rig {
	s, err := d.NewStream(device.StreamOptions{Name: "rig"})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.NoError(t, d.Close())
	})
	return (&Rig{Device: d, Stream: s}).in(t)
}

// in is r's device and stream for t, which frees the memory that it allocates.
func (r *Rig) in(t testing.TB) *Rig {
	r = &Rig{T: t, Device: r.Device, Stream: r.Stream}
	t.Cleanup(func() {
		require.NoError(t, r.Stream.Synchronize(context.Background()), "t's own context has ended")
		for _, m := range r.owned {
			require.NoError(t, m.Close())
		}
	})
	return r
}

// Owns closes c at the test's end, when the stream has run all that was submitted.
func (r *Rig) Owns(c io.Closer) { r.owned = append(r.owned, c) }

// Alloc is device memory filled with a pattern that no result is likely to have.
func (r *Rig) Alloc(bytes int) device.View {
	b, err := r.Device.Alloc(int64(bytes))
	require.NoError(r.T, err)
	r.Owns(b)
	require.NoError(r.T, r.Stream.Memset(b.View(), 0xa5))
	return b.View()
}

// Host is pinned host memory of that size.
func (r *Rig) Host(bytes int) *device.HostBuffer {
	h, err := r.Device.AllocHost(int64(bytes), device.HostOptions{})
	require.NoError(r.T, err)
	r.Owns(h)
	return h
}

// Upload is a copy of b in device memory.
func (r *Rig) Upload(b []byte) device.View {
	v := r.Alloc(len(b))
	h := r.Host(len(b))
	copy(h.Bytes(), b)
	require.NoError(r.T, r.Stream.CopyH2D(v, h.Bytes()))
	return v
}

// Download waits for the stream and returns v's bytes.
func (r *Rig) Download(v device.View) []byte {
	h := r.Host(int(v.Size()))
	require.NoError(r.T, r.Stream.CopyD2H(h.Bytes(), v))
	require.NoError(r.T, r.Stream.Synchronize(r.T.Context()))
	return append([]byte{}, h.Bytes()...)
}
