package group_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/group"
)

// However many devices there are, whatever their rings, and however the range is left and
// gone on with, every step is made once, in order, of the samples that one device would have
// had, and nothing is left behind.
func TestEveryStepOnceInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		devices := rapid.SampledFrom([]int{1, 2, 3, 8}).Draw(rt, "devices")
		batchSize := devices * rapid.IntRange(1, 3).Draw(rt, "rows")
		lo := loader.Options{
			Shuffle: true, Seed: rapid.Uint64().Draw(rt, "seed"), Workers: rapid.IntRange(1, 8).Draw(rt, "workers"),
			Epochs: rapid.IntRange(1, 3).Draw(rt, "epochs"),
			Last:   rapid.SampledFrom([]loader.LastPolicy{loader.Drop, loader.Pad, loader.Exact}).Draw(rt, "last"),
		}
		po := prefetch.Options{
			Depth: rapid.IntRange(1, 4).Draw(rt, "depth"), BatchesPerCopy: rapid.IntRange(1, 3).Draw(rt, "batchesPerCopy"),
			Streams: prefetch.Streams{Compute: rapid.IntRange(1, 2).Draw(rt, "streams")},
			Memory:  prefetch.Memory{HostSlots: rapid.IntRange(1, 4).Draw(rt, "hostSlots")},
		}
		var models []*cpu.Model
		for i := range devices {
			models = append(models, copies(time.Duration(rapid.IntRange(0, 4).Draw(rt, fmt.Sprint("copy ", i)))*ms))
		}
		n := batchSize + rapid.IntRange(0, 5*batchSize).Draw(rt, "more samples")
		stops := rapid.SliceOfN(rapid.IntRange(1, 6), 0, 5).Draw(rt, "stops")
		ways := rapid.SliceOfN(rapid.SampledFrom([]string{"break", "panic", "cancel", "restore", "stop", "another number"}), 5, 5).Draw(rt, "ways")
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, canary{n: n, width: 5}, models, batchSize, lo, po)
			done := 0
			for i := 0; r.g.Epoch() < lo.Epochs; i++ {
				stop, way := 1<<30, "break"
				if i < len(stops) {
					stop, way = stops[i], ways[i]
				}
				steps := r.until(stop, way)
				r.verify(steps, done)
				done += len(steps)
				if way == "another number" && batchSize%2 == 0 {
					r = r.onOther(2, po, lo)
				}
			}
			per, _ := r.ld.Batches()
			require.Equal(t, per*lo.Epochs, done)
			r.close()
		})
	})
}

// onOther goes on with what is left on other devices, of which there are n.
func (r *rig) onOther(n int, po prefetch.Options, lo loader.Options) *rig {
	state := r.g.State()
	r.close()
	next := newRig(r.t, r.data, repeat(copies(ms), n), r.ld.BatchSize(), lo, po)
	require.NoError(r.t, next.g.Restore(state))
	require.Equal(r.t, state, next.g.State())
	return next
}

// until takes at most stop steps, then leaves the range in the given way.
func (r *rig) until(stop int, way string) (steps [][]reading) {
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	defer func() {
		if v := recover(); v != nil && v != "stop" {
			panic(v)
		}
		for _, d := range r.g.Stats().Devices {
			require.Zero(r.t, d.Leases)
		}
		switch way {
		case "restore":
			require.NoError(r.t, r.g.Restore(r.g.State()))
		case "stop":
			require.NoError(r.t, r.g.Stop())
		}
	}()
	for s, err := range r.g.Steps(ctx) {
		if way == "cancel" && err != nil {
			require.ErrorIs(r.t, err, context.Canceled)
			return steps
		}
		require.NoError(r.t, err)
		steps = append(steps, r.step(s, 2*ms))
		if len(steps) < stop {
			continue
		}
		switch way {
		case "panic":
			panic("stop")
		case "cancel":
			cancel()
		default:
			return steps
		}
	}
	return steps
}

// A step takes as long as the slowest device's own, whatever the others do: the exact
// time of that device alone.
func TestAStepTakesWhatTheSlowestDeviceTakes(t *testing.T) {
	for _, compute := range [][]time.Duration{{4 * ms}, {4 * ms, 4 * ms}, {2 * ms, 4 * ms}, {4 * ms, 2 * ms, ms}, {4 * ms, 4 * ms, ms, ms, 3 * ms, 2 * ms, 2 * ms, 4 * ms}} {
		t.Run(fmt.Sprint(compute), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const steps = 100
				devices := len(compute)
				r := newRig(t, canary{n: steps * devices, width: 8}, repeat(copies(3*ms), devices), devices, loader.Options{Workers: 2 * devices}, prefetch.Options{})
				start := time.Now()
				for s, err := range r.g.Steps(t.Context()) {
					require.NoError(t, err)
					for i, b := range s.Batches {
						require.NoError(t, b.Stream().Launch(cpu.Busy(compute[i])))
					}
				}
				r.rest()
				require.Equal(t, 3*ms+steps*4*ms, time.Since(start))
				require.EqualValues(t, steps, r.g.Stats().Steps)
				require.EqualValues(t, steps*devices, r.g.Stats().Samples)
				r.close()
			})
		})
	}
}

// A device that fails ends the group: the steps before are whole, the error says which it
// was and what, and the others are as they were.
func TestADeviceThatFailsEndsTheGroup(t *testing.T) {
	for failing := range 3 {
		for at := range 8 {
			t.Run(fmt.Sprintf("device=%d/step=%d", failing, at), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, canary{n: 60, width: 5}, repeat(copies(ms), 3), 3, loader.Options{Workers: 3, Epochs: 1}, prefetch.Options{Depth: 2})
					var steps [][]reading
					var failed error
					for s, err := range r.g.All(t.Context()) {
						if err != nil {
							failed = err
							break
						}
						if len(steps) == at {
							r.cards[failing].broken.Store(true)
						}
						var all []reading
						for i, b := range s.Batches {
							got, err := r.cards[i].read(b, 2*ms)
							if i != failing {
								require.NoError(t, err)
							}
							all = append(all, got)
						}
						steps = append(steps, all)
						time.Sleep(2 * ms)
					}
					var of *group.DeviceError
					require.ErrorAs(t, failed, &of)
					require.Equal(t, failing, of.Index)
					require.ErrorIs(t, failed, device.ErrFault)
					require.ErrorIs(t, failed, errBroken)
					require.GreaterOrEqual(t, len(steps), at)
					require.EqualValues(t, 3*len(steps), r.g.State().Position, "the place is behind the last step delivered")
					for _, s := range steps[:at] {
						for i, part := range s {
							if i == failing {
								continue // what its memory held nobody can tell
							}
							require.NoError(t, r.cards[i].dev.Synchronize(t.Context()))
							_, err := r.data.samples(part)
							require.NoError(t, err)
						}
					}
					require.ErrorIs(t, r.g.Close(), device.ErrFault)
					for i, c := range r.cards {
						if i != failing {
							c.close(t)
						}
					}
				})
			})
		}
	}
}

// A sample that can't be read ends all devices' parts at the same step, the first that has
// one.
func TestASampleThatFailsEndsAllDevices(t *testing.T) {
	bad := errors.New("unreadable")
	for failing := range 24 {
		synctest.Test(t, func(t *testing.T) {
			data := canary{n: 24, width: 5, read: func(_ context.Context, i int) error {
				if i >= failing && i < failing+3 {
					return bad
				}
				return nil
			}}
			r := newRig(t, data, repeat(copies(ms), 3), 6, loader.Options{Workers: 3, Epochs: 2}, prefetch.Options{})
			var steps [][]reading
			for s, err := range r.g.All(t.Context()) {
				if err != nil {
					var at *loader.Error
					require.ErrorAs(t, err, &at)
					require.ErrorIs(t, err, bad)
					require.Equal(t, failing, at.Sample)
					break
				}
				steps = append(steps, r.step(s, ms))
			}
			require.Len(t, steps, failing/6)
			r.verify(steps, 0)
			require.EqualValues(t, failing/6*6, r.g.State().Position)
			r.close()
		})
	}
}
