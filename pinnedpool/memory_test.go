package pinnedpool_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/pinnedpool"
)

func TestSizesAreExact(t *testing.T) {
	for _, bytes := range []int64{1, 4095, 4097, 150 << 10, 20<<20 + 400<<10} {
		t.Run(fmt.Sprint(bytes), func(t *testing.T) {
			r := newRig(t, cpu.Options{PinnedBytes: 4 * bytes}, pinnedpool.Options{Slots: 4, SlotBytes: bytes})
			require.Equal(t, 4*bytes, r.pool.Stats().Bytes)
			require.Equal(t, 4*bytes, r.dev.Usage().PinnedBytes)
			b := r.get()
			require.Len(t, b.Bytes(), int(bytes))
			r.pool.Put(b)
			r.close()
		})
	}
}

// Whatever is asked for, the pool has at most its budget and what the device gives,
// at least MinSlots buffers, and else takes nothing.
func TestMemoryStaysWithinBudgetAndDevice(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := pinnedpool.Options{
			Slots:     rapid.IntRange(1, 12).Draw(rt, "slots"),
			SlotBytes: rapid.Int64Range(0, 9000).Draw(rt, "slotBytes"), BudgetBytes: rapid.Int64Range(1, 60_000).Draw(rt, "budget"),
			Pageable: rapid.Bool().Draw(rt, "pageable"),
		}
		o.MinSlots = rapid.IntRange(0, o.Slots).Draw(rt, "minSlots")
		limit := rapid.Int64Range(1, 60_000).Draw(rt, "pinned")
		dev, err := cpu.Open(cpu.Options{PinnedBytes: limit})
		require.NoError(rt, err)

		least := o.MinSlots
		if least == 0 {
			least = o.Slots
		}
		within := func(bytes int64) int {
			if o.SlotBytes == 0 {
				return o.Slots
			}
			return int(min(int64(o.Slots), bytes/o.SlotBytes))
		}
		want := min(within(o.BudgetBytes), within(limit))
		pageable := o.Pageable && within(limit) < within(o.BudgetBytes)
		if pageable {
			want = within(o.BudgetBytes)
		}

		pool, err := pinnedpool.New(dev, o)
		if min(want, within(o.BudgetBytes)) < least {
			var memory *pinnedpool.MemoryError
			require.ErrorAs(rt, err, &memory)
			require.ErrorIs(rt, err, device.ErrOutOfMemory)
			require.Equal(rt, o.Slots, memory.Slots)
			require.Equal(rt, o.SlotBytes, memory.SlotBytes)
			require.NotEmpty(rt, memory.Hint)
			require.Less(rt, within(memory.GotBytes), least)
		} else {
			require.NoError(rt, err)
			s := pool.Stats()
			require.Equal(rt, want, s.Slots)
			require.Equal(rt, int64(want)*o.SlotBytes, s.Bytes)
			require.LessOrEqual(rt, s.Bytes, o.BudgetBytes)
			require.Equal(rt, pageable && least <= want, s.Pageable)
			require.NoError(rt, pool.Close(rt.Context()))
		}
		after := dev.Usage()
		require.Zero(rt, after.HostBuffers+after.PinnedBytes+after.Events)
		require.NoError(rt, dev.Close())
	})
}

func TestARefusalSaysWhatWasToBeHad(t *testing.T) {
	dev, err := cpu.Open(cpu.Options{PinnedBytes: 3 << 20})
	require.NoError(t, err)
	_, err = pinnedpool.New(dev, pinnedpool.Options{Slots: 8, SlotBytes: 1 << 20})
	var memory *pinnedpool.MemoryError
	require.ErrorAs(t, err, &memory)
	require.EqualValues(t, 3<<20, memory.GotBytes)
	require.Error(t, memory.Err, "the device's own refusal")
	require.ErrorContains(t, err, "ulimit -l")
	require.Zero(t, dev.Usage().PinnedBytes, "a refusal leaves nothing")

	pool, err := pinnedpool.New(dev, pinnedpool.Options{Slots: 2, SlotBytes: 1 << 20})
	require.NoError(t, err, "and doesn't spoil the next call")
	require.NoError(t, pool.Close(t.Context()))

	_, err = pinnedpool.New(dev, pinnedpool.Options{Slots: 2, SlotBytes: 1 << 20, BudgetBytes: 1 << 20})
	require.ErrorAs(t, err, &memory)
	require.NoError(t, memory.Err, "it was the budget")
	require.ErrorContains(t, err, "raise it")
	require.NoError(t, dev.Close())
}

// The budget is looked at before a page is touched: petabytes cost nothing.
func TestTheBudgetComesBeforeTheFirstPage(t *testing.T) {
	dev, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	_, err = pinnedpool.New(dev, pinnedpool.Options{Slots: 1 << 16, SlotBytes: 1 << 44})
	require.ErrorIs(t, err, device.ErrOutOfMemory)
	require.Zero(t, dev.Usage().Allocations)
	require.Positive(t, pinnedpool.DefaultBudget())
	require.NoError(t, dev.Close())
}

func TestEveryBadOptionAtOnce(t *testing.T) {
	dev, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	_, err = pinnedpool.New(dev, pinnedpool.Options{SlotBytes: -1, BudgetBytes: -2, MinSlots: 3})
	for _, mistake := range []string{"Slots is 0", "SlotBytes is -1", "BudgetBytes is -2", "MinSlots is 3, want 0 to Slots (0)"} {
		require.ErrorContains(t, err, mistake)
	}
	require.NoError(t, dev.Close())
}

// Every number at its extremes: an error that names the field, or that says what memory
// there is; never a panic, and nothing is left.
func TestOptionsAtTheirExtremes(t *testing.T) {
	dev, err := cpu.Open(cpu.Options{MemoryBytes: 1 << 20, PinnedBytes: 1 << 20})
	require.NoError(t, err)
	good := pinnedpool.Options{Slots: 2, SlotBytes: 64, BudgetBytes: 1 << 20}
	shape := reflect.TypeOf(good)
	for i := range shape.NumField() {
		f := shape.Field(i)
		if f.Type.Kind() == reflect.Bool {
			continue
		}
		for _, n := range []int64{math.MinInt64, math.MinInt64 + 1, -1 << 32, -1, 0, 1, 1 << 16, 1<<16 + 1, math.MaxInt32, math.MaxUint32, 1 << 32, 1 << 61, 1 << 62, math.MaxInt64 - 4095, math.MaxInt64} {
			for _, budget := range []int64{0, 1 << 20, math.MaxInt64} {
				o := good
				o.BudgetBytes = budget
				if f.Name == "Slots" && n > 64 {
					o.SlotBytes = 1 << 62 // its product with Slots is 0
				}
				reflect.ValueOf(&o).Elem().Field(i).SetInt(n)
				pool, err := pinnedpool.New(dev, o)
				if err == nil {
					require.LessOrEqual(t, pool.Stats().Bytes, int64(1<<20), "%+v", o)
					require.NoError(t, pool.Close(t.Context()))
					continue
				}
				var memory *pinnedpool.MemoryError
				if !errors.As(err, &memory) {
					require.ErrorContains(t, err, f.Name+" is ", "%+v", o)
				}
			}
		}
	}
	require.Zero(t, dev.Usage().HostBuffers+dev.Usage().Events)
	require.NoError(t, dev.Close())
}

// Locked memory that is refused gives way to pageable memory for all slots from there on.
func TestLockedGivesWayToPageable(t *testing.T) {
	dev, err := cpu.Open(cpu.Options{PinnedBytes: 64})
	require.NoError(t, err)
	pool, err := pinnedpool.New(dev, pinnedpool.Options{Slots: 4, SlotBytes: 64, Locked: true, Pageable: true})
	require.NoError(t, err)
	require.Equal(t, 4, pool.Stats().Slots)
	require.True(t, pool.Stats().Pageable)
	require.NoError(t, pool.Close(t.Context()))
	require.NoError(t, dev.Close())
}
