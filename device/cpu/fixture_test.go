package cpu_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
)

const ms = time.Millisecond

var background = context.Background()

// fixed is a model whose copies take the given times, whatever their size.
func fixed(h2d, d2h time.Duration) *cpu.Model {
	return &cpu.Model{H2D: cpu.Link{Latency: h2d}, D2H: cpu.Link{Latency: d2h}}
}

// rig is a device with what the tests submit work to. What is made through it is
// freed when the test ends.
type rig struct {
	*device.Device
	t        *testing.T
	buf      device.View
	host     []byte
	opened   time.Time
	closings []func() error
}

func open(t *testing.T, o cpu.Options) *rig {
	t.Helper()
	r := &rig{t: t, opened: time.Now()}
	dev, err := cpu.Open(o)
	require.NoError(t, err)
	r.Device = dev
	r.buf, r.host = r.buffer(256), r.hostBuffer(256)
	return r
}

// close frees everything; all work must be done.
func (r *rig) close() {
	r.t.Helper()
	for _, closing := range r.closings {
		require.NoError(r.t, closing())
	}
	require.NoError(r.t, r.Close())
}

func (r *rig) stream(name string) *device.Stream {
	r.t.Helper()
	return r.streamWith(device.StreamOptions{Name: name})
}

func (r *rig) streamWith(o device.StreamOptions) *device.Stream {
	r.t.Helper()
	s, err := r.NewStream(o)
	require.NoError(r.t, err)
	r.closings = append(r.closings, s.Close)
	return s
}

func (r *rig) event(name string) *device.Event {
	r.t.Helper()
	e, err := r.NewEvent(device.EventOptions{Name: name, Timing: true})
	require.NoError(r.t, err)
	r.closings = append(r.closings, e.Close)
	return e
}

func (r *rig) buffer(bytes int64) device.View {
	r.t.Helper()
	b, err := r.Alloc(bytes)
	require.NoError(r.t, err)
	r.closings = append(r.closings, b.Close)
	return b.View()
}

func (r *rig) hostBuffer(bytes int64) []byte {
	r.t.Helper()
	h, err := r.AllocHost(bytes, device.HostOptions{})
	require.NoError(r.t, err)
	r.closings = append(r.closings, h.Close)
	return h.Bytes()
}

func (r *rig) do(errs ...error) {
	r.t.Helper()
	for _, err := range errs {
		require.NoError(r.t, err)
	}
}

func (r *rig) in(s *device.Stream)  { r.t.Helper(); r.do(s.CopyH2D(r.buf, r.host)) }
func (r *rig) out(s *device.Stream) { r.t.Helper(); r.do(s.CopyD2H(r.host, r.buf)) }

func (r *rig) compute(s *device.Stream, d time.Duration) {
	r.t.Helper()
	r.do(s.Launch(cpu.Busy(d)))
}

// at synchronises e and requires that it was recorded and noticed at a time since
// the device was opened.
func (r *rig) at(want time.Duration, e *device.Event) {
	r.t.Helper()
	r.do(e.Synchronize(background))
	require.Equal(r.t, want, time.Since(r.opened), "noticed")
}

func filled(value byte, n int) []byte {
	mem := make([]byte, n)
	for i := range mem {
		mem[i] = value
	}
	return mem
}
