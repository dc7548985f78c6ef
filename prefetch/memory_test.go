package prefetch_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// arenaBytes is what a rig takes of the pinned memory for itself.
const arenaBytes = 8 << 20

// wide has batches of four of 64 KiB and more.
var wide = canary{n: 40, width: 16 << 10}

// layoutBytes is the size of a batch of wide's.
func layoutBytes(t *testing.T) int64 {
	l, err := loader.NewLayout(wide.Fields(), 4)
	require.NoError(t, err)
	return l.Size()
}

func TestMemoryThatIsNotThereIsATypedErrorAndLeavesNothing(t *testing.T) {
	slot := layoutBytes(t)
	for name, c := range map[string]struct {
		co   cpu.Options
		po   prefetch.Options
		want string
	}{
		"pinned, by the device":   {cpu.Options{PinnedBytes: arenaBytes + 2*slot}, prefetch.Options{}, "ulimit"},
		"pinned, by the budget":   {cpu.Options{}, prefetch.Options{Memory: prefetch.Memory{PinnedBytes: 8*slot - 1}}, "budget"},
		"pinned, too few even so": {cpu.Options{PinnedBytes: arenaBytes + 2*slot}, prefetch.Options{Memory: prefetch.Memory{MinHostSlots: 3}}, "ulimit"},
		"device, by the device":   {cpu.Options{MemoryBytes: 2*slot + 1000}, prefetch.Options{}, "free"},
		"device, by the budget":   {cpu.Options{}, prefetch.Options{Memory: prefetch.Memory{DeviceBytes: 2 * slot}}, "raise Memory.DeviceBytes"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, canary{n: 4, width: 1}, c.co, 1, loader.Options{}, prefetch.Options{Depth: 1, Memory: prefetch.Memory{HostSlots: 1}})
			before := r.dev.Usage()
			ld, err := loader.New(wide, 4, loader.Options{Workers: 1})
			require.NoError(t, err)
			_, err = prefetch.New(r.compute, ld, c.po)
			require.ErrorIs(t, err, device.ErrOutOfMemory)
			require.ErrorContains(t, err, c.want)
			var memory *prefetch.MemoryError
			require.ErrorAs(t, err, &memory)
			require.Contains(t, memory.What, strings.Fields(name)[0][:6], "which memory")
			require.Less(t, memory.Budget, memory.Bytes)
			after := r.dev.Usage()
			after.Allocations = before.Allocations
			require.Equal(t, before, after)
			require.NoError(t, r.epochs(1, 0), "and spoils nothing")
			r.close()
		})
	}
}

func TestFewerSlotsWhereMemoryIsShortAreInThePlan(t *testing.T) {
	slot := layoutBytes(t)
	synctest.Test(t, func(t *testing.T) {
		co := adversarial(time.Millisecond)
		co.PinnedBytes = arenaBytes + 3*slot + slot/2
		r := newRig(t, wide, co, 4, loader.Options{Workers: 2}, prefetch.Options{Memory: prefetch.Memory{MinHostSlots: 2}})
		plan := r.pf.Plan()
		require.Equal(t, 3, plan.HostSlots)
		require.Equal(t, 3*slot, plan.HostBytes)
		require.Contains(t, plan.String(), "3 host slots instead of 8")
		require.Equal(t, 3, r.pf.Stats().Pool.Slots)
		require.NoError(t, r.epochs(2, time.Millisecond))
		r.close()
	})
}

func TestPageableSlotsAreInThePlanAndInTheStats(t *testing.T) {
	slot := layoutBytes(t)
	synctest.Test(t, func(t *testing.T) {
		co := adversarial(time.Millisecond)
		co.PinnedBytes = arenaBytes + slot
		r := newRig(t, wide, co, 4, loader.Options{Workers: 2}, prefetch.Options{Memory: prefetch.Memory{Pageable: true}})
		plan := r.pf.Plan()
		require.Equal(t, "pageable", plan.HostMemory)
		require.Contains(t, plan.String(), "don't overlap compute")
		require.True(t, r.pf.Stats().Pool.Pageable)
		require.NoError(t, r.epochs(2, time.Millisecond))
		r.close()
	})
}

func TestOverlapIsMeasured(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		in, compute time.Duration
		depth       int
		want        float64
	}{
		{10 * ms, 30 * ms, 3, 0.99}, // all but the first
		{60 * ms, 30 * ms, 3, 0.5},
		{10 * ms, 30 * ms, 1, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, canary{n: 100, width: 8}, cpu.Options{Model: modelled(c.in)}, 1, loader.Options{Workers: 2},
				prefetch.Options{Timing: true, Depth: c.depth})
			require.NoError(t, r.epochs(1, c.compute))
			require.InDelta(t, c.want, r.pf.Stats().Overlap(), 0.01, "%+v", c)
			r.close()
		})
	}
}

// However many workers, no more than the stated slots are ever in use: what is read
// ahead of a consumer that doesn't consume is one batch a slot, and stays so.
func TestAConsumerThatNeverConsumesCostsOnlyTheSlots(t *testing.T) {
	for _, workers := range []int{1, 20} {
		for _, c := range []struct{ depth, hostSlots, per int }{{3, 4, 1}, {2, 16, 1}, {1, 1, 1}, {2, 3, 2}} {
			t.Run(fmt.Sprintf("workers=%d/depth=%d/hostslots=%d/batchespercopy=%d", workers, c.depth, c.hostSlots, c.per), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var read atomic.Int64
					data := canary{n: 10_000, width: 100, read: func(context.Context, int) error { read.Add(1); return nil }}
					r := newRig(t, data, adversarial(time.Millisecond), 4, loader.Options{Workers: workers},
						prefetch.Options{Depth: c.depth, BatchesPerCopy: c.per, Memory: prefetch.Memory{HostSlots: c.hostSlots * c.per}})
					before := r.dev.Usage()
					plan := r.pf.Plan()
					require.Equal(t, c.depth, plan.Depth)
					require.Equal(t, c.hostSlots*c.per, plan.HostSlots)
					require.EqualValues(t, c.depth, before.Buffers)
					require.Equal(t, plan.HostBytes+arenaBytes, before.PinnedBytes)

					rd, err := r.pf.Open(t.Context())
					require.NoError(t, err)
					b, err := rd.Next(t.Context())
					require.NoError(t, err)
					for range 3 {
						time.Sleep(time.Hour)
						synctest.Wait()
						require.LessOrEqual(t, read.Load(), int64(4*c.per*(c.depth+c.hostSlots)))
						require.Equal(t, before, r.dev.Usage())
					}
					if c.per == 1 {
						require.EqualValues(t, 4*(c.depth+c.hostSlots), read.Load(), "and every slot is used")
					}
					b.Release()
					require.NoError(t, rd.Close())
					r.close()
				})
			})
		}
	}
}

// Two epochs warm everything up; 200 more make no stream, no event and no memory,
// with every ring that a Prefetcher can have.
func TestNothingIsAllocatedEpochAfterEpoch(t *testing.T) {
	data := canary{n: 18, width: 8}
	for name, po := range map[string]prefetch.Options{
		"plain": {}, "timing": {Timing: true}, "three in a copy": {BatchesPerCopy: 3},
		"transform": {Transform: passOn(cpuSpin, 0, data)}, "two streams": {Streams: prefetch.Streams{Compute: 2}},
	} {
		for _, mapped := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/map=%v", name, mapped), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, data, adversarial(time.Millisecond), 4, loader.Options{Workers: 2, Shuffle: true}, po)
					epoch := func() (n int) {
						if mapped {
							for res, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: data.Fields()}, r.echo(always(0))) {
								require.NoError(t, err)
								require.NoError(t, r.verify(got(res)))
								n++
							}
							return n
						}
						r.used = 0
						for b, err := range r.pf.Batches(t.Context()) {
							require.NoError(t, err)
							r.read(b, 0)
							n++
						}
						return n
					}
					epoch()
					epoch()
					warm := r.dev.Usage()
					for range 200 {
						require.Equal(t, 5, epoch())
						require.Equal(t, warm, r.dev.Usage())
					}
					r.close()
				})
			})
		}
	}
}

// What was consumed is never more than there is, at whatever moment one asks.
func TestProgressNeverExceedsTheTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 42, width: 4}, adversarial(time.Millisecond), 4, loader.Options{Workers: 4, Epochs: 2}, prefetch.Options{})
		require.Zero(t, r.pf.Stats().Batches)
		n := int64(0)
		for r.pf.Epoch() < 2 {
			for b, err := range r.pf.Batches(t.Context()) {
				require.NoError(t, err)
				n++
				synctest.Wait()
				s := r.pf.Stats()
				require.Equal(t, n, s.Batches)
				require.LessOrEqual(t, r.pf.State().Position, int64(42))
				require.LessOrEqual(t, s.Samples, int64(42*(b.Position().Epoch+1)))
				require.Equal(t, 1, s.Leases)
			}
		}
		s := r.pf.Stats()
		require.Equal(t, prefetch.Stats{Batches: 22, Samples: 84, Uploads: 22}, prefetch.Stats{Batches: s.Batches, Samples: s.Samples, Uploads: s.Uploads})
		require.Equal(t, 20*r.pf.Plan().BatchBytes+2*2*(8+4), s.Bytes, "short batches travel without their tail")
		r.close()
	})
}

// hollow is a dataset with fields of no bytes, and no other if all is set.
type hollow struct{ all bool }

func (h hollow) Len() int { return 10 }

func (h hollow) Fields() []loader.Field {
	fields := []loader.Field{{Name: "none", DType: dtype.Float32, Shape: []int{0, 3}}}
	if !h.all {
		fields = append(fields, loader.Field{Name: "label", DType: dtype.Uint8})
	}
	return fields
}

func (h hollow) Read(_ context.Context, index int, row *loader.Row) error {
	if !h.all {
		row.Bytes("label")[0] = byte(index)
	}
	return nil
}

func TestFieldsAndBatchesOfNoBytes(t *testing.T) {
	for _, all := range []bool{false, true} {
		t.Run(fmt.Sprintf("all=%v", all), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, canary{n: 4, width: 1}, adversarial(time.Millisecond), 2, plain, prefetch.Options{})
				ld, err := loader.New(hollow{all}, 4, loader.Options{Workers: 2, Epochs: 2})
				require.NoError(t, err)
				pf, err := prefetch.New(r.compute, ld, prefetch.Options{Depth: 2, Memory: prefetch.Memory{HostSlots: 2}})
				require.NoError(t, err)
				rows := 0
				for pf.Epoch() < 2 {
					for b, err := range pf.Batches(t.Context()) {
						require.NoError(t, err)
						f := b.Field("none")
						require.Equal(t, []int{b.Len(), 0, 3}, f.Shape)
						require.Zero(t, f.View.Size())
						if !all {
							require.EqualValues(t, b.Len(), b.Field("label").View.Size())
						}
						clone, err := b.Clone()
						require.NoError(t, err)
						require.NoError(t, r.dev.Synchronize(t.Context()))
						require.NoError(t, clone.Close())
						rows += b.Len()
					}
				}
				require.Equal(t, 20, rows)
				copies := r.tap.Count(devicetest.CopyH2D)
				if all {
					require.Zero(t, copies, "no copy of no bytes")
				} else {
					require.EqualValues(t, 6, copies)
				}
				require.NoError(t, pf.Close())
				r.close()
			})
		})
	}
}

// All that New allocates on the device is in the plan, and so within the budget.
func TestThePlanCountsEveryByteOnTheDevice(t *testing.T) {
	scratched := passOn(cpuSpin, 0, wide)
	scratched.Scratch = wide.Fields()
	for name, po := range map[string]prefetch.Options{
		"plain":     {},
		"several":   {BatchesPerCopy: 3},
		"transform": {Transform: passOn(cpuSpin, 0, wide)},
		"scratch":   {Transform: scratched, BatchesPerCopy: 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, wide, cpu.Options{}, 4, loader.Options{Workers: 1}, po)
			bytes := r.pf.Plan().DeviceBytes
			require.Equal(t, r.dev.Usage().DeviceBytes-r.before.DeviceBytes, bytes)
			po.Memory.DeviceBytes = bytes
			exact, err := prefetch.New(r.compute, r.ld, po)
			require.NoError(t, err)
			require.NoError(t, exact.Close())
			po.Memory.DeviceBytes--
			_, err = prefetch.New(r.compute, r.ld, po)
			require.ErrorIs(t, err, device.ErrOutOfMemory)
			r.close()
		})
	}
}
