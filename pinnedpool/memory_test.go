package pinnedpool_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime/debug"
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
			r := newRig(t, cpu.Options{PinnedBytes: 4 * bytes}, 4, bytes, pinnedpool.Options{})
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
		slots := rapid.IntRange(1, 12).Draw(rt, "slots")
		slotBytes := rapid.Int64Range(0, 9000).Draw(rt, "slotBytes")
		o := pinnedpool.Options{
			BudgetBytes: rapid.Int64Range(1, 60_000).Draw(rt, "budget"),
			MinSlots:    rapid.IntRange(0, slots).Draw(rt, "minSlots"), Pageable: rapid.Bool().Draw(rt, "pageable"),
		}
		limit := rapid.Int64Range(1, 60_000).Draw(rt, "pinned")
		dev, err := cpu.Open(cpu.Options{PinnedBytes: limit})
		require.NoError(rt, err)

		least := o.MinSlots
		if least == 0 {
			least = slots
		}
		within := func(bytes int64) int {
			if slotBytes == 0 {
				return slots
			}
			return int(min(int64(slots), bytes/slotBytes))
		}
		want := min(within(o.BudgetBytes), within(limit))
		pageable := o.Pageable && within(limit) < within(o.BudgetBytes)
		if pageable {
			want = within(o.BudgetBytes)
		}

		pool, err := pinnedpool.New(dev, slots, slotBytes, o)
		if min(want, within(o.BudgetBytes)) < least {
			var memory *pinnedpool.MemoryError
			require.ErrorAs(rt, err, &memory)
			require.ErrorIs(rt, err, device.ErrOutOfMemory)
			require.Equal(rt, slots, memory.Slots)
			require.Equal(rt, slotBytes, memory.SlotBytes)
			require.NotEmpty(rt, memory.Hint)
			require.Less(rt, within(memory.GotBytes), least)
		} else {
			require.NoError(rt, err)
			s := pool.Stats()
			require.Equal(rt, want, s.Slots)
			require.Equal(rt, int64(want)*slotBytes, s.Bytes)
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
	_, err = pinnedpool.New(dev, 8, 1<<20, pinnedpool.Options{})
	var memory *pinnedpool.MemoryError
	require.ErrorAs(t, err, &memory)
	require.EqualValues(t, 3<<20, memory.GotBytes)
	require.Error(t, memory.Err, "the device's own refusal")
	require.ErrorContains(t, err, "ulimit -l")
	require.Zero(t, dev.Usage().PinnedBytes, "a refusal leaves nothing")

	pool, err := pinnedpool.New(dev, 2, 1<<20, pinnedpool.Options{})
	require.NoError(t, err, "and doesn't spoil the next call")
	require.NoError(t, pool.Close(t.Context()))

	_, err = pinnedpool.New(dev, 2, 1<<20, pinnedpool.Options{BudgetBytes: 1 << 20})
	require.ErrorAs(t, err, &memory)
	require.NoError(t, memory.Err, "it was the budget")
	require.ErrorContains(t, err, "raise it")
	require.NoError(t, dev.Close())
}

// The budget is looked at before a page is touched: petabytes cost nothing.
// Go's own limit counts where it is the least, and only if there is one.
func TestTheDefaultBudgetIsAQuarterOfTheLeastLimit(t *testing.T) {
	machine := pinnedpool.DefaultBudget()
	require.Positive(t, machine)
	require.Less(t, machine, int64(math.MaxInt64/4))
	const limit = 64 << 20
	before := debug.SetMemoryLimit(limit)
	defer debug.SetMemoryLimit(before)
	require.EqualValues(t, limit/4, pinnedpool.DefaultBudget())
	debug.SetMemoryLimit(math.MaxInt64 - 1)
	require.LessOrEqual(t, pinnedpool.DefaultBudget(), machine)
}

func TestTheBudgetComesBeforeTheFirstPage(t *testing.T) {
	dev, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	_, err = pinnedpool.New(dev, 1<<16, 1<<44, pinnedpool.Options{})
	require.ErrorIs(t, err, device.ErrOutOfMemory)
	require.Zero(t, dev.Usage().Allocations)
	require.Positive(t, pinnedpool.DefaultBudget())
	require.NoError(t, dev.Close())
}

func TestEveryBadOptionAtOnce(t *testing.T) {
	dev, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	_, err = pinnedpool.New(dev, 0, -1, pinnedpool.Options{BudgetBytes: -2, MinSlots: 3, Together: -4})
	for _, mistake := range []string{"slots is 0", "slotBytes is -1", "BudgetBytes is -2", "MinSlots is 3, want 0 (all) to slots (0)", "Together is -4"} {
		require.ErrorContains(t, err, mistake)
	}
	var first *pinnedpool.OptionError
	require.ErrorAs(t, err, &first)
	require.Equal(t, &pinnedpool.OptionError{Option: "slots", Value: 0, Want: "1 to 1048576"}, first)
	require.NoError(t, dev.Close())
}

// Every number at its extremes: an error that names the option, or that says what memory
// there is; never a panic, and nothing is left.
func TestOptionsAtTheirExtremes(t *testing.T) {
	dev, err := cpu.Open(cpu.Options{MemoryBytes: 1 << 20, PinnedBytes: 1 << 20})
	require.NoError(t, err)
	extremes := []int64{math.MinInt64, math.MinInt64 + 1, -1 << 32, -1, 0, 1, 1 << 16, 1<<16 + 1, math.MaxInt32, math.MaxUint32, 1 << 32, 1 << 61, 1 << 62,
		math.MaxInt64 - 4095, math.MaxInt64 - 255, math.MaxInt64 - 254, math.MaxInt64}
	try := func(option string, slots int, slotBytes int64, o pinnedpool.Options) {
		pool, err := pinnedpool.New(dev, slots, slotBytes, o)
		if err == nil {
			require.LessOrEqual(t, pool.Stats().Bytes, int64(1<<20), "%d slots of %d bytes, %+v", slots, slotBytes, o)
			require.NoError(t, pool.Close(t.Context()))
			return
		}
		var memory *pinnedpool.MemoryError
		if !errors.As(err, &memory) {
			require.ErrorContains(t, err, option+" is ", "%d slots of %d bytes, %+v", slots, slotBytes, o)
		}
	}
	for _, n := range extremes {
		for _, budget := range []int64{0, 1 << 20, math.MaxInt64} {
			for _, together := range []int{0, 2, 1 << 20} {
				good := pinnedpool.Options{BudgetBytes: budget, Together: together}
				if n <= 64 {
					try("slots", int(n), 64, good)
				}
				try("slots", int(n), 1<<62, good) // their product may be 0
				try("slotBytes", 2, n, good)
				if n >= 1<<20 {
					try("slotBytes", 1<<20, n, good)
				}
			}
			shape := reflect.TypeFor[pinnedpool.Options]()
			for i := range shape.NumField() {
				if shape.Field(i).Type.Kind() == reflect.Bool {
					continue
				}
				o := pinnedpool.Options{BudgetBytes: budget}
				field := reflect.ValueOf(&o).Elem().Field(i)
				if field.OverflowInt(n) {
					continue
				}
				field.SetInt(n)
				try(shape.Field(i).Name, 2, 64, o)
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
	pool, err := pinnedpool.New(dev, 4, 64, pinnedpool.Options{Locked: true, Pageable: true})
	require.NoError(t, err)
	require.Equal(t, 4, pool.Stats().Slots)
	require.True(t, pool.Stats().Pageable)
	require.NoError(t, pool.Close(t.Context()))
	require.NoError(t, dev.Close())
}
