package observe_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/observe"
	"github.com/leat-go/leat/prefetch"
)

// bus is a bus that takes 10 µs for a copy and then moves 50 bytes a nanosecond.
func bus(bytes int64) time.Duration { return 10*time.Microsecond + time.Duration(bytes/50) }

// Each situation is produced on purpose, and named with what to do about it.
func TestExplainNamesTheBottleneck(t *testing.T) {
	for name, c := range map[string]struct {
		load
		is    observe.Bottleneck
		want  string
		helps func(*load) // what the sentence says, done
	}{
		"device": {is: observe.DeviceBound, want: "The device worked 100% of the time of 199 steps: it makes the pace, and no change of the pipeline makes a step faster. A step takes it 10ms.\n",
			load: load{read: same(ms), copy: takes(2 * ms), compute: 10 * ms}},
		"slow producers": {is: observe.SlowProducers, want: "The device waited for producers in 62% of the time of 199 steps. Reading takes 4ms a sample, 16ms a batch on 1 worker, which read 100% of the time; without waiting a step takes 5ms. 4 workers (loader.Options.Workers) would hide it; no depth can. If they compute rather than wait, that takes as many processors, and there are 2: make reading cheaper. At best that makes it 3.20 times as fast.\n",
			load:  load{batch: 4, read: same(4 * ms), copy: takes(ms), compute: 5 * ms},
			helps: func(l *load) { l.loader.Workers = 4 }},
		"slow producers without a device": {is: observe.SlowProducers, want: "The loop waited for producers in 75% of the time of 200 steps. Reading takes 40ms a sample, 40ms a batch on 1 worker, which read 100% of the time; without waiting a step takes 10ms. 4 workers (loader.Options.Workers) would hide it; no depth can. If they compute rather than wait, that takes as many processors, and there are 2: make reading cheaper. At best that makes it 4.00 times as fast.\n",
			load:  load{read: same(40 * ms), body: sleeps(10 * ms)},
			helps: func(l *load) { l.loader.Workers = 4 }},
		"uneven producers": {is: observe.UnevenProducers, want: "The device waited for producers in 10% of the time of 199 steps. They are fast enough on average, reading 54% of the time, but not evenly: half of the samples take 1ms or less, one in a hundred 14ms or more, and the longest wait was 21ms. Set prefetch.Memory.HostSlots to 50, so that what is read in good times lasts for the bad ones. At best that makes it 1.14 times as fast.\n",
			load: load{
				read: func(i int) time.Duration {
					if i%100 >= 70 {
						return 14 * ms
					}
					return ms
				}, copy: takes(ms), compute: 8 * ms},
			helps: func(l *load) { l.prefetch.Memory.HostSlots = 50 }},
		"slow sample": {is: observe.SlowSample, want: "The device waited for single slow samples in 26% of the time of 199 steps. Sample 117 took 400ms, half of all take 2ms or less. Batches come in order, so what is read behind it waits. Make it cheaper to read, or say what it costs (loader.Coster), so that it is begun earlier, and set prefetch.Memory.HostSlots to 88: as many batches last while it is read. At best that makes it 1.35 times as fast.\n",
			load: load{
				read: func(i int) time.Duration {
					if i == 117 {
						return 400 * ms
					}
					return 2 * ms
				}, copy: takes(ms), compute: 5 * ms},
			helps: func(l *load) { l.prefetch.Memory.HostSlots = 88 }},
		"slow sample of several workers": {is: observe.SlowSample, want: "The loop waited for single slow samples in 27% of the time of 200 steps. Sample 117 took 400ms, half of all take 2ms or less. Batches come in order, so what is read behind it waits. Make it cheaper to read, or say what it costs (loader.Coster), so that it is begun earlier, and set prefetch.Memory.HostSlots to 88: as many batches last while it is read. At best that makes it 1.37 times as fast.\n",
			load: load{
				loader: loader.Options{Workers: 4},
				read: func(i int) time.Duration {
					if i == 117 {
						return 400 * ms
					}
					return 2 * ms
				}, body: sleeps(5 * ms)},
			helps: func(l *load) { l.prefetch.Memory.HostSlots = 88 }},
		"few host slots": {is: observe.FewHostSlots, want: "The device waited for producers in 40% of the time of 199 steps. These waited for memory: with 1 host slot they had nothing to do for 50% of the time, because no slot was free, and then were late; they read only 50% of it. Set prefetch.Memory.HostSlots to 4, which takes 768 bytes more of pinned memory. At best that makes it 1.67 times as fast.\n",
			load: load{read: same(5 * ms), copy: takes(5 * ms), compute: 6 * ms,
				prefetch: prefetch.Options{Memory: prefetch.Memory{HostSlots: 1}}},
			helps: func(l *load) { l.prefetch.Memory.HostSlots = 4 }},
		"no overlap": {is: observe.NoOverlap, want: "The device waited for copies in 43% of the time of 199 steps. With one device slot a copy, of 6ms, begins only when compute is done with the batch before. Set prefetch.Options.Depth to 3. At best that makes it 1.75 times as fast.\n",
			load:  load{read: same(ms), copy: takes(6 * ms), compute: 8 * ms, prefetch: prefetch.Options{Depth: 1}},
			helps: func(l *load) { l.prefetch.Depth = 3 }},
		"pageable": {is: observe.Pageable, want: "The device waited for copies in 44% of the time of 199 steps. Host memory is pageable: the device refused to lock it. Copies from it block the uploader, and reach 28.4 kB/s. Have pinned memory: raise the limit for locked memory (ulimit -l) or lower prefetch.Memory.PinnedBytes. At best that makes it 1.80 times as fast.\n",
			load: load{read: same(ms), copy: takes(9 * ms), compute: 5 * ms, prefetch: prefetch.Options{Memory: prefetch.Memory{Pageable: true}}}},
		"small copies": {is: observe.SmallCopies, want: "The device waited for copies in 70% of the time of 199 steps. Copies of 256 bytes take 10.01µs each, 25.6 MB/s of 50.0 GB/s: each costs some microseconds, whatever its size. Let more batches travel together: prefetch.Options.BatchesPerCopy is 1, 0 leaves it to New; or use larger batches. At best that makes it 3.33 times as fast.\n",
			load: load{copy: bus, compute: 3 * time.Microsecond, recorder: observe.Options{PeakBytesPerSecond: 50e9}}},
		"bus": {is: observe.Bus, want: "The device waited for copies in 61% of the time of 7 steps. A copy of 2097152 bytes takes 51.9µs, 40.4 GB/s of 50.0 GB/s, and the bus is busy 100% of the time. Let fewer bytes cross it: samples as uint8 or float16, made ready on the device by a prefetch.Transform. At best that makes it 2.60 times as fast.\n" +
			"The device's account is of 7 steps of 60: those that were timed.\n",
			load: load{batch: 8192, samples: 60 * 8192, sampled: true, copy: bus, compute: 20 * time.Microsecond, recorder: observe.Options{PeakBytesPerSecond: 50e9}}},
		"padding": {is: observe.Padding, want: "The device waited for copies in 79% of the time of 99 steps. 92% of what crosses the bus is padding of ragged fields; copies keep the bus busy 100% of the time. Put samples of like length into a batch (compose.ByLength, stream.ByLength), or pack them (loader.Ragged.Offsets). At best that makes it 4.69 times as fast.\n",
			load: load{batch: 64, samples: 100 * 64, longest: 1 << 16, length: func(i int) int {
				if i%64 == 0 {
					return 1 << 16
				}
				return 1 << 12
			}, copy: bus, compute: 20 * time.Microsecond, recorder: observe.Options{PeakBytesPerSecond: 50e9}}},
		"transform": {is: observe.Transforming, want: "The device waited for the transform in 56% of the time of 199 steps. It takes longer than the rest of a step: 5ms a step were waited for it. Make prefetch.Transform.Apply submit its work and return, do less in it, or do a part of it where samples are read. At best that makes it 2.25 times as fast.\n",
			load: load{read: same(ms), copy: takes(ms), compute: 4 * ms, transform: 9 * ms}},
		"held slots": {is: observe.HeldSlots, want: "The loop waited for slots that the program held in 70% of the time of 200 steps. All 3 slots held batches that were not released. Release batches sooner, or set prefetch.Options.Depth (without a device Memory.HostSlots) to more than are held at a time. At best that makes it 3.31 times as fast.\n" +
			"The device's own account is not there: all is as the host saw it, which waits for the device where that is behind.\n",
			load: load{read: same(ms), copy: takes(ms), compute: ms, body: sleeps(ms), hold: 9 * ms}},
		"synchronizing": {is: observe.Synchronizing, want: "The device had nothing to do in 38% of the time of 199 steps, because the loop waits for it in each step and only then submits the next one. 200 of 200 bodies waited for their stream, 5.01ms each, and then took 3ms more. Don't call Synchronize in the loop: read losses by device/meter, which gives them some steps later without waiting. At best that makes it 1.60 times as fast.\n",
			load:  load{read: same(ms), copy: takes(ms), compute: 5 * ms, synchronize: true, body: sleeps(3 * ms)},
			helps: func(l *load) { l.synchronize = false }},
		"starved": {is: observe.Starved, want: "The loop's body makes the pace, in 100% of the time of 199 steps, and its goroutine waits for a processor. One goroutine in a hundred waited 5ms or more for one, with 256 workers that read 0% of the time on 2 processors. Use 1 worker (loader.Options.Workers), which leaves a processor for the loop and one for the device's driver.\n",
			load: load{read: same(ms), loader: loader.Options{Workers: 256}, copy: takes(ms), compute: 2 * ms, body: sleeps(9 * ms), scheduling: 5 * ms}},
		"body": {is: observe.BodyBound, want: "The loop's body makes the pace, in 100% of the time of 199 steps. It takes 9ms on the host, and when it ends the device has done all that it submitted. Submit less often: capture the step as a graph (prefetch/capture), or move work on the host out of the loop.\n",
			load: load{read: same(ms), copy: takes(ms), compute: 2 * ms, body: sleeps(9 * ms)}},
		"body without a device": {is: observe.BodyBound, want: "The loop's body took 100% of the time of 200 steps, 9ms a step: the pipeline kept up with it.\n",
			load: load{read: same(ms), body: sleeps(9 * ms)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if c.samples == 0 {
					c.samples = 200 * max(c.batch, 1)
				}
				s, _ := c.run(t)
				s.Cores = 2
				e := s.Explain()
				t.Log("\n", e)
				require.Equal(t, c.is, e.Bottleneck)
				require.Equal(t, c.want, e.String())
				if c.helps == nil {
					return
				}
				before := c.took
				c.helps(&c.load)
				c.run(t)
				gained := float64(before) / float64(c.took)
				require.GreaterOrEqual(t, gained, 0.9*e.Gain, "as much as it said")
				require.LessOrEqual(t, gained, 1.05*e.Gain, "and no more")
			})
		})
	}
}
