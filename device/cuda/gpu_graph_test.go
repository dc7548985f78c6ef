//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cuda/latch"
)

// What other goroutines do beside a capture, one kind of call at a time: the table of what
// breaks it. The documents of package device promise that only the first rows do.
func TestGPUCallsBesideACapture(t *testing.T) {
	dev := openGPU(t, Options{})
	s, other := gpuStream(t, dev, "captured"), gpuStream(t, dev, "other")
	outside, inside := gpuEvent(t, dev, device.EventOptions{}), gpuEvent(t, dev, device.EventOptions{})
	v, w, pinned := gpuBuffer(t, dev, 64), gpuBuffer(t, dev, 64), gpuHost(t, dev, 64)
	require.NoError(t, errors.Join(other.Record(outside), latch.Spin(s, time.Microsecond)))
	require.NoError(t, dev.Synchronize(t.Context()))
	second := func(_ bool, err error) error { return err }
	for name, c := range map[string]struct {
		call   func() error
		breaks bool
	}{
		"synchronising the device":      {func() error { return dev.Synchronize(t.Context()) }, true},
		"synchronising the stream":      {func() error { return s.Synchronize(t.Context()) }, true},
		"asking about the stream":       {func() error { return second(s.Done()) }, true},
		"asking about a captured event": {func() error { return second(inside.Done()) }, true},
		"synchronising another stream":  {func() error { return other.Synchronize(t.Context()) }, false},
		"asking about another stream":   {func() error { return second(other.Done()) }, false},
		"synchronising an event":        {func() error { return outside.Synchronize(t.Context()) }, false},
		"asking about an event":         {func() error { return second(outside.Done()) }, false},
		"recording and waiting":         {func() error { return errors.Join(other.Record(outside), other.Wait(outside)) }, false},
		"a copy":                        {func() error { return other.CopyH2D(w, pinned) }, false},
		"a copy that blocks":            {func() error { return other.CopyH2D(w, make([]byte, 64)) }, false},
		"a kernel":                      {func() error { return latch.Spin(other, time.Microsecond) }, false},
		"Alloc and Free":                {func() error { b, err := dev.Alloc(64); return errors.Join(err, b.Close()) }, false},
		"pinning and unpinning":         {func() error { h, err := dev.AllocHost(4<<20, device.HostOptions{}); return errors.Join(err, h.Close()) }, false},
		"small pinned memory":           {func() error { h, err := dev.AllocHost(64, device.HostOptions{}); return errors.Join(err, h.Close()) }, false},
		"making and freeing a stream":   {func() error { o, err := dev.NewStream(device.StreamOptions{}); return errors.Join(err, o.Close()) }, false},
		"a capture of another's": {func() error {
			g, err := other.Capture(func() error { return other.Memset(w, 1) })
			return errors.Join(err, g.Close())
		}, false},
		"loading a module":                  {func() error { return dev.CheckKernels(lateKernel()) }, false},
		"submitting to the captured stream": {func() error { return s.Memset(v.Slice(0, 8), 2) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			done := make(chan error)
			g, err := s.Capture(func() error {
				if err := errors.Join(s.Memset(v, 1), s.Record(inside)); err != nil {
					return err
				}
				go func() { done <- c.call() }()
				refused := <-done
				require.Equal(t, c.breaks, refused != nil, "%v", refused)
				return nil
			})
			if c.breaks {
				require.ErrorIs(t, err, device.CaptureInvalidated)
			} else {
				require.NoError(t, err)
				require.NoError(t, g.Close())
			}
			require.NoError(t, errors.Join(s.Memset(v, 1), dev.Synchronize(t.Context())))
		})
	}
}

// lateKernel is one whose module no device has loaded.
func lateKernel() *device.Kernel {
	return &device.Kernel{Name: "late", Module: &device.Module{Name: "late", PTX: ".version 6.0\n.target sm_70\n.address_size 64\n.visible .entry late() { ret; }\n"}}
}

// 64 short kernels, launched one by one and replayed as one graph.
func BenchmarkGPUGraph(b *testing.B) {
	const kernels = 64
	dev := openGPU(b, Options{})
	s := gpuStream(b, dev, "s")
	v := gpuBuffer(b, dev, 256)
	body := func() error {
		for range kernels {
			if err := latch.Spin(s, 0); err != nil {
				return err
			}
		}
		return s.Memset(v, 1)
	}
	g, err := s.Capture(body)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, g.Close()) })
	x, err := g.Instantiate()
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, x.Close()) })
	for _, way := range []struct {
		by     string
		submit func() error
	}{{"launch", body}, {"replay", func() error { return x.Launch(s) }}} {
		b.Run("by="+way.by, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := errors.Join(way.submit(), s.Synchronize(b.Context())); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
