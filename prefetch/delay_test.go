package prefetch_test

import (
	"fmt"
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

// Each driver call of each form of the pipeline takes its time in turn: whoever
// makes it, nobody overtakes it where it matters, and the contents are right. It is
// real time, because some of the calls are made under a lock.
func TestACallThatIsLateChangesNothing(t *testing.T) {
	const us = time.Microsecond
	for _, s := range shapes {
		for _, c := range s.calls {
			t.Run(fmt.Sprintf("%s/%v", s.name, c), func(t *testing.T) {
				data := canary{n: 24, width: 8}
				co := cpu.Options{Adversary: &cpu.Adversary{Poison: true, LateRead: true, CheckInputs: true, Reorder: true, Delay: 100 * us}}
				r := newRig(t, data, co, 2, loader.Options{Shuffle: true, Workers: 2}, s.options(data))
				always := r.tap.Arm(devicetest.Rule{Op: c.op, Event: c.event, Stream: c.stream, Delay: 100 * us})
				r.tap.Arm(devicetest.Rule{Op: c.op, Event: c.event, Stream: c.stream, Delay: 3000 * us, Nth: 4})
				n, err := r.rest(s.mapped, 50*us)
				require.NoError(t, err)
				require.Equal(t, 12, n)
				require.True(t, always.Fired() > 0 || onlyAsks(c), "there was no such call")
				r.close()
			})
		}
	}
}

// A batch that a second stream uses has edges to that stream too, and each is
// needed: here compute leaves the batch alone, and the other stream reads it.
func TestEveryEdgeOfAnotherStreamIsNeeded(t *testing.T) {
	const (
		ms      = time.Millisecond
		batches = 12
	)
	mutate := func(t *testing.T, in, busy time.Duration, rule devicetest.Rule) (fired int64, failed error) {
		synctest.Test(t, func(t *testing.T) {
			co := adversarial(in)
			co.Model.ComputeEngines = 2
			r := newRig(t, canary{n: 4 * batches, width: 32}, co, 4, loader.Options{Shuffle: true, Workers: 2}, prefetch.Options{Depth: 2})
			other, err := r.dev.NewStream(device.StreamOptions{Name: "other"})
			require.NoError(t, err)
			armed := r.tap.Arm(rule)
			var all []reading
			for b, err := range r.pf.Batches(t.Context()) {
				require.NoError(t, err)
				require.NoError(t, b.UsedOn(other))
				all = append(all, r.readOn(b, other, busy))
			}
			require.NoError(t, r.dev.Synchronize(t.Context()))
			for _, got := range all {
				if failed == nil {
					failed = r.verify(got)
				}
			}
			fired = armed.Fired()
			require.NoError(t, r.pf.Close())
			require.NoError(t, other.Close())
			r.close()
			if rule.Swallow {
				require.NotEmpty(t, r.orders.found())
			}
		})
		return fired, failed
	}
	for _, e := range []struct {
		edge
		in, busy time.Duration
	}{
		{edge{name: "Wait(ready)", op: devicetest.Wait, event: "ready", stream: "other"}, 6 * ms, 2 * ms},
		{edge{name: "Record(consumed)", op: devicetest.Record, event: "consumed", stream: "other"}, 2 * ms, 6 * ms},
		{edge{name: "Wait(consumed)", op: devicetest.Wait, event: ".1", stream: "copy"}, 2 * ms, 6 * ms},
	} {
		_, err := mutate(t, e.in, e.busy, devicetest.Rule{Op: devicetest.Wait, Event: "no such event"})
		require.NoError(t, err, "unmutated")
		for k := int64(1); k <= batches-3; k++ {
			t.Run(fmt.Sprintf("%s/k=%d", e.name, k), func(t *testing.T) {
				fired, err := mutate(t, e.in, e.busy, devicetest.Rule{Op: e.op, Event: e.event, Stream: e.stream, Nth: k, Swallow: true})
				require.EqualValues(t, 1, fired)
				require.Error(t, err, "the contents are right without this call")
			})
		}
	}
}

// Edges are needed, too, where the device is as late as it may be with everything:
// over many batches one that is never issued shows.
func TestAnEdgeThatIsNeverIssuedShowsUnderAnyDelays(t *testing.T) {
	for _, e := range edges {
		t.Run(e.name, func(t *testing.T) {
			const ms = time.Millisecond
			l := map[byte]load{'a': {8 * ms, 0, ms}, 'b': {ms, 0, 8 * ms}, 'c': {8 * ms, 0, ms}}[e.name[0]]
			shown := 0
			const seeds = 8
			for seed := range uint64(seeds) {
				synctest.Test(t, func(t *testing.T) {
					co := cpu.Options{Model: engines(modelled(l.in), 2),
						Adversary: &cpu.Adversary{Poison: true, LateRead: true, Reorder: true, Seed: seed, Delay: 3 * ms}}
					r := newRig(t, canary{n: 120, width: 32}, co, 4, loader.Options{Shuffle: true, Workers: 2}, prefetch.Options{Depth: 2, Memory: prefetch.Memory{HostSlots: 3}})
					require.NoError(t, r.epochs(1, l.compute))
					require.NoError(t, r.pf.Seek(0, 0))
					r.tap.Arm(devicetest.Rule{Op: e.op, Event: e.event, Stream: e.stream, Swallow: true})
					if r.epochs(1, l.compute) != nil {
						shown++
					}
					r.tap.Disarm()
					r.close()
					require.NotEmpty(t, r.orders.found())
				})
			}
			require.Equal(t, seeds, shown)
		})
	}
}

// Two devices: what is for one is on that one, and the other isn't touched.
func TestABatchIsOnItsStreamsDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		idle, err := cpu.New(cpu.Options{})
		require.NoError(t, err)
		untouched := devicetest.NewTap(idle)
		zero := device.New(untouched)
		drv, err := cpu.New(cpu.Options{Index: 1, Adversary: &cpu.Adversary{Poison: true, LateRead: true}})
		require.NoError(t, err)
		r := newRigOn(t, drv, cpuSpin, canary{n: 40, width: 9}, 4, loader.Options{Workers: 8}, prefetch.Options{Streams: prefetch.Streams{Compute: 2}})
		require.Contains(t, r.pf.Plan().Device, "cpu:1")
		for b, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err)
			require.Same(t, r.dev, b.Stream().Device())
			for _, f := range b.Fields() {
				require.Same(t, r.dev, f.View.Device())
			}
		}
		require.Empty(t, untouched.Calls())
		require.Zero(t, zero.Usage())
		r.close()
		require.NoError(t, zero.Close())
	})
}
