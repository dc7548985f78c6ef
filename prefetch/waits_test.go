package prefetch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/internal/invariants"
	"github.com/leat-go/leat/internal/waitmodel"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// slow is a dataset whose samples take their time.
type slow struct {
	n    int
	read func(sample int) time.Duration
}

// rowBytes makes a batch of any number of rows a multiple of the distance at which batches
// lie, so that a copy's time is its rows'.
const rowBytes = 256

func (s slow) Len() int { return s.n }

// Cost implements loader.Coster: rows are begun in order, as the model begins them.
func (s slow) Cost(int) float64 { return 1 }

func (s slow) Fields() []loader.Field {
	return []loader.Field{{Name: "x", DType: dtype.Uint8, Shape: []int{rowBytes}}}
}

func (s slow) Read(_ context.Context, index int, row *loader.Row) error {
	clear(row.Bytes("x"))
	time.Sleep(s.read(row.Epoch()*s.n + index))
	return nil
}

// A journey is what a real pipeline did, in virtual time.
type journey struct {
	stats     prefetch.Stats
	delivered []time.Duration // when Next returned each batch
	ended     time.Duration   // when it returned the last epoch's end

	told     diary
	mu       sync.Mutex
	copied   []time.Duration // when each copy was done
	computed []time.Duration // and each step
}

// card is the device that d describes.
func (j *journey) card(t *testing.T, d *waitmodel.Device) *device.Device {
	o := cpu.Options{Model: &cpu.Model{ComputeEngines: d.Engines}}
	o.Model.CopyTime = func(way cpu.Direction, bytes int64) time.Duration {
		if way != cpu.H2D { // results are poisoned in some builds, which takes no time here
			return 0
		}
		return d.Copy(int(bytes / rowBytes))
	}
	o.Trace = func(s cpu.Span) {
		j.mu.Lock()
		defer j.mu.Unlock()
		switch s.Op {
		case "CopyH2D":
			j.copied = append(j.copied, s.End)
		case "Launch":
			if s.Stream != "transform" {
				j.computed = append(j.computed, s.End)
			}
		}
	}
	if d.Blocking {
		o.Model.Pageable, o.PinnedBytes = cpu.Link{Latency: 1}, 1
	}
	dev, err := cpu.Open(o)
	require.NoError(t, err)
	return dev
}

// travel runs the pipeline that p describes. The loop gives up every wait after so long and
// begins it again, unless patience is 0.
func travel(t *testing.T, p waitmodel.Pipeline, patience time.Duration) *journey {
	j := new(journey)
	epochs := max(1, p.Epochs)
	ld, err := loader.New(slow{n: p.Samples, read: p.Read}, p.Batch, loader.Options{Workers: p.Workers, Epochs: epochs})
	require.NoError(t, err)
	po := prefetch.Options{Memory: prefetch.Memory{HostSlots: p.HostSlots}, Timing: true, Recorder: &j.told}
	var pf *prefetch.Prefetcher
	var dev *device.Device
	if d := p.Device; d == nil {
		po.Timing = false
		pf, err = prefetch.NewHost(ld, po)
	} else {
		dev = j.card(t, d)
		compute, failed := dev.NewStream(device.StreamOptions{})
		require.NoError(t, failed)
		defer func() {
			require.NoError(t, compute.Close())
			require.NoError(t, dev.Close())
		}()
		if d.Transform != nil {
			po.Transform = transform(d.Transform)
		}
		po.Depth, po.BatchesPerCopy, po.Streams.Compute, po.Memory.Pageable = d.Slots, d.BatchesPerCopy, d.Streams, d.Blocking
		pf, err = prefetch.New(compute, ld, po)
	}
	require.NoError(t, err)
	start, n := time.Now(), 0
	var others sync.WaitGroup
	for range epochs {
		r, err := pf.Open(t.Context())
		require.NoError(t, err)
		next := r.Next
		if p.Released != nil {
			next = r.WaitNext
		}
		for {
			ctx, cancel := t.Context(), context.CancelFunc(func() {})
			if patience > 0 {
				ctx, cancel = context.WithTimeout(ctx, patience)
			}
			b, err := next(ctx)
			cancel()
			if errors.Is(err, context.DeadlineExceeded) {
				continue
			}
			if errors.Is(err, prefetch.ErrEpochEnd) {
				break
			}
			require.NoError(t, err)
			j.delivered = append(j.delivered, time.Since(start))
			j.body(t, p, b, n, &others)
			n++
		}
		j.ended = time.Since(start)
		require.NoError(t, r.Close())
	}
	others.Wait()
	if dev != nil {
		require.NoError(t, dev.Synchronize(t.Context()))
	}
	j.stats = pf.Stats()
	require.NoError(t, pf.Close())
	return j
}

// transform takes the time that t says. Nobody looks at what it gives.
func transform(t *waitmodel.Transform) *prefetch.Transform {
	batch := 0
	return &prefetch.Transform{Out: []loader.Field{{Name: "y", DType: dtype.Uint8}}, Apply: func(s *device.Stream, out, _ prefetch.Fields) error {
		out.Field("y")
		time.Sleep(t.Apply(batch))
		err := cpuSpin(s, t.Kernel(batch))
		batch++
		return err
	}}
}

// body is the loop's.
func (j *journey) body(t *testing.T, p waitmodel.Pipeline, b prefetch.Batch, i int, others *sync.WaitGroup) {
	if p.Device != nil {
		require.NoError(t, cpuSpin(b.Stream(), p.Device.Step(i)))
	}
	if p.Released != nil {
		others.Go(func() {
			time.Sleep(p.Released(i))
			b.Release()
		})
	} else {
		defer b.Release()
	}
	if p.Device != nil && p.Device.Synchronize {
		require.NoError(t, b.Stream().Synchronize(t.Context()))
	}
	time.Sleep(p.Body(i))
}

// compare says how what a real pipeline does differs from what the model says that it must.
func compare(t *testing.T, p waitmodel.Pipeline, patience time.Duration) error {
	t.Helper()
	var errs []error
	differ := func(what string, want, got any) {
		if !reflect.DeepEqual(want, got) {
			errs = append(errs, fmt.Errorf("%s: want %v, got %v", what, want, got))
		}
	}
	synctest.Test(t, func(t *testing.T) {
		want, got := waitmodel.Run(p), travel(t, p, patience)
		var delivered, copied, computed []time.Duration
		for _, b := range want.Times {
			delivered = append(delivered, b.Delivered)
			if p.Device != nil {
				copied, computed = append(copied, b.Copied), append(computed, b.Computed)
			}
		}
		slices.Sort(computed) // they overtake each other on several streams
		differ("batches delivered", delivered, got.delivered)
		differ("the end", want.Ended, got.ended)
		if p.Device != nil && p.Device.BatchesPerCopy == 1 {
			differ("copies done", copied, got.copied)
		}
		differ("steps done", computed, got.computed)
		s := got.stats
		differ("WaitProducer", want.WaitProducer, s.WaitProducer)
		differ("WaitOrder", want.WaitOrder, s.WaitOrder)
		differ("WaitDevice", want.WaitDevice, s.WaitDevice)
		differ("WaitRelease", want.WaitRelease, s.WaitRelease)
		differ("Wait", want.Wait(), s.Wait())
		differ("Body", want.Body, s.Body)
		differ("WaitSlot", want.WaitSlot, s.WaitSlot)
		differ("WaitHostSlot", want.WaitHostSlot, s.WaitHostSlot)
		differ("Uploads", int64(want.Uploads), s.Uploads)
		if s.TimedUploads == s.Uploads { // one behind a long step on one of several streams may be missed
			differ("CopyTime", want.CopyTime, s.CopyTime)
			differ("WaitCopy", want.WaitCopy, s.WaitCopy)
		}
		differ("Batches", int64(len(want.Times)), s.Batches)
		differ("Samples", int64(p.Samples*max(1, p.Epochs)), s.Samples)
		var slowest time.Duration
		for i := range p.Samples * max(1, p.Epochs) {
			slowest = max(slowest, p.Read(i))
		}
		differ("Slowest", slowest, s.Loader.Slowest.Took)
		var busy time.Duration
		for _, b := range s.Loader.Busy {
			busy += b
		}
		differ("Busy", want.Busy, busy)
		errs = append(errs, got.told.holds(p, want, s, patience == 0)...)
	})
	return errors.Join(errs...)
}

const ms = time.Millisecond

func same(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

func TestWaitsAreTheModelsOverAGrid(t *testing.T) {
	slows := map[string]func(p *waitmodel.Pipeline){
		"nothing": func(p *waitmodel.Pipeline) {},
		"read":    func(p *waitmodel.Pipeline) { p.Read = same(30 * ms) },
		"one sample": func(p *waitmodel.Pipeline) {
			p.Read = func(i int) time.Duration {
				if i == 5 {
					return 100 * ms
				}
				return 3 * ms
			}
		},
		"copy": func(p *waitmodel.Pipeline) {
			if p.Device != nil {
				p.Device.Copy = func(rows int) time.Duration { return time.Duration(rows) * 20 * ms }
			}
		},
		"step": func(p *waitmodel.Pipeline) {
			if p.Device != nil {
				p.Device.Step = same(40 * ms)
			}
		},
		"body": func(p *waitmodel.Pipeline) { p.Body = same(50 * ms) },
	}
	for _, workers := range []int{1, 2, 8} {
		for _, slots := range []int{1, 2, 3, 8} {
			for _, depth := range []int{0, 1, 2, 3} { // 0 is no device
				for name, slow := range slows {
					for _, kind := range []string{"", "synchronize", "blocking", "transform"} {
						if depth == 0 && kind != "" {
							continue
						}
						p := waitmodel.Pipeline{Samples: 12, Batch: 1, Workers: workers, HostSlots: slots, Read: same(3 * ms), Body: same(2 * ms)}
						if depth > 0 {
							p.Device = &waitmodel.Device{Slots: depth, BatchesPerCopy: 1, Step: same(4 * ms),
								Copy:        func(rows int) time.Duration { return time.Duration(rows) * 2 * ms },
								Synchronize: kind == "synchronize", Blocking: kind == "blocking"}
							if kind == "transform" {
								p.Device.Engines = 2 // or it may come before a step, or behind
								p.Device.Transform = &waitmodel.Transform{Apply: same(ms), Kernel: same(5 * ms)}
							}
						}
						slow(&p)
						require.NoError(t, compare(t, p, 0), "workers=%d slots=%d depth=%d slow=%s %s", workers, slots, depth, name, kind)
					}
				}
			}
		}
	}
}

// draw is any pipeline. In one of whole milliseconds many things happen at one instant; what
// the pipeline is free to choose then is left out of it.
func draw(rt *rapid.T, whole bool, rows int) waitmodel.Pipeline {
	kinds := uint64(0)
	// some are n durations, of up to so many milliseconds.
	some := func(name string, n int, most ...int) func(int) time.Duration {
		limit := rapid.SampledFrom(most).Draw(rt, name+" up to")
		kinds++ // so that no two kinds are alike
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, name), kinds))
		all := make([]time.Duration, n)
		for i := range all {
			if all[i] = time.Duration(random.Int64N(int64(limit)*int64(ms) + 1)); whole {
				all[i] = all[i].Round(ms)
			}
		}
		return func(i int) time.Duration { return all[i] }
	}
	p := waitmodel.Pipeline{
		Samples: rapid.IntRange(1, 20).Draw(rt, "samples"), Epochs: rapid.IntRange(1, 3).Draw(rt, "epochs"),
		Batch: rapid.IntRange(1, rows).Draw(rt, "batch"), Workers: rapid.IntRange(1, 4).Draw(rt, "workers"), HostSlots: rapid.IntRange(1, 5).Draw(rt, "host slots"),
	}
	limits := []int{0, 1, 50, 500}
	if !whole {
		limits = limits[1:]
	}
	batches := (p.Samples + p.Batch - 1) / p.Batch * p.Epochs
	read := some("read", p.Samples*p.Epochs, limits...)
	p.Read = func(i int) time.Duration { // samples that are cheap are claimed several at a time
		if whole {
			return read(i)
		}
		return ms + read(i)
	}
	p.Body = some("body", batches, 0, 1, 50, 500)
	if !whole && rapid.Bool().Draw(rt, "released by another") {
		p.Released = some("released", batches, limits...)
	}
	if rapid.Bool().Draw(rt, "device") {
		perRow := some("copy", 1, limits...)(0)
		d := &waitmodel.Device{
			Slots: rapid.IntRange(1, 4).Draw(rt, "depth"), BatchesPerCopy: 1, Step: some("step", batches, limits...),
			Copy:        func(rows int) time.Duration { return time.Duration(rows) * perRow },
			Synchronize: rapid.Bool().Draw(rt, "synchronize"), Blocking: rapid.Bool().Draw(rt, "blocking"),
		}
		if !whole {
			d.BatchesPerCopy = rapid.IntRange(1, min(3, p.HostSlots)).Draw(rt, "batches a copy")
			// Poisoning the output is one more thing that engines take turns at.
			if !invariants.Enabled && rapid.Bool().Draw(rt, "transform") {
				d.Transform = &waitmodel.Transform{Apply: some("apply", batches, limits...), Kernel: some("transform's kernel", batches, limits...)}
			}
			d.Streams, d.Engines = rapid.IntRange(1, 3).Draw(rt, "streams"), rapid.IntRange(1, 3).Draw(rt, "engines")
		}
		p.Device = d
	}
	return p
}

func TestWaitsAreTheModels(t *testing.T) {
	for _, whole := range []bool{true, false} {
		t.Run(fmt.Sprintf("whole=%v", whole), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				patience := time.Duration(rapid.SampledFrom([]int{0, 0, 20}).Draw(rt, "patience")) * ms
				require.NoError(rt, compare(t, draw(rt, whole, 3), patience))
			})
		})
	}
}

func TestASlowStepHoldsUpNoOther(t *testing.T) {
	steps := func(i int) time.Duration {
		if i == 0 {
			return 500 * ms
		}
		return 5 * ms
	}
	for _, body := range []time.Duration{0, 7 * ms} {
		require.NoError(t, compare(t, waitmodel.Pipeline{
			Samples: 60, Batch: 1, Workers: 1, HostSlots: 8, Read: same(ms + 1), Body: same(body),
			Device: &waitmodel.Device{Slots: 4, BatchesPerCopy: 1, Copy: func(int) time.Duration { return ms / 100 }, Streams: 2, Engines: 2, Step: steps},
		}, 0), "body %v", body)
	}
}

// Where epochs are of one batch there are as many ends as batches among those that are ready.
func TestEpochsOfOneBatch(t *testing.T) {
	require.NoError(t, compare(t, waitmodel.Pipeline{
		Samples: 1, Batch: 1, Epochs: 12, Workers: 1, HostSlots: 5, Read: same(ms), Body: same(50 * ms),
		Device: &waitmodel.Device{Slots: 3, BatchesPerCopy: 1, Copy: func(int) time.Duration { return ms }, Step: same(ms)},
	}, 0))
}
