package prefetch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/internal/waitmodel"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// slow is a dataset whose samples take their time, and that many bytes of a full batch.
type slow struct {
	n     int
	read  func(sample int) time.Duration
	bytes int
}

func (s slow) Len() int { return s.n }

func (s slow) Fields() []loader.Field {
	return []loader.Field{{Name: "x", DType: dtype.Uint8, Shape: []int{s.bytes}}}
}

func (s slow) Read(_ context.Context, index int, row *loader.Row) error {
	clear(row.Bytes("x"))
	time.Sleep(s.read(index))
	return nil
}

// A journey is what a real pipeline did, in virtual time.
type journey struct {
	stats     prefetch.Stats
	delivered []time.Duration // when Next returned each batch
	ended     time.Duration   // when it returned the epoch's end
	copied    []time.Duration // when each copy was done
	computed  []time.Duration // and each step
}

// rowBytes makes a batch of any number of rows a multiple of the distance at which batches
// lie, so that a copy's time is its rows'.
const rowBytes = 256

// travel runs the pipeline that p describes.
func travel(t *testing.T, p waitmodel.Pipeline) (j journey) {
	ld, err := loader.New(slow{n: p.Samples, read: p.Read, bytes: rowBytes}, p.Batch, loader.Options{Workers: p.Workers, Epochs: 1})
	require.NoError(t, err)
	po := prefetch.Options{Memory: prefetch.Memory{HostSlots: p.HostSlots}}
	var pf *prefetch.Prefetcher
	var compute *device.Stream
	if d := p.Device; d == nil {
		pf, err = prefetch.NewHost(ld, po)
		require.NoError(t, err)
	} else {
		var mu sync.Mutex
		co := cpu.Options{Model: &cpu.Model{CopyTime: func(way cpu.Direction, bytes int64) time.Duration {
			if way != cpu.H2D { // results are poisoned in some builds, which takes no time here
				return 0
			}
			return d.Copy(int(bytes / rowBytes))
		}}}
		co.Trace = func(s cpu.Span) {
			mu.Lock()
			defer mu.Unlock()
			switch s.Op {
			case "CopyH2D":
				j.copied = append(j.copied, s.End)
			case "Launch":
				j.computed = append(j.computed, s.End)
			}
		}
		if d.Blocking {
			co.Model.Pageable, co.PinnedBytes, po.Memory.Pageable = cpu.Link{Latency: 1}, 1, true
		}
		dev, err := cpu.Open(co)
		require.NoError(t, err)
		compute, err = dev.NewStream(device.StreamOptions{})
		require.NoError(t, err)
		po.Depth, po.BatchesPerCopy, po.Timing = d.Slots, d.BatchesPerCopy, true
		pf, err = prefetch.New(compute, ld, po)
		require.NoError(t, err)
		defer func() {
			require.NoError(t, compute.Close())
			require.NoError(t, dev.Close())
		}()
	}
	var others sync.WaitGroup
	start := time.Now()
	r, err := pf.Open(t.Context())
	require.NoError(t, err)
	next := r.Next
	if p.Released != nil {
		next = r.WaitNext
	}
	for i := 0; ; i++ {
		b, err := next(t.Context())
		if errors.Is(err, prefetch.ErrEpochEnd) {
			break
		}
		require.NoError(t, err)
		j.delivered = append(j.delivered, time.Since(start))
		if p.Device != nil {
			require.NoError(t, cpuSpin(b.Stream(), p.Device.Step(i)))
		}
		if p.Released != nil {
			others.Go(func() {
				time.Sleep(p.Released(i))
				b.Release()
			})
		}
		if p.Device != nil && p.Device.Synchronize {
			require.NoError(t, compute.Synchronize(t.Context()))
		}
		time.Sleep(p.Body(i))
		if p.Released == nil {
			b.Release()
		}
	}
	j.ended = time.Since(start)
	others.Wait()
	if compute != nil {
		require.NoError(t, compute.Synchronize(t.Context()))
	}
	j.stats = pf.Stats()
	require.NoError(t, r.Close())
	require.NoError(t, pf.Close())
	return j
}

// compare says how what a real pipeline does differs from what the model says that it must.
func compare(t *testing.T, p waitmodel.Pipeline) error {
	t.Helper()
	var errs []error
	differ := func(what string, want, got any) {
		if !reflect.DeepEqual(want, got) {
			errs = append(errs, fmt.Errorf("%s: want %v, got %v", what, want, got))
		}
	}
	synctest.Test(t, func(t *testing.T) {
		want, got := waitmodel.Run(p), travel(t, p)
		var delivered, copied, computed []time.Duration
		for _, b := range want.Times {
			delivered = append(delivered, b.Delivered)
			if p.Device != nil {
				copied, computed = append(copied, b.Copied), append(computed, b.Computed)
			}
		}
		differ("batches delivered", delivered, got.delivered)
		differ("the end", want.Ended, got.ended)
		differ("copies done", copied, got.copied)
		differ("steps done", computed, got.computed)
		s := got.stats
		differ("WaitProducer", want.WaitProducer, s.WaitProducer)
		differ("WaitOrder", want.WaitOrder, s.WaitOrder)
		differ("WaitDevice", want.WaitDevice, s.WaitDevice)
		differ("WaitRelease", want.WaitRelease, s.WaitRelease)
		differ("Body", want.Body, s.Body)
		differ("WaitSlot", want.WaitSlot, s.WaitSlot)
		differ("uploads", int64(want.Uploads), s.Uploads)
		differ("CopyTime", want.CopyTime, s.CopyTime)
		differ("WaitCopy", want.WaitCopy, s.WaitCopy)
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
					for _, kind := range []string{"", "synchronize", "blocking"} {
						if depth == 0 && kind != "" {
							continue
						}
						p := waitmodel.Pipeline{Samples: 12, Batch: 1, Workers: workers, HostSlots: slots, Read: same(3 * ms), Body: same(2 * ms)}
						if depth > 0 {
							p.Device = &waitmodel.Device{Slots: depth, BatchesPerCopy: 1, Step: same(4 * ms),
								Copy:        func(rows int) time.Duration { return time.Duration(rows) * 2 * ms },
								Synchronize: kind == "synchronize", Blocking: kind == "blocking"}
						}
						slow(&p)
						require.NoError(t, compare(t, p), "workers=%d slots=%d depth=%d slow=%s %s", workers, slots, depth, name, kind)
					}
				}
			}
		}
	}
}

func TestWaitsAreTheModels(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		coincide := rapid.Bool().Draw(rt, "whole milliseconds")
		// some are n durations, of up to most milliseconds.
		some := func(name string, n int, most ...int) func(int) time.Duration {
			limit := rapid.SampledFrom(most).Draw(rt, name+" up to")
			random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, name), 0))
			all := make([]time.Duration, n)
			for i := range all {
				if all[i] = time.Duration(random.Int64N(int64(limit)*int64(ms) + 1)); coincide {
					all[i] = all[i].Round(ms)
				}
			}
			return func(i int) time.Duration { return all[i] }
		}
		n := rapid.IntRange(1, 20).Draw(rt, "batches")
		p := waitmodel.Pipeline{
			Samples: n, Batch: 1, Workers: rapid.IntRange(1, 4).Draw(rt, "workers"), HostSlots: rapid.IntRange(1, 5).Draw(rt, "host slots"),
			Read: some("read", n, 0, 1, 50, 500), Body: some("body", n, 0, 1, 50, 500),
		}
		if !coincide && rapid.Bool().Draw(rt, "released by another") {
			p.Released = some("released", n, 1, 50, 500)
		}
		if rapid.Bool().Draw(rt, "device") {
			perRow := some("copy", 1, 0, 1, 50, 500)(0)
			p.Device = &waitmodel.Device{
				Slots: rapid.IntRange(1, 4).Draw(rt, "depth"), BatchesPerCopy: 1, Step: some("step", n, 0, 1, 50, 500),
				Copy:        func(rows int) time.Duration { return time.Duration(rows) * perRow },
				Synchronize: rapid.Bool().Draw(rt, "synchronize"), Blocking: rapid.Bool().Draw(rt, "blocking"),
			}
		}
		require.NoError(rt, compare(t, p))
	})
}
