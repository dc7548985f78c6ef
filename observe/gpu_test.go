package observe_test

import (
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/cuda"
	"github.com/leat-go/leat/device/cuda/latch"
	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/observe"
	"github.com/leat-go/leat/prefetch"
)

// stopwatch is a driver that puts timed events around every copy to the device, of its own.
type stopwatch struct {
	driver.Device
	mu     sync.Mutex
	copies [][2]driver.Event
}

func (d *stopwatch) Unwrap() driver.Device { return d.Device }

func (d *stopwatch) CopyH2D(s driver.Stream, dst driver.Address, src []byte) error {
	var around [2]driver.Event
	for i := range around {
		e, err := d.NewEvent(driver.EventConfig{Timing: true})
		if err != nil {
			return err
		}
		around[i] = e
	}
	if err := d.Record(around[0], s); err != nil {
		return err
	}
	if err := d.Device.CopyH2D(s, dst, src); err != nil {
		return err
	}
	d.mu.Lock()
	d.copies = append(d.copies, around)
	d.mu.Unlock()
	return d.Record(around[1], s)
}

// raw is what events of nobody but this test tell: when copies ran and when compute worked.
type raw struct{ copies, steps [][2]time.Duration }

// overlap is the share of copying while compute worked, or before and after all its work.
func (r *raw) overlap() float64 {
	var all, bare time.Duration
	for _, c := range r.copies {
		all += c[1] - c[0]
		for i := 1; i < len(r.steps); i++ {
			bare += max(0, min(c[1], r.steps[i][0])-max(c[0], r.steps[i-1][1]))
		}
		bare += max(0, min(c[1], r.steps[0][0])-c[0])
	}
	return 1 - float64(bare)/float64(all)
}

// busy is the share of time in which compute worked, from the end of the first step on.
func (r *raw) busy() float64 {
	var work time.Duration
	for _, s := range r.steps[1:] {
		work += s[1] - s[0]
	}
	return float64(work) / float64(r.steps[len(r.steps)-1][1]-r.steps[0][1])
}

// timed runs a load whose steps spin for so long, and tells what its own events and the report
// say.
func timed(t *testing.T, drv driver.Device, l *load, spin func(*device.Stream, time.Duration) error) (*raw, *observe.Snapshot) {
	watch := &stopwatch{Device: drv}
	dev := device.New(watch)
	compute, err := dev.NewStream(device.StreamOptions{})
	require.NoError(t, err)
	ld, err := loader.New(l, l.batch, l.loader)
	require.NoError(t, err)
	rec := observe.NewRecorder(observe.Options{})
	l.prefetch.Recorder, l.prefetch.Timing, l.prefetch.BatchesPerCopy = rec, true, 1
	pf, err := prefetch.New(compute, ld, l.prefetch)
	require.NoError(t, err)
	zero, err := dev.NewEvent(device.EventOptions{Timing: true})
	require.NoError(t, err)
	zeroRaw, err := watch.NewEvent(driver.EventConfig{Timing: true})
	require.NoError(t, err)
	var around [][2]*device.Event
	for range l.samples / l.batch {
		var pair [2]*device.Event
		for i := range pair {
			pair[i], err = dev.NewEvent(device.EventOptions{Timing: true})
			require.NoError(t, err)
		}
		around = append(around, pair)
	}
	// One point in time for both kinds of events: the device is at rest.
	stream, err := watch.NewStream(driver.StreamConfig{})
	require.NoError(t, err)
	require.NoError(t, watch.Record(zeroRaw, stream)) // the first takes longer
	require.NoError(t, compute.Record(zero))
	require.NoError(t, dev.Synchronize(t.Context()))
	require.NoError(t, watch.Record(zeroRaw, stream))
	require.NoError(t, compute.Record(zero))
	require.NoError(t, dev.Synchronize(t.Context()))
	n := 0
	for b, err := range pf.Batches(t.Context()) {
		require.NoError(t, err)
		require.NoError(t, b.Stream().Record(around[n][0]))
		require.NoError(t, spin(b.Stream(), l.compute))
		require.NoError(t, b.Stream().Record(around[n][1]))
		if l.body != nil {
			l.body(n)
		}
		n++
	}
	require.NoError(t, dev.Synchronize(t.Context()))
	r := &raw{}
	for _, pair := range around[:n] {
		var at [2]time.Duration
		for i := range pair {
			at[i], err = device.Elapsed(zero, pair[i])
			require.NoError(t, err)
			require.NoError(t, pair[i].Close())
		}
		r.steps = append(r.steps, at)
	}
	for _, pair := range watch.copies {
		var at [2]time.Duration
		for i := range pair {
			at[i], err = watch.Elapsed(zeroRaw, pair[i])
			require.NoError(t, err)
			require.NoError(t, watch.FreeEvent(pair[i]))
		}
		r.copies = append(r.copies, at)
	}
	s := observe.Take(pf)
	require.NoError(t, pf.Close())
	require.NoError(t, zero.Close())
	require.NoError(t, watch.FreeEvent(zeroRaw))
	require.NoError(t, watch.FreeStream(stream))
	require.NoError(t, compute.Close())
	require.NoError(t, dev.Close())
	return r, s
}

// What the report claims is what events of its own tell to whoever looks.
func agrees(t *testing.T, r *raw, s *observe.Snapshot) {
	t.Helper()
	busy, known := s.Utilization()
	require.True(t, known)
	t.Logf("overlap %.4f, by raw events %.4f; the device worked %.4f, %.4f\n%s\n%s", s.Overlap(), r.overlap(), busy, r.busy(), s, s.Explain())
	require.InDelta(t, r.overlap(), s.Overlap(), 0.02)
	require.InDelta(t, r.busy(), busy, 0.02)
}

// reports are loads of which the report must tell what raw events do.
var reports = map[string]struct {
	load
	is observe.Bottleneck
}{
	"device":    {is: observe.DeviceBound, load: load{read: same(ms), compute: 10 * ms, body: sleeps(ms / 5)}},
	"producers": {is: observe.SlowProducers, load: load{read: same(20 * ms), compute: 5 * ms}},
	"depth 1":   {is: observe.NoOverlap, load: load{width: 16 << 20, loader: loader.Options{Workers: 8}, compute: 3 * ms, prefetch: prefetch.Options{Depth: 1}}},
}

func TestTheReportAgreesWithRawEvents(t *testing.T) {
	for name, c := range reports {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.samples, c.batch, c.width, c.loader.Workers = 60, 1, 0, max(c.loader.Workers, 1)
				drv, err := cpu.New(cpu.Options{Model: &cpu.Model{CopyTime: func(way cpu.Direction, _ int64) time.Duration { return 3 * ms }}})
				require.NoError(t, err)
				r, s := timed(t, drv, &c.load, func(s *device.Stream, d time.Duration) error { return s.Launch(cpu.Busy(d)) })
				agrees(t, r, s)
				require.Equal(t, c.is, s.Explain().Bottleneck)
			})
		})
	}
}

func TestGPUTheReportAgreesWithRawEvents(t *testing.T) {
	for name, c := range reports {
		t.Run(name, func(t *testing.T) {
			dev, err := cuda.Open(cuda.Options{})
			if err != nil && os.Getenv("LEAT_GPU") == "required" {
				t.Fatal("LEAT_GPU=required, and ", err)
			} else if err != nil {
				t.Skip("needs a GPU: ", err)
			}
			c.samples, c.batch, c.loader.Workers = 300, 1, max(c.loader.Workers, 1)
			r, s := timed(t, dev.Driver(), &c.load, latch.Spin)
			agrees(t, r, s)
			require.Equal(t, c.is, s.Explain().Bottleneck)
		})
	}
}
