package cpu_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
)

// stages submits batches of in, compute, out to as many streams as it is told and
// returns the time until all is done.
func stages(t *testing.T, m cpu.Model, batches, streams int, compute time.Duration) (took time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, cpu.Options{Model: &m})
		all := make([]*device.Stream, streams)
		for i := range all {
			all[i] = r.stream(fmt.Sprint(i))
		}
		for i := range batches {
			s := all[i%streams]
			r.in(s)
			r.compute(s, compute)
			r.out(s)
		}
		require.Zero(t, time.Since(r.opened), "submitting must not wait")
		r.do(r.Synchronize(background))
		took = time.Since(r.opened)
		r.close()
	})
	return took
}

func TestThreeStages(t *testing.T) {
	apart, shared := *fixed(10*ms, 10*ms), *fixed(10*ms, 10*ms)
	shared.SharedCopyEngines = true
	two := apart
	two.CopyEngines, two.ComputeEngines = 2, 2
	for n := 1; n <= 12; n++ {
		d := func(perBatch, once int) time.Duration { return time.Duration(perBatch*n+once) * ms }
		require.Equal(t, d(50, 0), stages(t, apart, n, 1, 30*ms), "one stream serialises, %d batches", n)
		require.Equal(t, d(30, 20), stages(t, apart, n, n, 30*ms), "compute is the bottleneck, %d batches", n)
		require.Equal(t, d(10, 15), stages(t, apart, n, n, 5*ms), "copies are the bottleneck, %d batches", n)
		require.Equal(t, d(30, 20), stages(t, shared, n, n, 30*ms), "one copy engine suffices, %d batches", n)
		if n > 1 {
			require.Equal(t, d(20, 0), stages(t, shared, n, n, 5*ms), "one copy engine for both directions, %d batches", n)
		}
		if n%2 == 0 {
			require.Equal(t, d(15, 20), stages(t, two, n, n, 30*ms), "two engines of each kind, %d batches", n)
		}
	}
}

// job is a batch of the pipeline: when the host submits it, and how long its copy
// and its kernel take.
type job struct{ submitted, copy, compute time.Duration }

// pipeline runs jobs through a ring of depth slots on the modelled device, by the
// protocol with its edges, and returns when each job's kernel was done.
func pipeline(t *testing.T, jobs []job, depth int) []time.Duration {
	copies := make(map[int64]time.Duration) // by size: each job has its own
	for i, j := range jobs {
		copies[int64(i+1)] = j.copy
	}
	m := cpu.Model{CopyTime: func(_ cpu.Direction, bytes int64) time.Duration { return copies[bytes] }}
	r := open(t, cpu.Options{Model: &m})
	n := int64(len(jobs) + 1)
	buf, host := r.buffer(n), r.hostBuffer(n)
	up, compute, origin := r.stream("up"), r.stream("compute"), r.event("origin")
	r.do(up.Record(origin))
	ready, consumed := make([]*device.Event, depth), make([]*device.Event, depth)
	for i := range depth {
		ready[i], consumed[i] = r.event(fmt.Sprint("ready", i)), r.event(fmt.Sprint("consumed", i))
	}
	ends := make([]*device.Event, len(jobs))
	for i, j := range jobs {
		time.Sleep(j.submitted - time.Since(r.opened))
		slot := i % depth
		if i >= depth {
			r.do(up.Wait(consumed[slot]))
		}
		bytes := int64(i + 1)
		r.do(up.CopyH2D(buf.Slice(0, bytes), host[:bytes]))
		r.do(up.Record(ready[slot]))
		r.do(compute.Wait(ready[slot]))
		r.compute(compute, j.compute)
		r.do(compute.Record(consumed[slot]))
		ends[i] = r.event("end")
		r.do(compute.Record(ends[i]))
	}
	times := make([]time.Duration, len(jobs))
	for i, e := range ends {
		r.do(e.Synchronize(background))
		var err error
		times[i], err = device.Elapsed(origin, e)
		r.do(err)
	}
	if len(jobs) > 0 {
		require.Equal(t, times[len(jobs)-1], max(jobs[len(jobs)-1].submitted, time.Since(r.opened)), "the clock agrees with the events")
	}
	r.close()
	return times
}

// reference is the same schedule in three lines of arithmetic.
func reference(jobs []job, depth int) []time.Duration {
	times := make([]time.Duration, len(jobs))
	var copied, computed time.Duration
	for i, j := range jobs {
		copied = max(copied, j.submitted)
		if i >= depth {
			copied = max(copied, times[i-depth])
		}
		copied += j.copy
		computed = max(computed, copied) + j.compute
		times[i] = computed
	}
	return times
}

func TestSlots(t *testing.T) {
	jobs := slices.Repeat([]job{{0, 3 * ms, 4 * ms}}, 100)
	for depth, want := range map[int]time.Duration{1: 700 * ms, 2: 403 * ms, 3: 403 * ms, 8: 403 * ms} {
		synctest.Test(t, func(t *testing.T) {
			times := pipeline(t, jobs, depth)
			require.Equal(t, want, times[99], "depth %d", depth)
			require.Equal(t, reference(jobs, depth), times)
		})
	}
}

func TestScheduleIsTheReference(t *testing.T) {
	duration := rapid.Custom(func(rt *rapid.T) time.Duration {
		return time.Duration(rapid.IntRange(0, 5).Draw(rt, "ms"))*ms + time.Duration(rapid.IntRange(0, 1).Draw(rt, "ns"))
	})
	anyJob := rapid.Custom(func(rt *rapid.T) job {
		return job{submitted: duration.Draw(rt, "pause"), copy: duration.Draw(rt, "copy"), compute: duration.Draw(rt, "compute")}
	})
	rapid.Check(t, func(rt *rapid.T) {
		depth := rapid.SampledFrom([]int{1, 2, 3, 8}).Draw(rt, "depth")
		jobs := rapid.SliceOfN(anyJob, 0, 30).Draw(rt, "jobs")
		for i := 1; i < len(jobs); i++ { // pauses to times
			jobs[i].submitted += jobs[i-1].submitted
		}
		var times []time.Duration
		synctest.Test(t, func(t *testing.T) { times = pipeline(t, jobs, depth) })
		require.Equal(rt, reference(jobs, depth), times)
	})
}

// Goroutines that submit at one instant, in whatever order the scheduler runs
// them, are served in the order of their calls; here each call waits for its
// turn, so that the order is known.
func TestTiesResolveByOrderOfSubmission(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			const n = 8
			r := open(t, cpu.Options{Model: fixed(ms, 0)})
			order := rand.New(rand.NewPCG(seed, 0)).Perm(n)
			turns := make([]chan struct{}, n+1)
			for i := range turns {
				turns[i] = make(chan struct{})
			}
			events := make([]*device.Event, n)
			var wg sync.WaitGroup
			for turn, i := range order {
				s := r.stream(fmt.Sprint(i))
				events[i] = r.event(fmt.Sprint(i))
				wg.Go(func() {
					<-turns[turn]
					r.in(s)
					r.do(s.Record(events[i]))
					close(turns[turn+1])
				})
			}
			close(turns[0])
			wg.Wait()
			require.Zero(t, time.Since(r.opened))
			for turn, i := range order {
				r.at(time.Duration(turn+1)*ms, events[i])
			}
			r.close()
		})
	}
}

// An operation becomes ready at the very instant at which an engine gets free and
// another one, submitted earlier, becomes ready too: the earlier one wins, although
// the host submits it only when it sees the instant.
func TestInstantSettlesBeforeEnginesAreGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, cpu.Options{Model: fixed(ms, 0)})
		first, second, third := r.stream("first"), r.stream("second"), r.stream("third")
		a, b, c := r.event("a"), r.event("b"), r.event("c")
		r.in(first)
		r.do(first.Record(a))
		r.do(a.Synchronize(background))
		// It is 1 ms now, and the engine is free. Both are ready now.
		r.in(second)
		r.in(third)
		r.do(third.Record(c), second.Record(b))
		r.at(2*ms, b)
		r.at(3*ms, c)
		r.close()
	})
}

func TestPriorityAmongReadyKernels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, cpu.Options{Model: fixed(ms, 0)})
		low, high := r.stream("low"), r.streamWith(device.StreamOptions{Name: "high", Priority: -1})
		l, h := r.event("l"), r.event("h")
		for _, x := range []struct {
			s *device.Stream
			e *device.Event
		}{{low, l}, {high, h}} {
			r.compute(x.s, 5*ms)
			r.do(x.s.Record(x.e))
		}
		r.at(5*ms, h)
		r.at(10*ms, l)
		r.close()
	})
}

func TestLinkTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cpu.Model{
			H2D:           cpu.Link{BytesPerSecond: 1e9, Latency: 10 * time.Microsecond},
			D2H:           cpu.Link{BytesPerSecond: 2e9},
			D2D:           cpu.Link{BytesPerSecond: 8e9},
			KernelLatency: 3 * time.Microsecond,
			KernelTime:    func(l *device.Launch) time.Duration { return time.Duration(l.Args.Len()) * time.Microsecond },
		}
		r := open(t, cpu.Options{Model: &m})
		s, v, h := r.stream("s"), r.buffer(16_000), r.hostBuffer(16_000)
		marks := []*device.Event{r.event("0")}
		step := func(err error) {
			e := r.event("mark")
			r.do(err, s.Record(e))
			marks = append(marks, e)
		}
		r.do(s.Record(marks[0]))
		l := &device.Launch{Kernel: &device.Kernel{Name: "k", Go: func(*device.Args) {}}, Grid: [3]uint32{1}, Block: [3]uint32{1}}
		l.Args.AddUint32(1)
		l.Args.AddUint32(2)
		step(s.CopyH2D(v, h))
		step(s.CopyD2H(h, v))
		step(s.CopyD2D(v, v))
		step(s.Memset(v, 0))
		step(s.Launch(l))
		step(s.Launch(cpu.Busy(time.Second)))
		r.do(s.Synchronize(background))
		var took []time.Duration
		for i := range marks[1:] {
			d, err := device.Elapsed(marks[i], marks[i+1])
			r.do(err)
			took = append(took, d)
		}
		us := time.Microsecond
		require.Equal(t, []time.Duration{26 * us, 8 * us, 2 * us, 2 * us, 5 * us, time.Second + 3*us}, took)
		r.close()
	})
}

// A copy from memory that isn't pinned holds the caller up, so that nothing
// overlaps it.
func TestPageableMemoryBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := fixed(ms, ms)
		m.Pageable.Latency = 5 * ms
		r := open(t, cpu.Options{Model: m})
		s, other := r.stream("s"), r.stream("other")
		r.compute(s, 10*ms)
		r.in(s)
		require.Zero(t, time.Since(r.opened))
		r.do(s.CopyH2D(r.buf, make([]byte, 256)))
		require.Equal(t, 16*ms, time.Since(r.opened))
		r.do(other.CopyD2H(make([]byte, 256), r.buf))
		require.Equal(t, 21*ms, time.Since(r.opened))
		pageable, err := r.AllocHost(256, device.HostOptions{Pageable: true})
		r.do(err, s.CopyH2D(r.buf, pageable.Bytes()), pageable.Close())
		require.Equal(t, 26*ms, time.Since(r.opened))
		r.close()
	})
}

func TestHostFunctionTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, cpu.Options{Model: fixed(ms, 0)})
		s, other, e, f := r.stream("s"), r.stream("other"), r.event("e"), r.event("f")
		r.in(s)
		r.do(s.HostFunc(func() { time.Sleep(7 * ms) }))
		r.in(s)
		r.do(s.Record(e))
		r.in(other)
		r.do(other.Record(f))
		r.at(2*ms, f)
		r.at(9*ms, e)
		r.close()
	})
}

// Devices have clocks and engines of their own.
func TestTwoDevices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rigs []*rig
		for i := range 2 {
			r := open(t, cpu.Options{Index: i, Model: fixed(time.Duration(i+1)*ms, 0)})
			for range 10 {
				r.in(r.stream("s"))
			}
			rigs = append(rigs, r)
		}
		require.Equal(t, []string{"cpu", "cpu:1"}, []string{rigs[0].Name(), rigs[1].Name()})
		for i, r := range rigs {
			r.do(r.Synchronize(background))
			require.Equal(t, time.Duration(i+1)*10*ms, time.Since(r.opened))
			r.close()
		}
	})
}

// In real time the timers come late, yet the times computed don't drift: each
// operation of a queue starts when the one before it ended.
func TestModelInRealTime(t *testing.T) {
	var spans []cpu.Span
	r := open(t, cpu.Options{Model: fixed(300*time.Microsecond, 0), Trace: func(s cpu.Span) { spans = append(spans, s) }})
	s, start, end := r.stream("s"), r.event("start"), r.event("end")
	latch := make(chan struct{})
	r.do(s.HostFunc(func() { <-latch }), s.Record(start))
	for range 20 {
		r.in(s)
		r.compute(s, 100*time.Microsecond)
	}
	r.do(s.Record(end))
	close(latch)
	r.do(end.Synchronize(background))
	took, err := device.Elapsed(start, end)
	r.do(err)
	require.Equal(t, 8*ms, took)
	require.Len(t, spans, 41)
	for i := range spans[1:] {
		require.Equal(t, spans[i].End, spans[i+1].Start)
	}
	require.GreaterOrEqual(t, time.Since(r.opened), took)
	r.close()
}

func TestTraceIsTheSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var spans []cpu.Span
		m := fixed(10*ms, 10*ms)
		m.SharedCopyEngines = true
		r := open(t, cpu.Options{Model: m, Trace: func(s cpu.Span) {
			mu.Lock()
			defer mu.Unlock()
			spans = append(spans, s)
		}})
		s := r.stream("s")
		r.in(s)
		r.compute(s, 30*ms)
		r.out(s)
		r.do(s.Synchronize(background))
		require.Equal(t, []cpu.Span{
			{Op: "CopyH2D", Stream: "s", Engine: "copy", Bytes: 256, Start: 0, End: 10 * ms},
			{Op: "Launch", Kernel: "busy", Stream: "s", Engine: "compute", Start: 10 * ms, End: 40 * ms},
			{Op: "CopyD2H", Stream: "s", Engine: "copy", Bytes: 256, Start: 40 * ms, End: 50 * ms},
		}, spans)
		r.close()
	})
}

// A device that is left behind with work in flight leaves no goroutine behind:
// the bubble would complain.
func TestNothingLivesWithoutWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, cpu.Options{Model: fixed(time.Hour, 0)})
		r.in(r.stream("s"))
		plain := open(t, cpu.Options{})
		s := plain.stream("s")
		plain.in(s)
		plain.do(s.Synchronize(background))
	})
}

// The preset is the measurement it was made from, to 3%.
func TestH200FollowsItsMeasurements(t *testing.T) {
	m := cpu.H200()
	for kib, rate := range map[int64]float64{64: 16e9, 256: 34e9, 1 << 10: 48e9, 4 << 10: 53e9, 64 << 10: 55.5e9} {
		bytes := kib << 10
		got := float64(bytes) / m.H2D.Time(bytes).Seconds()
		require.InEpsilon(t, rate, got, 0.03, "%d KiB", kib)
	}
}
