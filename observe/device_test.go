package observe_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/observe"
	"github.com/leat-go/leat/observe/journal"
)

// Steps return before the device has finished. What Next waits for then is the device, and
// not data; and of what producers take longer, only that counts for which the device had
// nothing to do.
func TestTheDevicesAccountKnowsWhatTheHostCannot(t *testing.T) {
	const steps = 100
	run := func(l load) (s *observe.Snapshot) {
		synctest.Test(t, func(t *testing.T) {
			l.samples, l.copy, l.compute = steps, takes(ms), 50*ms
			if l.body == nil {
				l.body = sleeps(ms / 5) // launching
			}
			s, _ = l.run(t)
		})
		return s
	}
	// The first upload has none before it, and reading ahead is over before the second.
	const n = steps - 1

	s := run(load{read: same(ms)})
	require.Equal(t, journal.Parts{Device: n * 50 * ms}, s.Device.Parts)
	require.EqualValues(t, n, s.Device.Batches)
	require.Equal(t, 1.0, s.Readiness())
	require.Greater(t, s.Host.Parts.HostSlot, 80*50*ms, "the loop ran ahead until all slots were taken")

	s = run(load{read: same(80 * ms)})
	require.Equal(t, journal.Parts{Producers: n * 29 * ms, Copy: n * ms, Device: n * 50 * ms}, s.Device.Parts)
	require.InDelta(t, 50.0/80, s.Readiness(), 1e-9)
	require.Equal(t, n*80*ms-n*ms/5, s.Host.Parts.Producers-80*ms, "the host's account has all of it")

	s = run(load{read: same(ms), synchronize: true})
	require.Equal(t, journal.Parts{Body: n * ms / 5, Device: n * 50 * ms}, s.Device.Parts)
	require.Equal(t, steps*50*ms+ms, s.Host.Synchronized, "and for the first copy")
	require.EqualValues(t, steps, s.Host.SynchronizedSteps)
	require.Equal(t, 1.0, s.Readiness())
	busy, known := s.Utilization()
	require.True(t, known)
	require.InDelta(t, 50/50.2, busy, 1e-9)
}

// All of the compute stream's time is in the parts, whatever the load.
func TestThePartsOfTheDeviceAreAllOfItsTime(t *testing.T) {
	for name, l := range map[string]load{
		"steady":  {read: same(3 * ms), copy: takes(2 * ms), compute: 4 * ms},
		"reads":   {read: same(9 * ms), copy: takes(2 * ms), compute: 4 * ms},
		"copies":  {read: same(ms), copy: takes(9 * ms), compute: 4 * ms},
		"uneven":  {read: func(i int) time.Duration { return time.Duration(i*i%13) * ms }, copy: takes(2 * ms), compute: 4 * ms},
		"body":    {read: same(3 * ms), copy: takes(2 * ms), compute: 4 * ms, body: sleeps(7 * ms)},
		"waiting": {read: same(3 * ms), copy: takes(2 * ms), compute: 4 * ms, synchronize: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l.samples = 60
				s, rec := l.run(t)
				require.EqualValues(t, 60, s.Device.Uploads)
				require.EqualValues(t, 59, s.Device.Batches)
				p := s.Device.Parts
				require.Equal(t, s.Device.Step.Sum(), p.Sum())
				if name != "body" && name != "waiting" {
					require.Equal(t, 59*4*ms, p.Device)
				}
				tl := rec.Timeline(s.Title())
				require.NotZero(t, tl.Length)
			})
		})
	}
}

// Without Timing uploads are timed in bursts of eight, at most every 32 ms, and of them the
// account is the same.
func TestUploadsAreTimedInBursts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := load{samples: 400, copy: takes(ms), compute: 2 * ms, read: same(ms), sampled: true}
		s, rec := l.run(t)
		require.EqualValues(t, s.Stats.TimedUploads, s.Device.Uploads)
		require.InDelta(t, 400/2, s.Device.Uploads, 8, "sixteen go by in 32 ms")
		require.InDelta(t, 7*s.Device.Uploads/8, s.Device.Batches, 8, "a burst has seven times between two")
		require.Equal(t, journal.Parts{Device: time.Duration(s.Device.Batches) * 2 * ms}, s.Device.Parts)
		require.Len(t, rec.Timeline("").Group("compute"), 1)
	})
}

// A snapshot of nothing, and of a pipeline that nobody records, can be asked everything.
func TestASnapshotOfNothing(t *testing.T) {
	for _, rec := range []*observe.Recorder{nil, observe.NewRecorder(observe.Options{})} {
		l := load{samples: 3, copy: takes(ms)}
		pf, end := l.open(t, rec)
		s := observe.Take(pf)
		require.Equal(t, observe.Unknown, s.Explain().Bottleneck)
		require.Equal(t, 1.0, s.Readiness())
		require.Zero(t, s.CopyBytesPerSecond())
		require.NotEmpty(t, s.Sub(s).String())
		if rec != nil {
			require.Zero(t, rec.Timeline("").Length)
		}
		end()
	}
}

// What was counted before an interval is in none of its figures, and intervals add up.
func TestIntervalsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := load{samples: 90, batch: 3, read: same(2 * ms), copy: takes(ms), compute: 4 * ms, body: sleeps(ms)}
		rec := observe.NewRecorder(observe.Options{})
		pf, end := l.open(t, rec)
		defer end()
		all := []*observe.Snapshot{observe.Take(pf)}
		n := 0
		for b, err := range pf.Batches(t.Context()) {
			require.NoError(t, err)
			l.step(t, b, n)
			if n++; n%7 == 0 {
				all = append(all, observe.Take(pf))
			}
		}
		l.rest()
		all = append(all, observe.Take(pf))
		var sum journal.Parts
		var steps, samples, reads, uploads int64
		var took, busy time.Duration
		for i := 1; i < len(all); i++ {
			d := all[i].Sub(all[i-1])
			sum = sum.Plus(d.Host.Parts)
			steps += d.Host.Steps
			samples += d.Stats.Samples
			reads += d.Reads.Sample.Count()
			uploads += d.Device.Uploads
			took += d.For
			busy += d.Reads.Busy
			require.LessOrEqual(t, d.Reads.Busy, d.For+2*ms, "one worker")
			require.InDelta(t, float64(d.Stats.Samples)/d.For.Seconds(), d.SamplesPerSecond(), 1e-9)
		}
		last := all[len(all)-1]
		require.Equal(t, last.Host.Parts, sum)
		require.EqualValues(t, 30, steps)
		require.EqualValues(t, 90, samples)
		require.EqualValues(t, 90, reads)
		require.Equal(t, 180*ms, busy)
		require.EqualValues(t, 30, uploads)
		require.Equal(t, last.Taken.Sub(all[0].Taken), took)
		require.Equal(t, 2*ms, last.Reads.Sample.Quantile(0.5))
		require.Equal(t, 2*ms, last.Reads.Sample.Quantile(1))
		require.Len(t, last.Reads.Slowest, 8)
	})
}

func TestTheTableOfASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lesson()
		s, _ := l.run(t)
		require.Equal(t, `cpu, batches of 1
12 steps, 12 samples, 3072 bytes in 141ms: 85 samples/s
ready 75% of the time
copies at 85.3 kB/s, 91% of them hidden behind compute

the device, 11 steps                   a step      share
  worked                                  8ms      75.3%
  waited for a slow sample             2.26ms      21.3%
  waited for the copy                   273µs       2.6%
  waited for the transform             90.9µs       0.9%

the loop, 12 steps                     a step      share
  was in its body                         1ms      11.8%
  waited for producers                 4.59ms      54.0%
  waited for a slow sample             2.91ms      34.2%

how long                                  p50        p90        p99
  a step                                1.1ms       13ms     47.7ms
  a wait in Next                        100µs       12ms     46.7ms
  a body                                  1ms        1ms        1ms
  reading a sample                     12.9ms     12.9ms       60ms
  a copy                                  3ms        3ms        3ms
  a step on the device                    8ms        8ms     36.9ms

on average 3.6 batches were being filled (2 workers, busy 70%), 0.5 filled, 0.1 submitted, 0.1 in the body
slow: sample 7 took 60ms in epoch 0
`, s.String())
	})
}
