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
