package observe_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/observe"
	"github.com/leat-go/leat/prefetch"
)

const ms = time.Millisecond

// rowBytes makes a batch of any number of rows a multiple of the distance at which batches
// lie, so that a copy's time is its rows'.
const rowBytes = 256

// load is a pipeline, of batches of one row unless it says otherwise, and the loop that takes
// from it.
type load struct {
	samples, batch int
	width          int // bytes of a sample, 0 for rowBytes
	read           func(sample int) time.Duration
	loader         loader.Options
	prefetch       prefetch.Options
	copy           func(bytes int64) time.Duration // nil: there is no device
	compute        time.Duration                   // that the body submits
	body           func(step int)                  // what it does then, nil for nothing
	synchronize    bool                            // whether it waits for that
	recorder       observe.Options

	longest    int           // of samples that are ragged, 0 if they are not,
	length     func(int) int // and how long each is
	transform  time.Duration // of a batch, 0 for none
	sampled    bool          // whether not every upload is timed
	hold       time.Duration // for which another goroutine holds each batch, 0 for none
	scheduling time.Duration // for which goroutines wait for a processor

	took time.Duration // by all steps, until the device has done with them
	rest func()        // waits for that
}

func (l *load) Len() int { return l.samples }

func (l *load) Fields() []loader.Field {
	if l.longest > 0 {
		return []loader.Field{{Name: "x", DType: dtype.Uint8, Shape: []int{l.longest}, Ragged: &loader.Ragged{}}}
	}
	return []loader.Field{{Name: "x", DType: dtype.Uint8, Shape: []int{max(l.width, rowBytes)}}}
}

func (l *load) Read(_ context.Context, index int, row *loader.Row) error {
	if l.longest > 0 {
		return loader.Write(row, "x", make([]byte, l.length(index))...)
	}
	clear(row.Bytes("x"))
	if l.read != nil {
		time.Sleep(l.read(index))
	}
	return nil
}

func same(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

func takes(d time.Duration) func(int64) time.Duration {
	return func(int64) time.Duration { return d }
}

// run takes the whole of one epoch from the pipeline and returns what is known of it then.
func (l *load) run(t *testing.T) (*observe.Snapshot, *observe.Recorder) {
	t.Helper()
	rec := observe.NewRecorder(l.recorder)
	pf, end := l.open(t, rec)
	defer end()
	began := time.Now()
	rd, err := pf.Open(t.Context())
	require.NoError(t, err)
	for step := 0; ; step++ {
		b, err := rd.WaitNext(t.Context())
		if errors.Is(err, prefetch.ErrEpochEnd) {
			break
		}
		require.NoError(t, err)
		l.step(t, b, step)
		if l.hold > 0 {
			time.AfterFunc(l.hold, b.Release)
		} else {
			b.Release()
		}
	}
	require.NoError(t, rd.Close())
	time.Sleep(2 * l.hold)
	l.rest()
	l.took = time.Since(began)
	return observe.Take(pf), rec
}

// open makes the pipeline.
func (l *load) open(t *testing.T, rec *observe.Recorder) (pf *prefetch.Prefetcher, end func()) {
	t.Helper()
	l.batch = max(l.batch, 1)
	if l.loader.Workers == 0 {
		l.loader.Workers = 1
	}
	ld, err := loader.New(l, l.batch, l.loader)
	require.NoError(t, err)
	if rec != nil {
		l.prefetch.Recorder = rec
	}
	if l.scheduling > 0 {
		var h observe.Histogram
		h.Add(l.scheduling, 1000)
		observe.Latencies(rec, h)
	}
	if l.transform > 0 {
		l.prefetch.Transform = &prefetch.Transform{Out: l.Fields(), Apply: func(s *device.Stream, out, _ prefetch.Fields) error {
			out.Field("x")
			return s.Launch(cpu.Busy(l.transform))
		}}
	}
	l.rest = func() {}
	l.prefetch.Timing = l.copy != nil && !l.sampled
	if l.copy == nil {
		pf, err = prefetch.NewHost(ld, l.prefetch)
		require.NoError(t, err)
		return pf, func() { require.NoError(t, pf.Close()) }
	}
	o := cpu.Options{Model: &cpu.Model{ComputeEngines: 2, CopyTime: func(way cpu.Direction, bytes int64) time.Duration {
		if way != cpu.H2D {
			return 0
		}
		return l.copy(bytes)
	}}}
	if l.prefetch.Memory.Pageable {
		o.Model.Pageable, o.PinnedBytes = cpu.Link{Latency: 1}, 1
	}
	dev, err := cpu.Open(o)
	require.NoError(t, err)
	compute, err := dev.NewStream(device.StreamOptions{Name: "compute"})
	require.NoError(t, err)
	pf, err = prefetch.New(compute, ld, l.prefetch)
	require.NoError(t, err)
	l.rest = func() { require.NoError(t, dev.Synchronize(t.Context())) }
	return pf, func() {
		require.NoError(t, dev.Synchronize(context.Background()))
		require.NoError(t, pf.Close())
		require.NoError(t, compute.Close())
		require.NoError(t, dev.Close())
	}
}

// step is the loop's body.
func (l *load) step(t *testing.T, b prefetch.Batch, number int) {
	if l.compute > 0 && b.Stream() != nil {
		require.NoError(t, b.Stream().Launch(cpu.Busy(l.compute)))
	}
	if l.synchronize {
		require.NoError(t, b.Stream().Synchronize(t.Context()))
	}
	if l.body != nil {
		l.body(number)
	}
}

// sleeps is a body that takes so long.
func sleeps(d time.Duration) func(int) { return func(int) { time.Sleep(d) } }
