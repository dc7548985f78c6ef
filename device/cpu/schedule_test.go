package cpu_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
)

const ms = time.Millisecond

// fixed is a model whose copies take the given times, whatever their size.
func fixed(h2d, d2h time.Duration) *cpu.Model {
	return &cpu.Model{H2D: cpu.Link{Latency: h2d}, D2H: cpu.Link{Latency: d2h}}
}

// bench is a device with what the tests of schedules need.
type bench struct {
	*device.Device
	t    *testing.T
	buf  *device.Buffer
	host *device.HostBuffer
}

func open(t *testing.T, o cpu.Options) *bench {
	dev, err := cpu.Open(o)
	require.NoError(t, err)
	b := &bench{Device: dev, t: t}
	b.buf, err = dev.Alloc(256)
	require.NoError(t, err)
	b.host, err = dev.AllocHost(256, device.HostOptions{})
	require.NoError(t, err)
	return b
}

func (b *bench) close(streams []*device.Stream, events []*device.Event) {
	for _, s := range streams {
		require.NoError(b.t, s.Close())
	}
	for _, e := range events {
		require.NoError(b.t, e.Close())
	}
	require.NoError(b.t, b.buf.Free())
	require.NoError(b.t, b.host.Free())
	require.NoError(b.t, b.Close())
}

func (b *bench) stream(name string) *device.Stream {
	s, err := b.NewStream(device.StreamOptions{Name: name})
	require.NoError(b.t, err)
	return s
}

func (b *bench) event(name string) *device.Event {
	e, err := b.NewEvent(device.EventOptions{Name: name, Timing: true})
	require.NoError(b.t, err)
	return e
}

// batch submits a copy in, a kernel and a copy out to one stream.
func (b *bench) batch(s *device.Stream, compute time.Duration) {
	require.NoError(b.t, s.CopyH2D(b.buf.View(), b.host.Bytes()))
	require.NoError(b.t, s.Launch(cpu.Busy(compute)))
	require.NoError(b.t, s.CopyD2H(b.host.Bytes(), b.buf.View()))
}

func TestThreeStagesSerialAndPipelined(t *testing.T) {
	for _, batches := range []int{1, 3, 10} {
		for _, streams := range []int{1, batches} {
			t.Run(fmt.Sprintf("batches=%d/streams=%d", batches, streams), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := open(t, cpu.Options{Model: fixed(10*ms, 10*ms)})
					begin := time.Now()
					var all []*device.Stream
					for i := range streams {
						all = append(all, b.stream(fmt.Sprint(i)))
					}
					for i := range batches {
						b.batch(all[i%streams], 30*ms)
					}
					require.Equal(t, time.Duration(0), time.Since(begin), "submitting must not wait")
					require.NoError(t, b.Synchronize(context.Background()))
					want := time.Duration(50*batches) * ms
					if streams > 1 {
						want = time.Duration(30*batches+20) * ms
					}
					require.Equal(t, want, time.Since(begin))
					b.close(all, nil)
				})
			})
		}
	}
}

// The pipeline's three edges without a pipeline: the expected time of the
// published promise.
func TestTwoSlots(t *testing.T) {
	for depth, want := range map[int]time.Duration{1: 700 * ms, 2: 403 * ms, 3: 403 * ms} {
		t.Run(fmt.Sprintf("depth=%d", depth), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := open(t, cpu.Options{Model: fixed(3*ms, 0)})
				begin := time.Now()
				up, compute := b.stream("upload"), b.stream("compute")
				var ready, consumed []*device.Event
				for i := range depth {
					ready = append(ready, b.event(fmt.Sprint("ready", i)))
					consumed = append(consumed, b.event(fmt.Sprint("consumed", i)))
				}
				for i := range 100 {
					slot := i % depth
					if i >= depth {
						require.NoError(t, up.Wait(consumed[slot]))
					}
					require.NoError(t, up.CopyH2D(b.buf.View(), b.host.Bytes()))
					require.NoError(t, up.Record(ready[slot]))
					require.NoError(t, compute.Wait(ready[slot]))
					require.NoError(t, compute.Launch(cpu.Busy(4*ms)))
					require.NoError(t, compute.Record(consumed[slot]))
				}
				require.NoError(t, compute.Synchronize(context.Background()))
				require.Equal(t, want, time.Since(begin))
				b.close([]*device.Stream{up, compute}, append(ready, consumed...))
			})
		})
	}
}
