package prefetch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
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

// stages is a card on which every copy takes a time of its direction.
func stages(in, out time.Duration, computeEngines int) *cpu.Model {
	return &cpu.Model{ComputeEngines: computeEngines, CopyTime: func(way cpu.Direction, _ int64) time.Duration {
		return map[cpu.Direction]time.Duration{cpu.H2D: in, cpu.D2H: out}[way]
	}}
}

// echo is a step that takes a while and gives the batch back.
func (r *rig) echo(busy func(prefetch.Position) time.Duration) prefetch.Step {
	return func(b prefetch.Batch, out prefetch.Fields) error {
		if d := busy(b.Position()); d > 0 {
			if err := r.spin(b.Stream(), d); err != nil {
				return err
			}
		}
		for _, name := range []string{"index", "bytes"} {
			if err := b.Stream().CopyD2D(out.Field(name).View, b.Field(name).View); err != nil {
				return err
			}
		}
		return nil
	}
}

func always(d time.Duration) func(prefetch.Position) time.Duration {
	return func(prefetch.Position) time.Duration { return d }
}

// got is a copy of a result, for verify.
func got(res prefetch.Result) reading {
	return reading{at: res.Position(), rows: res.Len(), valid: res.Valid(),
		index: bytes.Clone(res.Field("index").Bytes), bytes: bytes.Clone(res.Field("bytes").Bytes)}
}

func TestResultsComeBackBesideUploadAndCompute(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		in, compute, out time.Duration
		batches          int
		po               prefetch.Options
		engines          int
		want             time.Duration
	}{
		{10 * ms, 30 * ms, 10 * ms, 3, prefetch.Options{}, 1, 110 * ms},
		{10 * ms, 30 * ms, 10 * ms, 10, prefetch.Options{}, 1, 320 * ms},
		{10 * ms, 30 * ms, 10 * ms, 100, prefetch.Options{}, 1, 3020 * ms},
		{30 * ms, 10 * ms, 10 * ms, 10, prefetch.Options{}, 1, 320 * ms},
		{10 * ms, 10 * ms, 30 * ms, 10, prefetch.Options{}, 1, 320 * ms},
		{10 * ms, 30 * ms, 10 * ms, 10, prefetch.Options{Depth: 1}, 1, 410 * ms}, // copy and compute in turn
		// Two streams on two engines: compute of two batches overlaps, and a pair takes 30.
		{10 * ms, 30 * ms, 10 * ms, 10, prefetch.Options{Depth: 4, Streams: prefetch.Streams{Compute: 2, RoundRobin: true}}, 2, 180 * ms},
	} {
		t.Run(fmt.Sprintf("%v/%v/%v/batches=%d/depth=%d/streams=%d", c.in, c.compute, c.out, c.batches, c.po.Depth, c.po.Streams.Compute), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, canary{n: c.batches, width: 8}, cpu.Options{Model: stages(c.in, c.out, c.engines)},
					1, loader.Options{Workers: 2}, c.po)
				start := time.Now()
				n := 0
				for res, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: r.data.Fields()}, r.echo(always(c.compute))) {
					require.NoError(t, err)
					require.Equal(t, n, res.Position().Batch)
					require.NoError(t, r.verify(got(res)))
					n++
				}
				require.Equal(t, c.batches, n)
				require.Equal(t, c.want, time.Since(start))
				r.close()
			})
		})
	}
}

func TestFourStagesSideBySide(t *testing.T) {
	const ms = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		data := canary{n: 10, width: 8}
		r := newRig(t, data, cpu.Options{Model: stages(10*ms, 10*ms, 2)}, 1, loader.Options{Workers: 2},
			prefetch.Options{Transform: passOn(cpuSpin, 20*ms, data)})
		start := time.Now()
		for res, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: data.Fields()}, r.echo(always(30*ms))) {
			require.NoError(t, err)
			require.NoError(t, r.verify(got(res)))
		}
		require.Equal(t, (10+20+10)*ms+10*30*ms, time.Since(start), "the longest stage, and the others once")
		r.close()
	})
}

func TestResultsAsTheyFinish(t *testing.T) {
	const ms = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 8, width: 8}, cpu.Options{Model: stages(0, 0, 2)}, 1, loader.Options{Workers: 2},
			prefetch.Options{Depth: 8, Streams: prefetch.Streams{Compute: 2}})
		slowFirst := func(at prefetch.Position) time.Duration {
			if at.Batch == 0 {
				return 100 * ms
			}
			return 10 * ms
		}
		var order []int
		for res, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: r.data.Fields(), AsFinished: true, Slots: 8}, r.echo(slowFirst)) {
			require.NoError(t, err)
			require.NoError(t, r.verify(got(res)))
			order = append(order, res.Position().Batch)
			if len(order) == 1 {
				require.NotZero(t, order[0])
				require.Zero(t, r.pf.State().Position, "batch 0 is not delivered yet")
			}
		}
		require.NotEqual(t, 0, order[0])
		slices.Sort(order)
		require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7}, order)
		require.Equal(t, 1, r.pf.Epoch())
		r.close()
	})
}

func TestLeavingAMapKeepsThePositionBehindTheLastResult(t *testing.T) {
	for _, per := range []int{1, 3} {
		for stop := 1; stop <= 12; stop++ {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, canary{n: 23, width: 8}, adversarial(2*time.Millisecond), 2, loader.Options{Shuffle: true, Workers: 2, Epochs: 2},
					prefetch.Options{BatchesPerCopy: per, Streams: prefetch.Streams{Compute: 2}})
				next := 0
				for turn := 0; r.pf.Epoch() < 2; turn++ {
					n := 0
					for res, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: r.data.Fields()}, r.echo(always(3*time.Millisecond))) {
						require.NoError(t, err)
						require.Equal(t, prefetch.Position{Epoch: next / 12, Batch: next % 12, First: int64(next % 12 * 2)}, res.Position())
						require.NoError(t, r.verify(got(res)))
						next++
						if n++; n == stop {
							break
						}
					}
				}
				require.Equal(t, 24, next)
				r.close()
			})
		}
	}
}

func TestAStepsErrorComesBehindTheResultsBeforeIt(t *testing.T) {
	boom := errors.New("boom")
	for name, fail := range map[string]func() error{"error": func() error { return boom }, "panic": func() error { panic(boom) }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, canary{n: 20, width: 8}, adversarial(time.Millisecond), 2, loader.Options{Workers: 2}, prefetch.Options{})
				echo := r.echo(always(5 * time.Millisecond))
				var results, failures int
				for _, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: r.data.Fields()}, func(b prefetch.Batch, out prefetch.Fields) error {
					if b.Position().Batch == 6 {
						return fail()
					}
					return echo(b, out)
				}) {
					if err == nil {
						results++
						continue
					}
					failures++
					require.ErrorIs(t, err, boom)
					var step *prefetch.StageError
					require.ErrorAs(t, err, &step)
					require.Equal(t, 6, step.Position.Batch)
				}
				require.Equal(t, 6, results)
				require.Equal(t, 1, failures)
				require.EqualValues(t, 12, r.pf.State().Position)
				for res, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: r.data.Fields()}, echo) {
					require.NoError(t, err)
					require.GreaterOrEqual(t, res.Position().Batch, 6)
				}
				r.close()
			})
		})
	}
}

func TestATransformsErrorHasItsPlace(t *testing.T) {
	boom := errors.New("boom")
	synctest.Test(t, func(t *testing.T) {
		data := canary{n: 20, width: 8}
		pass := passOn(cpuSpin, time.Millisecond, data)
		failing := &prefetch.Transform{Out: pass.Out, Apply: func(s *device.Stream, out, in prefetch.Fields) error {
			if in.Position().Batch == 4 {
				return boom
			}
			return pass.Apply(s, out, in)
		}}
		r := newRig(t, data, adversarial(time.Millisecond), 2, loader.Options{Workers: 2}, prefetch.Options{Transform: failing})
		n := 0
		for _, err := range r.pf.Batches(t.Context()) {
			if err == nil {
				n++
				continue
			}
			require.ErrorIs(t, err, boom)
			var where *prefetch.StageError
			require.ErrorAs(t, err, &where)
			require.Equal(t, 4, where.Position.Batch)
		}
		require.Equal(t, 4, n)
		r.close()
	})
}

func TestEveryEdgeOfTheWayBackIsNeeded(t *testing.T) {
	const ms = time.Millisecond
	run := func(t *testing.T, in, compute, out time.Duration, rule devicetest.Rule) (fired int64, failed error) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, canary{n: 16, width: 32}, cpu.Options{Model: stages(in, out, 1), Adversary: &cpu.Adversary{Poison: true, LateRead: true}},
				1, loader.Options{Workers: 2}, prefetch.Options{})
			armed := r.tap.Arm(rule)
			for res, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: r.data.Fields(), Slots: 2}, r.echo(always(compute))) {
				require.NoError(t, err)
				failed = errors.Join(failed, r.verify(got(res)))
			}
			fired = armed.Fired()
			require.NoError(t, r.dev.Synchronize(context.Background()))
			r.close()
			if rule.Swallow {
				require.NotEmpty(t, r.orders.found())
			}
		})
		return fired, failed
	}
	for _, e := range []struct {
		edge
		compute, out time.Duration
	}{
		{edge{name: "f/Record(written)", op: devicetest.Record, event: "written", stream: "compute"}, 6 * ms, 2 * ms},
		{edge{name: "f/Wait(written)", op: devicetest.Wait, event: "written", stream: "download"}, 6 * ms, 2 * ms},
		{edge{name: "g/Record(fetched)", op: devicetest.Record, event: "fetched", stream: "download"}, 2 * ms, 6 * ms},
		{edge{name: "g/Synchronize(fetched)", op: devicetest.SynchronizeEvent, event: "fetched"}, 2 * ms, 6 * ms},
	} {
		_, err := run(t, ms, e.compute, e.out, devicetest.Rule{Op: e.op, Event: "no such event"})
		require.NoError(t, err)
		for k := int64(1); k <= 12; k++ {
			t.Run(fmt.Sprintf("%s/k=%d", e.name, k), func(t *testing.T) {
				fired, err := run(t, ms, e.compute, e.out, devicetest.Rule{Op: e.op, Event: e.event, Stream: e.stream, Nth: k, Swallow: true})
				require.EqualValues(t, 1, fired)
				require.Error(t, err)
			})
		}
	}
}

func TestMapRefusesWhatItCannotDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ld, err := loader.New(canary{n: 4, width: 4}, 2, plain)
		require.NoError(t, err)
		host, err := prefetch.NewHost(ld, prefetch.Options{})
		require.NoError(t, err)
		for _, err := range host.Map(t.Context(), prefetch.Output{Fields: canary{}.Fields()}, nil) {
			require.ErrorContains(t, err, "needs a device")
		}
		require.NoError(t, host.Close())
		r := newRig(t, canary{n: 4, width: 4}, cpu.Options{}, 2, plain, prefetch.Options{})
		for _, err := range r.pf.Map(t.Context(), prefetch.Output{Slots: -1}, nil) {
			require.ErrorContains(t, err, "Output.Slots is -1")
			require.ErrorContains(t, err, "Output.Fields is empty")
		}
		r.close()
	})
}

func TestHostConsumersHaveTransformsToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := canary{n: 11, width: 5}
		ld, err := loader.New(data, 3, loader.Options{Shuffle: true, Workers: 2, Epochs: 2})
		require.NoError(t, err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{Transform: passOn(cpuSpin, time.Millisecond, data), Memory: prefetch.Memory{HostSlots: 2}})
		require.NoError(t, err)
		n := 0
		for pf.Epoch() < 2 {
			for b, err := range pf.Batches(t.Context()) {
				require.NoError(t, err)
				order := ld.Order(b.Position().Epoch)
				for row := range b.Len() {
					index := int(order.At(b.Position().First + int64(row)))
					want := make([]byte, 5)
					fill(want, index)
					require.Equal(t, want, b.Field("bytes").Bytes[row*5:][:5])
				}
				n += b.Len()
			}
		}
		require.Equal(t, 22, n)
		require.NoError(t, pf.Close())
	})
}
