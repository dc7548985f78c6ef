//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
)

// What is refused without asking the driver fails the capture all the same, and names the
// call; what the driver refuses is told in the same words.
func TestRefusedInACapture(t *testing.T) {
	r := newGraphRig(t)
	inside, outside := gpuEvent(t, r.dev, device.EventOptions{}), gpuEvent(t, r.dev, device.EventOptions{})
	made := r.capture(func() error { return r.scale(r.a, 1) })
	x, err := made.Instantiate()
	r.do(err, r.b.Record(outside))
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	for name, c := range map[string]struct {
		call func() error
		want device.CaptureError
	}{
		"StreamDone":        {func() error { _, err := r.b.Done(); return err }, device.CaptureUnsupported},
		"SynchronizeStream": {func() error { return r.a.Synchronize(t.Context()) }, device.CaptureUnsupported},
		"Synchronize":       {func() error { return r.dev.Synchronize(t.Context()) }, device.CaptureUnsupported},
		"EventDone":         {func() error { _, err := inside.Done(); return err }, device.CapturedEvent},
		"SynchronizeEvent":  {func() error { return outside.Synchronize(t.Context()) }, device.CaptureUnsupported},
		"Elapsed":           {func() error { _, err := device.Elapsed(outside, outside); return err }, device.CaptureUnsupported},
		"Alloc":             {func() error { _, err := r.dev.Alloc(8); return err }, device.CaptureUnsupported},
		"AllocHost":         {func() error { _, err := r.dev.AllocHost(8, device.HostOptions{}); return err }, device.CaptureUnsupported},
		"RegisterHost":      {func() error { _, err := r.dev.RegisterHost(make([]byte, 8), device.HostOptions{}); return err }, device.CaptureUnsupported},
		"FreeStream":        {r.a.Close, device.CaptureUnsupported},
		"CopyH2D":           {func() error { return r.a.CopyH2D(r.v.Slice(0, 8), make([]byte, 8)) }, device.CaptureUnsupported},
		"CopyD2H":           {func() error { return r.a.CopyD2H(make([]byte, 8), r.v.Slice(0, 8)) }, device.CaptureUnsupported},
		"Instantiate":       {func() error { _, err := made.Instantiate(); return err }, device.CaptureUnsupported},
		"UpdateExec":        {func() error { return x.Update(made) }, device.CaptureUnsupported},
		"FreeExec":          {x.Close, device.CaptureUnsupported},
		"LaunchGraph":       {func() error { return x.Launch(r.a) }, device.CaptureUnsupported},
		"Wait":              {func() error { return r.a.Wait(outside) }, device.CaptureIsolation},
		"BeginCapture":      {func() error { _, err := r.a.Capture(func() error { return nil }); return err }, device.CaptureActive},
	} {
		var refused error
		g, err := r.a.Capture(func() error {
			r.do(r.a.Record(inside))
			refused = c.call()
			later := r.a.Memset(r.v, 1)
			if c.want == device.CaptureActive {
				return later
			}
			require.ErrorIs(t, later, device.CaptureInvalidated, name)
			require.ErrorContains(t, later, refused.Error(), name)
			return nil
		})
		require.ErrorIs(t, refused, c.want, name)
		require.ErrorIs(t, refused, device.ErrCapture, name)
		require.ErrorContains(t, refused, name)
		if c.want == device.CaptureActive {
			r.do(err, g.Close())
			continue
		}
		require.ErrorIs(t, err, device.CaptureInvalidated, name)
		require.ErrorContains(t, err, refused.Error(), name)
		require.Empty(t, r.x.captures, name)
		require.Zero(t, r.d.captures.active.Load(), name)
		r.do(r.capture(func() error { return r.scale(r.a, 1) }).Close())
	}
	require.ErrorIs(t, r.b.Wait(inside), device.CapturedEvent)
	r.do(r.b.Record(inside), r.a.Wait(inside))
}

// A driver that goes on with a capture makes no graph of it all the same.
func TestRefusedInACaptureThatTheDriverGoesOnWith(t *testing.T) {
	r := newGraphRig(t)
	r.x.f.does("cuStreamQuery", func([]uintptr) result { return success })
	_, err := r.a.Capture(func() error {
		_, err := r.dev.Alloc(8)
		require.ErrorIs(t, err, device.CaptureUnsupported)
		return r.a.Memset(r.v, 1)
	})
	require.ErrorIs(t, err, device.CaptureInvalidated)
	require.ErrorContains(t, err, "Alloc")
	require.Empty(t, r.x.graphs)
}

func TestDriversRefusalsOfCaptures(t *testing.T) {
	r := newGraphRig(t)
	e := gpuEvent(t, r.dev, device.EventOptions{Name: "fork"})
	_, err := r.a.Capture(func() error {
		return errors.Join(r.a.Record(e), r.b.Wait(e), r.b.Memset(r.v, 1))
	})
	require.ErrorIs(t, err, device.CaptureUnjoined)
	_, err = r.a.Capture(func() error {
		r.do(r.scale(r.a, 1), r.a.Record(e))
		_, err := r.b.Capture(func() error { return r.b.Wait(e) })
		require.ErrorIs(t, err, device.CaptureMerge)
		return nil
	})
	require.ErrorIs(t, err, device.CaptureInvalidated)

	_, err = r.d.EndCapture(r.a.Handle())
	require.ErrorIs(t, err, device.CaptureUnmatched)
	_, err = r.a.Capture(func() error {
		ended := make(chan error)
		go func() {
			_, err := r.d.EndCapture(r.a.Handle())
			ended <- err
		}()
		require.ErrorIs(t, <-ended, device.CaptureWrongThread)
		return nil
	})
	require.ErrorIs(t, err, device.CaptureInvalidated)
}

// Beside a capture others ask, wait and allocate, without a word from the driver's
// capture.
func TestOthersGoOnBesideACapture(t *testing.T) {
	r := newGraphRig(t)
	e := gpuEvent(t, r.dev, device.EventOptions{})
	g := r.capture(func() error {
		done := make(chan error)
		go func() {
			b, err := r.dev.Alloc(8)
			if err == nil {
				err = errors.Join(r.b.Record(e), e.Synchronize(t.Context()), r.b.Synchronize(t.Context()), r.b.CopyH2D(r.v, make([]byte, 256)), b.Close())
			}
			done <- err
		}()
		return errors.Join(<-done, r.scale(r.a, 1))
	})
	require.Len(t, g.Nodes(), 1)
}

// An event of a capture that has ended is refused, and that is all.
func TestAskingAboutAnEarlierCapturesEvent(t *testing.T) {
	r := newGraphRig(t)
	earlier, e := gpuEvent(t, r.dev, device.EventOptions{}), gpuEvent(t, r.dev, device.EventOptions{})
	r.capture(func() error { return r.a.Record(earlier) })
	var late error
	_, err := r.a.Capture(func() error {
		asked := make(chan error)
		go func() {
			for _, call := range []func() error{
				func() error { _, err := earlier.Done(); return err },
				func() error { return earlier.Synchronize(t.Context()) },
				func() error { return r.b.Wait(earlier) },
			} {
				asked <- call()
			}
		}()
		for range 3 {
			require.ErrorIs(t, <-asked, device.CapturedEvent)
		}
		r.do(r.a.Memset(r.v, 1), r.a.Record(e))
		go func() { _, err := e.Done(); asked <- err }()
		require.ErrorIs(t, <-asked, device.CapturedEvent)
		late = r.a.Memset(r.v, 1)
		return nil
	})
	require.ErrorIs(t, late, device.CaptureInvalidated, "of the capture under way")
	require.ErrorIs(t, err, device.CaptureInvalidated)
}
