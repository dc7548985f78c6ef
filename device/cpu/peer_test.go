package cpu_test

import (
	"fmt"
	"runtime/debug"
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

// linked is a model whose copies in and to other devices take the given times.
func linked(h2d, peer time.Duration) *cpu.Model {
	return &cpu.Model{H2D: cpu.Link{Latency: h2d}, Peer: cpu.Link{Latency: peer}}
}

// openAll opens devices of one model, or as plain ones.
func openAll(t *testing.T, n int, o cpu.Options) []*rig {
	rigs := make([]*rig, n)
	for i := range rigs {
		o.Index = i
		rigs[i] = open(t, o)
	}
	return rigs
}

func closeAll(rigs []*rig) {
	for _, r := range rigs {
		r.do(r.Synchronize(background))
	}
	for _, r := range rigs {
		r.close()
	}
}

// since is the modelled time between two events of one device.
func (r *rig) since(origin, e *device.Event) time.Duration {
	r.t.Helper()
	r.do(e.Synchronize(background))
	d, err := device.Elapsed(origin, e)
	r.do(err)
	return d
}

// Every device gets a chunk from the host, then passes on what it has to the next
// in a ring until all have all. Device i's chunk comes after 10·(i+1) ms, a step
// over the link takes 5.
//
//	2 devices: cpu    in 0–10, sends 10–15
//	           cpu:1  in 0–20, sends 20–25
func TestRingExchange(t *testing.T) {
	for n := 2; n <= 5; n++ {
		t.Run(fmt.Sprintf("devices=%d", n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { ringExchange(t, n) })
		})
	}
}

func ringExchange(t *testing.T, n int) {
	const chunk = 16
	rigs := make([]*rig, n)
	for i := range rigs {
		rigs[i] = open(t, cpu.Options{Index: i, Model: linked(time.Duration(i+1)*10*ms, 5*ms)})
	}
	type node struct {
		*rig
		stream *device.Stream
		origin *device.Event
		sent   []*device.Event // by step; step 0 is the copy from the host
		chunks device.View
	}
	nodes := make([]node, n)
	for i, r := range rigs {
		nodes[i] = node{rig: r, stream: r.stream("ring"), origin: r.event("origin"), chunks: r.buffer(int64(n * chunk))}
		for step := range n {
			nodes[i].sent = append(nodes[i].sent, r.event(fmt.Sprint("step ", step)))
		}
	}
	part := func(v device.View, i int) device.View { return v.Slice(int64((i+n)%n*chunk), chunk) }
	for i, x := range nodes {
		host := x.hostBuffer(chunk)
		copy(host, filled(byte(i+1), chunk))
		x.do(x.stream.Record(x.origin), x.stream.CopyH2D(part(x.chunks, i), host), x.stream.Record(x.sent[0]))
	}
	for step := 1; step < n; step++ {
		for i, x := range nodes {
			previous, next := nodes[(i+n-1)%n], nodes[(i+1)%n]
			if step > 1 {
				x.do(x.stream.Wait(previous.sent[step-1]))
			}
			x.do(x.stream.CopyPeer(part(next.chunks, i-step+1), part(x.chunks, i-step+1)), x.stream.Record(x.sent[step]))
		}
	}
	require.Zero(t, time.Since(rigs[0].opened), "submitting must not wait")

	// The same in arithmetic: a device sends when it has sent what it had before,
	// and its predecessor has sent it the next.
	times := make([]time.Duration, n)
	for i := range times {
		times[i] = time.Duration(i+1) * 10 * ms
	}
	for step := 1; step < n; step++ {
		before := slices.Clone(times)
		for i := range times {
			if step > 1 {
				times[i] = max(times[i], before[(i+n-1)%n])
			}
			times[i] += 5 * ms
		}
		for i, x := range nodes {
			require.Equal(t, times[i], x.since(x.origin, x.sent[step]), "device %d, step %d", i, step)
		}
	}
	require.Equal(t, slices.Max(times), time.Since(rigs[0].opened))
	for _, x := range nodes {
		out := make([]byte, n*chunk)
		x.do(x.stream.CopyD2H(out, x.chunks), x.stream.Synchronize(background))
		for i := range n {
			require.Equal(t, filled(byte(i+1), chunk), out[i*chunk:(i+1)*chunk])
		}
	}
	closeAll(rigs)
}

// Copies of one device's streams take turns on its link, whichever way they go;
// they hold up neither its other engines nor another device's link.
func TestALinkADevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var spans []cpu.Span
		m := linked(7*ms, 5*ms)
		here := open(t, cpu.Options{Model: m, Trace: func(s cpu.Span) {
			mu.Lock()
			defer mu.Unlock()
			spans = append(spans, s)
		}})
		there := open(t, cpu.Options{Index: 1, Model: m})
		out, back, in, far := here.stream("out"), here.stream("back"), here.stream("in"), there.stream("far")
		sent, fetched, copied, other := here.event("sent"), here.event("fetched"), here.event("copied"), there.event("other")
		v, w := here.buffer(3*256), there.buffer(3*256)
		part := func(v device.View, i int64) device.View { return v.Slice(256*i, 256) }
		here.do(out.CopyPeer(part(w, 0), part(v, 0)), out.Record(sent))
		here.do(back.CopyPeer(part(v, 1), part(w, 1)), back.Record(fetched))
		here.in(in)
		here.do(in.Record(copied))
		there.do(far.CopyPeer(part(v, 2), part(w, 2)), far.Record(other))
		there.at(5*ms, other)
		here.at(5*ms, sent)
		here.at(7*ms, copied)
		here.at(10*ms, fetched)
		require.Equal(t, []cpu.Span{
			{Op: "CopyPeer", Stream: "out", Engine: "link", Bytes: 256, Start: 0, End: 5 * ms},
			{Op: "CopyH2D", Stream: "in", Engine: "H2D", Bytes: 256, Start: 0, End: 7 * ms},
			{Op: "CopyPeer", Stream: "back", Engine: "link", Bytes: 256, Start: 5 * ms, End: 10 * ms},
		}, spans)
		closeAll([]*rig{here, there})
	})
}

// A copy takes the time of its stream's device, by the link or by CopyTime.
func TestPeerTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here := open(t, cpu.Options{Model: &cpu.Model{Peer: cpu.Link{BytesPerSecond: 256e6, Latency: ms}}})
		there := open(t, cpu.Options{Index: 1, Model: &cpu.Model{CopyTime: func(way cpu.Direction, bytes int64) time.Duration {
			require.Equal(t, "Peer 256", fmt.Sprint(way, bytes))
			return 9 * ms
		}}})
		for _, r := range []*rig{here, there} {
			s, start, end := r.stream("s"), r.event("start"), r.event("end")
			r.do(s.Record(start), s.CopyPeer(here.buf, there.buf), s.Record(end))
			want := map[*rig]time.Duration{here: ms + time.Microsecond, there: 9 * ms}[r]
			require.Equal(t, want, r.since(start, end))
		}
		closeAll([]*rig{here, there})
	})
}

// A recording's time is told on the clock of the device that waits, which may have
// been opened before or after.
func TestDevicesOpenedAtDifferentTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		early := open(t, cpu.Options{Model: linked(10*ms, 5*ms)})
		s, done := early.stream("s"), early.event("done")
		early.in(s)
		early.do(s.Record(done))
		time.Sleep(7 * ms)
		late := open(t, cpu.Options{Index: 1, Model: linked(ms, ms)})
		r, origin, fetched := late.stream("r"), late.event("origin"), late.event("fetched")
		late.do(r.Record(origin), r.Wait(done), r.CopyPeer(late.buf, early.buf), r.Record(fetched))
		back := early.event("back")
		early.do(s.Wait(fetched), s.CopyPeer(late.buf, early.buf), s.Record(back))
		require.Equal(t, 4*ms, late.since(origin, fetched), "3 until it is 10 ms, and 1 for the copy")
		require.Equal(t, 6*ms, early.since(done, back), "from 11 to 16 ms")
		late.do(r.Wait(done), r.Record(fetched)) // of a recording older than much of the stream
		require.Equal(t, 9*ms, late.since(origin, fetched))
		closeAll([]*rig{early, late})
	})
}

// What another device's event makes ready at an instant competes with what gets
// ready here at that instant by order of submission, whoever hears of it first.
func TestAnInstantSettlesAcrossDevices(t *testing.T) {
	for _, first := range []string{"here", "there"} {
		for _, foreign := range []bool{true, false} {
			t.Run(fmt.Sprintf("opened first %s, foreign first %v", first, foreign), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					rigs := openAll(t, 2, cpu.Options{Model: linked(ms, ms)})
					here, there := rigs[0], rigs[1]
					if first == "there" {
						here, there = there, here
					}
					own, other := here.event("own"), there.event("other")
					for r, e := range map[*rig]*device.Event{here: own, there: other} {
						s := r.stream("s")
						r.in(s)
						r.do(s.Record(e))
					}
					order := []*device.Event{other, own}
					if !foreign {
						slices.Reverse(order)
					}
					var ends []*device.Event
					for _, e := range order {
						s, end := here.stream("waiting"), here.event("end")
						here.do(s.Wait(e))
						here.in(s)
						here.do(s.Record(end))
						ends = append(ends, end)
					}
					here.at(2*ms, ends[0])
					here.at(3*ms, ends[1])
					closeAll(rigs)
				})
			})
		}
	}
}

// stageTimes are how long each microbatch takes on each device of a pipeline: over
// the link that brings it, and to compute.
type stageTimes struct{ link, compute time.Duration }

// Microbatches go through a pipeline of devices, each fetching from the one before;
// the times are those of a few lines of arithmetic.
func TestPipelineOfDevices(t *testing.T) {
	duration := rapid.Custom(func(rt *rapid.T) time.Duration {
		return time.Duration(rapid.IntRange(0, 4).Draw(rt, "ms"))*ms + time.Duration(rapid.IntRange(0, 1).Draw(rt, "ns"))
	})
	stage := rapid.Custom(func(rt *rapid.T) stageTimes {
		return stageTimes{duration.Draw(rt, "link"), duration.Draw(rt, "compute")}
	})
	rapid.Check(t, func(rt *rapid.T) {
		stages := rapid.SliceOfN(stage, 2, 4).Draw(rt, "stages")
		batches := rapid.IntRange(1, 12).Draw(rt, "batches")
		var got [][]time.Duration
		synctest.Test(t, func(t *testing.T) { got = stagePipeline(t, stages, batches) })

		want := make([][]time.Duration, len(stages))
		for i, x := range stages {
			var fetched, computed time.Duration
			for b := range batches {
				if i > 0 {
					fetched = max(fetched, want[i-1][b]) + x.link
				}
				computed = max(computed, fetched) + x.compute
				want[i] = append(want[i], computed)
			}
		}
		require.Equal(rt, want, got)
	})
}

// stagePipeline returns when each device had computed each microbatch.
func stagePipeline(t *testing.T, stages []stageTimes, batches int) [][]time.Duration {
	var rigs []*rig
	times := make([][]time.Duration, len(stages))
	ends := make([][]*device.Event, len(stages))
	origins := make([]*device.Event, len(stages))
	landing := make([]device.View, len(stages))
	for i, x := range stages {
		r := open(t, cpu.Options{Index: i, Model: linked(0, x.link)})
		rigs = append(rigs, r)
		link, compute := r.stream("link"), r.stream("compute")
		origins[i], landing[i] = r.event("origin"), r.buffer(int64(batches*slotBytes))
		r.do(compute.Record(origins[i]))
		for b := range batches {
			if i > 0 {
				fetched := r.event("fetched")
				slot := func(v device.View) device.View { return v.Slice(int64(b*slotBytes), slotBytes) }
				r.do(link.Wait(ends[i-1][b]), link.CopyPeer(slot(landing[i]), slot(landing[i-1])))
				r.do(link.Record(fetched), compute.Wait(fetched))
			}
			end := r.event("computed")
			r.compute(compute, x.compute)
			r.do(compute.Record(end))
			ends[i] = append(ends[i], end)
		}
	}
	for i, r := range rigs {
		for _, e := range ends[i] {
			times[i] = append(times[i], r.since(origins[i], e))
		}
	}
	closeAll(rigs)
	return times
}

// Devices set each other off along a chain of any length, without a stack of that
// depth.
func TestALongChainBetweenDevices(t *testing.T) {
	const laps, stack = 20_000, 64 << 10
	for name, o := range map[string]cpu.Options{"plain": {}, "modelled": {Model: &cpu.Model{}}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rigs := openAll(t, 3, o)
				var streams []*device.Stream
				var events []*device.Event
				for _, r := range rigs {
					streams, events = append(streams, r.stream("s")), append(events, r.event("e"))
				}
				latch := make(chan struct{})
				last := len(rigs) - 1
				rigs[0].do(streams[0].HostFunc(func() { <-latch }))
				for range laps {
					for i, r := range rigs {
						r.do(streams[i].Record(events[i]), streams[(i+1)%len(rigs)].Wait(events[i]))
					}
				}
				rigs[0].do(streams[0].Record(events[0]))
				done, err := streams[last].Done()
				require.NoError(t, err)
				require.False(t, done)
				defer debug.SetMaxStack(debug.SetMaxStack(stack))
				close(latch)
				rigs[0].do(events[0].Synchronize(background))
				closeAll(rigs)
			})
		})
	}
}
