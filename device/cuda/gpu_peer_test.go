//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
)

// secondGPU is the options that open a GPU other than the first. With one GPU there
// is nothing to test, LEAT_GPU=required or not.
func secondGPU(t testing.TB) Options {
	gpus, err := List()
	require.NoError(t, err)
	if len(gpus) < 2 {
		t.Skipf("%d GPU here, and copies between two want two", len(gpus))
	}
	return Options{Index: 1}
}

// The writer on the first GPU is held: the second one's stream, which waits for it
// and fetches the bytes, has not done so before. Then both copy at once, each into
// the other, and what the first GPU sent comes back.
func TestGPUPeers(t *testing.T) {
	const n = 64 << 20
	here := openGPU(t, Options{})
	there := openGPU(t, secondGPU(t))
	a, b := gpuStream(t, here, "here"), gpuStream(t, there, "there")
	v, w := gpuBuffer(t, here, 2*n), gpuBuffer(t, there, 2*n)
	ready := gpuEvent(t, here, device.EventOptions{})
	fetched := gpuEvent(t, there, device.EventOptions{})
	in, out := gpuHost(t, here, n), gpuHost(t, here, n)
	for i := range in {
		in[i] = byte(i * 7 >> 3)
	}
	fill(out, 0)
	half := func(v device.View, i int64) device.View { return v.Slice(i*n, n) }
	check := func(errs ...error) {
		t.Helper()
		for _, err := range errs {
			require.NoError(t, err)
		}
	}
	check(b.CopyPeer(half(w, 0), half(v, 0)), b.Synchronize(context.Background())) // sets up the way
	t.Log(here.Notes(), there.Notes())

	l := gpuLatch(t, here)
	check(l.Hold(a), a.CopyH2D(half(v, 0), in), a.Record(ready))
	check(b.Wait(ready), b.CopyPeer(half(w, 0), half(v, 0)), b.Record(fetched))
	done, err := fetched.Done()
	require.NoError(t, err)
	require.False(t, done, "the second GPU waits for the first")
	l.Open()

	check(b.CopyPeer(half(v, 1), half(w, 0)), b.Record(fetched))
	check(a.CopyPeer(half(w, 1), half(v, 0)), a.Wait(fetched))
	check(a.CopyD2H(out, half(v, 1)), a.Synchronize(context.Background()))
	require.True(t, bytes.Equal(in, out), "there and back")
	fill(out, 0)
	check(b.CopyD2H(out, half(w, 1)), b.Synchronize(context.Background()))
	require.True(t, bytes.Equal(in, out), "sent by the first GPU")
}
