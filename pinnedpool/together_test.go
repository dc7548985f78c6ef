package pinnedpool_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/pinnedpool"
)

// stride is the distance of neighbours of so many bytes.
func stride(slotBytes int64) int64 { return (slotBytes + 255) / 256 * 256 }

func TestNeighboursLieTogether(t *testing.T) {
	for _, slotBytes := range []int64{1, 100, 256, 257, 4096} {
		t.Run(fmt.Sprint(slotBytes), func(t *testing.T) {
			const slots, together = 7, 3
			r := newRig(t, cpu.Options{}, slots, slotBytes, pinnedpool.Options{Together: together})
			require.Equal(t, slots, r.pool.Slots())
			for id := range slots {
				b := r.pool.Buffer(id)
				require.Len(t, b.Bytes(), int(slotBytes))
				require.Equal(t, int(slotBytes), cap(b.Bytes()), "an append never spills into a neighbour")
				v, err := b.View()
				require.NoError(t, err)
				require.Equal(t, slotBytes, v.Size())
				require.Zero(t, v.Address()%256)

				behind := min(together-1-id%together, slots-1-id) // the last piece is short
				for _, n := range []int{-1, math.MinInt, behind + 1, together, slots, math.MaxInt - id, math.MaxInt} {
					require.Nil(t, b.With(n), "buffer %d and %d more", id, n)
				}
				for n := range behind + 1 {
					all := b.With(n)
					require.Len(t, all, int(int64(n)*stride(slotBytes)+slotBytes))
					require.Equal(t, len(all), cap(all))
					for i := range n + 1 {
						neighbour := r.pool.Buffer(id + i)
						require.Same(t, &neighbour.Bytes()[0], &all[int64(i)*stride(slotBytes)])
						w, err := neighbour.View()
						require.NoError(t, err)
						require.EqualValues(t, int64(i)*stride(slotBytes), w.Address()-v.Address())
					}
				}
			}
			r.close()
		})
	}
}

func TestBuffersWithoutMemoryHaveNoneTogether(t *testing.T) {
	r := newRig(t, cpu.Options{}, 4, 0, pinnedpool.Options{BudgetBytes: 1, Together: 4})
	for id := range 4 {
		require.Nil(t, r.pool.Buffer(id).With(0))
		require.Empty(t, r.pool.Buffer(id).Bytes())
	}
	require.Zero(t, r.pool.Stats().Bytes)
	r.close()
}

// One copy takes neighbours, and its event gives them back.
func TestOneCopyTakesNeighbours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Millisecond), 3, slotBytes, pinnedpool.Options{Together: 3})
		target, err := r.dev.Alloc(2*256 + slotBytes)
		require.NoError(t, err)
		group := []*pinnedpool.Buffer{r.get(), r.get(), r.get()}
		all := group[0].With(2)
		clear(all) // what lies between neighbours is copied too
		for i, b := range group {
			require.Equal(t, i, b.ID())
			b.Bytes()[0], b.Bytes()[slotBytes-1] = byte(1+i), byte(11+i)
		}
		require.NoError(t, r.copies.CopyH2D(target.View(), all))
		require.NoError(t, r.copies.Record(group[2].Copied()))
		r.pool.PutAfter(group...)
		require.NoError(t, r.pool.Drain(t.Context()))
		require.Equal(t, 3, r.pool.Stats().Free)

		got := make([]byte, target.Size())
		require.NoError(t, r.copies.CopyD2H(got, target.View()))
		require.NoError(t, r.copies.Synchronize(t.Context()))
		for i := range 3 {
			require.Equal(t, byte(1+i), got[256*i])
			require.Equal(t, byte(11+i), got[256*i+slotBytes-1])
		}
		require.NoError(t, target.Close())
		r.close()
	})
}

// The budget covers what lies between neighbours, to the byte, and the last piece is as
// short as need be.
func TestTheBudgetCoversWhatLiesBetweenNeighbours(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		slots := rapid.IntRange(1, 12).Draw(rt, "slots")
		slotBytes := rapid.Int64Range(1, 3000).Draw(rt, "slotBytes")
		together := rapid.IntRange(1, 14).Draw(rt, "together")
		size := min(together, slots) // of a piece
		needs := func(n int) (bytes int64) {
			for ; n > 0; n -= min(n, size) {
				if size == 1 {
					bytes += slotBytes
					continue
				}
				bytes += int64(min(n, size)-1)*stride(slotBytes) + slotBytes
			}
			return bytes
		}
		want := rapid.IntRange(1, slots).Draw(rt, "want")
		budget := needs(want)
		if want < slots {
			budget = rapid.Int64Range(budget, needs(want+1)-1).Draw(rt, "budget")
		}
		dev, err := cpu.Open(cpu.Options{})
		require.NoError(rt, err)
		o := pinnedpool.Options{BudgetBytes: budget, MinSlots: 1, Together: together}
		pool, err := pinnedpool.New(dev, slots, slotBytes, o)
		require.NoError(rt, err)
		require.Equal(rt, want, pool.Slots())
		require.Equal(rt, needs(want), pool.Stats().Bytes)
		require.Equal(rt, needs(want), dev.Usage().PinnedBytes)
		require.NoError(rt, pool.Close(rt.Context()))

		o.MinSlots = want + 1
		if want < slots {
			var memory *pinnedpool.MemoryError
			_, err = pinnedpool.New(dev, slots, slotBytes, o)
			require.ErrorAs(rt, err, &memory)
			require.Equal(rt, budget, memory.GotBytes)
		}
		require.Zero(rt, dev.Usage().PinnedBytes+dev.Usage().HostBuffers+dev.Usage().Events)
		require.NoError(rt, dev.Close())
	})
}

// Where a whole piece is more than an int64 can say, there is no memory for it, and
// nothing wraps round.
func TestAPieceThatOverflowsIsShortOfMemory(t *testing.T) {
	dev, err := cpu.Open(cpu.Options{PinnedBytes: 1 << 20})
	require.NoError(t, err)
	for _, slotBytes := range []int64{1 << 42, 1 << 61, 1 << 62, math.MaxInt64 - 255, math.MaxInt64 - 254, math.MaxInt64} {
		for _, budget := range []int64{1 << 20, 1 << 62, math.MaxInt64 - 1, math.MaxInt64} {
			for _, together := range []int{1, 2, 3, 1 << 20} {
				for _, least := range []int{0, 1} {
					_, err := pinnedpool.New(dev, 1<<20, slotBytes, pinnedpool.Options{BudgetBytes: budget, Together: together, MinSlots: least})
					require.ErrorIs(t, err, device.ErrOutOfMemory, "%d bytes of %d, %d together", slotBytes, budget, together)
				}
			}
		}
	}
	require.Zero(t, dev.Usage().Allocations)
	require.NoError(t, dev.Close())
}

// A device that refuses a whole piece may have memory for fewer neighbours: MinSlots is
// how few will do.
func TestFewerNeighboursWhereTheDeviceGivesLess(t *testing.T) {
	for limit := int64(1); limit <= 9; limit++ {
		r := newRig(t, cpu.Options{PinnedBytes: limit * 256}, 8, 256, pinnedpool.Options{MinSlots: 1, Together: 4})
		require.EqualValues(t, min(limit, 8), r.pool.Slots(), "memory for %d", limit)
		require.EqualValues(t, min(limit, 8)*256, r.pool.Stats().Bytes)
		for id := range r.pool.Slots() {
			require.Len(t, r.pool.Buffer(id).Bytes(), 256)
			for n := range 4 {
				if all := r.pool.Buffer(id).With(n); all != nil {
					require.Same(t, &r.pool.Buffer(id + n).Bytes()[0], &all[256*n])
				}
			}
		}
		r.close()
	}
	dev, err := cpu.Open(cpu.Options{PinnedBytes: 3 * 256})
	require.NoError(t, err)
	var memory *pinnedpool.MemoryError
	_, err = pinnedpool.New(dev, 8, 256, pinnedpool.Options{MinSlots: 4, Together: 4})
	require.ErrorAs(t, err, &memory)
	require.EqualValues(t, 3*256, memory.GotBytes)
	require.Error(t, memory.Err)
	require.Zero(t, dev.Usage().PinnedBytes+dev.Usage().HostBuffers+dev.Usage().Events)
	require.NoError(t, dev.Close())
}

func TestWhateverTheDeviceGivesIsUsed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		slots := rapid.IntRange(1, 20).Draw(rt, "slots")
		slotBytes := rapid.Int64Range(1, 2000).Draw(rt, "slotBytes")
		o := pinnedpool.Options{MinSlots: 1, Together: rapid.IntRange(1, 20).Draw(rt, "together")}
		limit := rapid.Int64Range(slotBytes, 20*2048).Draw(rt, "pinned")
		dev, err := cpu.Open(cpu.Options{PinnedBytes: limit})
		require.NoError(rt, err)
		pool, err := pinnedpool.New(dev, slots, slotBytes, o)
		require.NoError(rt, err)
		s := pool.Stats()
		require.Equal(rt, dev.Usage().PinnedBytes, s.Bytes)
		if s.Slots < slots {
			require.Less(rt, limit-s.Bytes, slotBytes, "there is room for one more")
		}
		require.NoError(rt, pool.Close(rt.Context()))
		require.NoError(rt, dev.Close())
	})
}

// Events that can't be made cost their buffers only.
func TestAPieceWithoutEventsForAll(t *testing.T) {
	drv, err := cpu.New(cpu.Options{})
	require.NoError(t, err)
	tap := devicetest.NewTap(drv)
	dev := device.New(tap)
	before := dev.Usage()
	for nth := int64(1); nth <= 5; nth++ {
		tap.Arm(devicetest.Rule{Op: devicetest.NewEvent, Nth: nth, Err: errBoom})
		_, err := pinnedpool.New(dev, 5, slotBytes, pinnedpool.Options{MinSlots: 1, Together: 3})
		require.ErrorIs(t, err, errBoom, "it is no lack of memory")
		after := dev.Usage()
		after.Allocations = before.Allocations
		require.Equal(t, before, after)
		tap.Disarm()

		tap.Arm(devicetest.Rule{Op: devicetest.NewEvent, Nth: nth, Err: device.ErrOutOfMemory})
		pool, err := pinnedpool.New(dev, 5, slotBytes, pinnedpool.Options{MinSlots: 1, Together: 3})
		require.NoError(t, err)
		tap.Disarm()
		for id := range pool.Slots() {
			for n := range 4 {
				if all := pool.Buffer(id).With(n); all != nil {
					require.Same(t, &pool.Buffer(id + n).Bytes()[0], &all[256*n])
				}
			}
		}
		require.Equal(t, dev.Usage().PinnedBytes, pool.Stats().Bytes)
		require.NoError(t, pool.Close(t.Context()))
		after = dev.Usage()
		after.Allocations = before.Allocations
		require.Equal(t, before, after)
	}
	require.NoError(t, dev.Close())
}

// The memory of a piece is freed with the last of its neighbours, whichever that is.
func TestAPiecesMemoryGoesWithItsLastNeighbour(t *testing.T) {
	for held := range 3 {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, slow(time.Millisecond), 5, slotBytes, pinnedpool.Options{Together: 3})
			const whole, short = 2*256 + slotBytes, 256 + slotBytes
			require.EqualValues(t, whole+short, r.pool.Stats().Bytes)
			var b *pinnedpool.Buffer
			for id := range 5 {
				if got := r.get(); id == held {
					b = got
				} else {
					defer func() { require.Panics(t, func() { r.pool.Put(got) }, "it went with the pool") }()
					r.pool.Put(got)
				}
			}
			require.ErrorContains(t, r.pool.Close(t.Context()), "1 of 5 buffers are not back")
			require.EqualValues(t, 1, r.dev.Usage().HostBuffers)
			require.EqualValues(t, whole, r.dev.Usage().PinnedBytes)
			require.EqualValues(t, whole, r.pool.Stats().Bytes, "its neighbours' memory is there too")
			r.upload(b, 1) // still legal
			require.NoError(t, r.pool.Close(t.Context()))
			require.Zero(t, r.pool.Stats().Bytes)
			r.close()
		})
	}
}

// uploadTogether submits a copy of each and one event behind them all.
func (r *rig) uploadTogether(buffers ...*pinnedpool.Buffer) {
	r.t.Helper()
	for _, b := range buffers {
		clear(b.Bytes())
		require.NoError(r.t, r.copies.CopyH2D(r.target.View(), b.Bytes()))
	}
	require.NoError(r.t, r.copies.Record(buffers[len(buffers)-1].Copied()))
	r.pool.PutAfter(buffers...)
}

// Those in flight together are free when the event of their last one is complete, no
// sooner, in their order; the pool waits once for them all.
func TestOneEventFreesAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Millisecond), 6, slotBytes, pinnedpool.Options{Together: 4})
		waits := r.tap.Arm(devicetest.Rule{Op: devicetest.SynchronizeEvent, Event: "copied", Nth: math.MaxInt64, Err: errBoom})
		start := time.Now()
		var all []*pinnedpool.Buffer
		for range 6 {
			all = append(all, r.get())
		}
		for lap := range 50 {
			r.uploadTogether(all[:3]...)
			r.uploadTogether(all[3])
			r.uploadTogether(all[4:]...)
			require.Equal(t, 6, r.pool.Stats().InFlight)
			lapStart := start.Add(time.Duration(6*lap) * time.Millisecond)
			for i, done := range []int{3, 3, 3, 4, 6, 6} {
				require.Same(t, all[i], r.get(), "in the order of the copies")
				require.Equal(t, time.Duration(done)*time.Millisecond, time.Since(lapStart), "buffer %d", i)
			}
			require.EqualValues(t, 3*(lap+1), waits.Matched())
		}
		for _, b := range all {
			r.pool.Put(b)
		}
		r.close()
	})
}

// The first of a group is in flight again, alone or before another last, as soon as it is
// free: it waits for its new event.
func TestAMemberOfAGroupGoesItsOwnWayNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Millisecond), 3, slotBytes, pinnedpool.Options{Together: 3})
		for range 50 {
			a, b, c := r.get(), r.get(), r.get()
			start := time.Now()
			r.uploadTogether(a, b, c)
			require.Same(t, a, r.get())
			require.Equal(t, 3*time.Millisecond, time.Since(start))
			r.uploadTogether(a)
			require.Same(t, b, r.get())
			require.Same(t, c, r.get())
			r.uploadTogether(c, b)
			require.Equal(t, 3*time.Millisecond, time.Since(start))
			require.Same(t, a, r.get())
			require.Equal(t, 4*time.Millisecond, time.Since(start))
			require.Same(t, c, r.get())
			require.Equal(t, 6*time.Millisecond, time.Since(start))
			r.pool.Put(a)
			r.pool.Put(c)
			require.NoError(t, r.pool.Drain(t.Context()))
		}
		r.close()
	})
}

// An event's error in the middle: what came before is free, the group and all behind it
// are in doubt until Recover, which frees them in their order.
func TestAFaultAmongGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Millisecond), 7, slotBytes, pinnedpool.Options{Together: 3})
		r.tap.Arm(devicetest.Rule{Op: devicetest.SynchronizeEvent, Event: "copied", Nth: 2, Err: errBoom})
		var all []*pinnedpool.Buffer
		for range 7 {
			all = append(all, r.get())
		}
		r.uploadTogether(all[:2]...)
		r.uploadTogether(all[2:5]...)
		r.uploadTogether(all[5])
		synctest.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.ErrorIs(t, r.pool.Failed(), errBoom)
		require.Equal(t, 4, r.pool.Doubtful())
		s := r.pool.Stats()
		require.Equal(t, 2, s.Free)
		require.Zero(t, s.InFlight)
		_, err := r.pool.Get(t.Context())
		require.ErrorIs(t, err, errBoom, "not even what is free")
		require.ErrorIs(t, r.pool.Drain(t.Context()), errBoom)
		require.ErrorIs(t, r.pool.Close(t.Context()), errBoom)
		require.EqualValues(t, 3, r.dev.Usage().HostBuffers, "nothing is freed")

		r.uploadTogether(all[6]) // behind the fault it is in doubt too
		synctest.Wait()
		require.Equal(t, 5, r.pool.Doubtful())

		require.NoError(t, r.copies.Synchronize(t.Context()))
		r.pool.Recover()
		require.NoError(t, r.pool.Failed())
		require.Zero(t, r.pool.Doubtful())
		for _, b := range all {
			require.Same(t, b, r.get())
		}
		start := time.Now()
		r.uploadTogether(all[4], all[3])
		r.uploadTogether(all[0], all[1], all[2], all[5], all[6])
		require.Same(t, all[4], r.get())
		require.Equal(t, 2*time.Millisecond, time.Since(start))
		r.pool.Put(all[4])
		require.NoError(t, r.pool.Drain(context.Background()))
		require.Equal(t, 7*time.Millisecond, time.Since(start))
		r.close()
	})
}
