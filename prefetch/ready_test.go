package prefetch_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A stopwatch notes when work on a batch ends on the device, in virtual time.
type stopwatch struct {
	start time.Time
	mu    sync.Mutex
	ends  []time.Duration
}

func (w *stopwatch) note() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends = append(w.ends, time.Since(w.start))
}

// by is how many ended by then, and when the last of those did.
func (w *stopwatch) by(then time.Duration) (n int, last time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, end := range w.ends {
		if end <= then {
			n, last = n+1, max(last, end)
		}
	}
	return n, last
}

// One of a hundred steps takes a hundred times as long as the others. What is free goes on
// meanwhile: of the others only the one that was given to the slow one's stream while all
// were idle, or rather equally busy, waits for it.
func TestWhatIsReadyDoesNotWaitForASlowStep(t *testing.T) {
	const batches, slowStep, step = 100, 500 * ms, 5 * ms
	steps := func(b prefetch.Batch) time.Duration {
		if b.Position().Batch == 0 {
			return slowStep
		}
		return step
	}
	type outcome struct {
		inTime int           // how many of the others have ended by the end of the slow one
		last   time.Duration // when the last of those did
	}
	for _, c := range []struct {
		streams prefetch.Streams
		late    bool // it is not the step that is slow, but a stream of UsedOn
		want    outcome
	}{
		{prefetch.Streams{Compute: 2}, false, outcome{98, 98 * step}},
		{prefetch.Streams{Compute: 3}, false, outcome{98, 98 / 2 * step}},
		{prefetch.Streams{Compute: 2}, true, outcome{99, batches / 2 * step}},
		{prefetch.Streams{Compute: 3}, true, outcome{99, 34 * step}},
		{prefetch.Streams{Compute: 2, RoundRobin: true}, false, outcome{3, 3 * step}}, // as it was asked for
	} {
		for _, way := range []string{"range", "reader", "Map"} {
			for _, transform := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%+v/late=%v/transform=%v", way, c.streams, c.late, transform), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						data := canary{n: batches, width: 8}
						po := prefetch.Options{Depth: 4, Streams: c.streams}
						if transform {
							po.Transform = passOn(cpuSpin, 0, data)
						}
						co := cpu.Options{Model: &cpu.Model{ComputeEngines: 5}}
						r := newRig(t, data, co, 1, loader.Options{Workers: 2, Epochs: 1}, po)
						late := r.stream("late")
						w := &stopwatch{start: time.Now()}
						submit := func(b prefetch.Batch) {
							busy, stream := steps(b), b.Stream()
							if c.late && b.Position().Batch == 0 {
								require.NoError(t, b.UsedOn(late))
								require.NoError(t, r.spin(late, busy))
								require.NoError(t, late.HostFunc(w.note))
								busy = step
							}
							require.NoError(t, r.spin(stream, busy))
							require.NoError(t, stream.HostFunc(w.note))
						}
						switch way {
						case "range":
							for b, err := range r.pf.All(t.Context()) {
								require.NoError(t, err)
								submit(b)
							}
						case "reader":
							reader, err := r.pf.Open(t.Context())
							require.NoError(t, err)
							for range batches {
								b, err := reader.Next(t.Context())
								require.NoError(t, err)
								submit(b)
								b.Release()
							}
							require.NoError(t, reader.Close())
						case "Map":
							out := prefetch.Output{Fields: data.Fields(), AsFinished: true, Slots: 6}
							echo, yielded := r.echo(always(0)), 0
							for res, err := range r.pf.Map(t.Context(), out, func(b prefetch.Batch, out prefetch.Fields) error {
								submit(b)
								return echo(b, out)
							}) {
								require.NoError(t, err)
								require.NoError(t, r.verify(got(res)))
								if time.Since(w.start) < slowStep {
									yielded++
								}
							}
							if !c.late {
								require.Equal(t, c.want.inTime, yielded, "as they are done")
							}
						}
						require.NoError(t, r.dev.Synchronize(t.Context()))
						n, last := w.by(slowStep - 1)
						if c.late {
							n-- // batch 0's own step
						}
						require.Equal(t, c.want, outcome{n, last})
						require.NoError(t, late.Close())
						r.close()
					})
				})
			}
		}
	}
}

// With one compute stream nothing is asked of the device. Where UsedOn has others read the
// slots, and several are free, it is asked for each of them at most whether it is read.
func TestOneComputeStreamCostsNoQuery(t *testing.T) {
	data := canary{n: 100, width: 8}
	for name, po := range map[string]prefetch.Options{
		"plain":             {},
		"depth 1":           {Depth: 1},
		"several in a copy": {BatchesPerCopy: 4},
		"transform":         {Transform: passOn(cpuSpin, ms, data)},
		"timing":            {Timing: true},
	} {
		for _, way := range []string{"range", "Map", "UsedOn"} {
			t.Run(name+"/"+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, data, adversarial(2*ms), 1, loader.Options{Workers: 2, Epochs: 1}, po)
					other := r.stream("other")
					batches := 0
					if way == "Map" {
						for _, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: data.Fields()}, r.echo(always(3*ms))) {
							require.NoError(t, err)
							batches++
						}
					} else {
						for b, err := range r.pf.All(t.Context()) {
							require.NoError(t, err)
							if way == "UsedOn" {
								require.NoError(t, b.UsedOn(other))
								require.NoError(t, r.spin(other, 2*ms))
							}
							require.NoError(t, r.spin(b.Stream(), 3*ms))
							batches++
						}
					}
					require.Equal(t, 100, batches)
					require.Zero(t, r.tap.Count(devicetest.StreamDone))
					most := int64(0)
					if way == "UsedOn" {
						plan := r.pf.Plan()
						most = r.pf.Stats().Uploads * int64(plan.Depth*plan.BatchesPerCopy)
					}
					require.LessOrEqual(t, r.tap.Count(devicetest.EventDone), most)
					require.NoError(t, other.Synchronize(t.Context()))
					require.NoError(t, other.Close())
					r.close()
				})
			})
		}
	}
}

// With RoundRobin batches go to the streams in turn, whatever they have to do.
func TestRoundRobinIsInTurn(t *testing.T) {
	for streams := 1; streams <= 3; streams++ {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, canary{n: 40, width: 4}, cpu.Options{Model: &cpu.Model{ComputeEngines: 3}}, 1, plain,
				prefetch.Options{Depth: 4, Streams: prefetch.Streams{Compute: streams, RoundRobin: true}})
			var inTurn []*device.Stream
			for b, err := range r.pf.Batches(t.Context()) {
				require.NoError(t, err)
				n := b.Position().Batch
				require.NoError(t, r.spin(b.Stream(), time.Duration(n*n%7)*ms))
				if n < streams {
					require.False(t, slices.Contains(inTurn, b.Stream()))
					inTurn = append(inTurn, b.Stream())
				}
				require.Same(t, inTurn[n%streams], b.Stream())
			}
			r.close()
		})
	}
}
