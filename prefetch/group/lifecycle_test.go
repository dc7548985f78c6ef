package group_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/stream"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/group"
)

// Several steps at once: the batches of each stay what they are until its release, also
// those that are released one by one; with all slots held Next says so and loses nothing.
func TestSeveralStepsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 40, width: 5}, repeat(copies(ms), 2), 4, loader.Options{Shuffle: true, Workers: 2, Epochs: 1}, prefetch.Options{Depth: 3})
		rd, err := r.g.Open(t.Context())
		require.NoError(t, err)
		var all [][]reading
		for held := []group.Step(nil); ; {
			s, err := rd.Next(t.Context())
			if errors.Is(err, prefetch.ErrEpochEnd) {
				for _, s := range held {
					all = append(all, r.step(s, ms))
					s.Release()
				}
				break
			}
			var leases *prefetch.LeaseError
			if errors.As(err, &leases) {
				require.Len(t, held, 3)
				var of *group.DeviceError
				require.ErrorAs(t, err, &of)
				first := held[0]
				all = append(all, r.step(first, ms))
				if len(all)%2 == 0 {
					first.Batches[1].Release() // the rest of the step is still there
					_, err = rd.Next(t.Context())
					require.ErrorAs(t, err, &leases)
				}
				first.Release()
				require.Panics(t, first.Release)
				require.Panics(t, func() { first.Len() })
				held = held[1:]
				continue
			}
			require.NoError(t, err)
			require.Equal(t, 4, s.Len())
			held = append(held, s)
		}
		_, err = rd.Next(t.Context())
		require.Equal(t, prefetch.ErrEpochEnd, err)
		require.NoError(t, rd.Close())
		require.Len(t, all, 10)
		r.verify(all, 0)
		r.close()
	})
}

// One at a time: a range or a Reader, and who moves the place meanwhile is told.
func TestAGroupIsReadByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 40, width: 5}, repeat(copies(ms), 2), 4, loader.Options{Workers: 2}, prefetch.Options{})
		for range r.g.Steps(t.Context()) {
			_, err := r.g.Open(t.Context())
			require.Equal(t, prefetch.ErrBusy, err)
			for _, err := range r.g.All(t.Context()) {
				require.Equal(t, prefetch.ErrBusy, err)
			}
			require.Equal(t, prefetch.ErrBusy, r.g.Seek(0, 0))
			require.Equal(t, prefetch.ErrBusy, r.g.Restore(r.g.State()))
			require.Equal(t, prefetch.ErrBusy, r.g.Start(t.Context()))
			require.Equal(t, prefetch.ErrBusy, r.g.Stop())
			require.NoError(t, r.g.Quiesce(t.Context()))
			break
		}
		require.EqualValues(t, 4, r.g.State().Position)
		require.Error(t, r.g.Seek(0, 41))
		require.EqualValues(t, 4, r.g.State().Position)
		require.NoError(t, r.g.Start(t.Context()))
		time.Sleep(time.Second)
		start := time.Now()
		for s, err := range r.g.Steps(t.Context()) {
			require.NoError(t, err)
			require.Equal(t, 1, s.Position().Batch)
			require.Zero(t, time.Since(start), "Start has filled it")
			break
		}
		r.close()
	})
}

// The ranges are those of a Prefetcher: what each of them yields, by epoch and step.
func TestTheRangesOfAGroup(t *testing.T) {
	for kind, open := range map[string]func(t *testing.T) *loader.Loader{
		"dataset": func(t *testing.T) *loader.Loader {
			ld, err := loader.New(canary{n: 11, width: 3}, 4, loader.Options{Epochs: 3, Workers: 2, Last: loader.Exact})
			require.NoError(t, err)
			return ld
		},
		"iterable": func(t *testing.T) *loader.Loader { return iterated(t, func(int) int { return 11 }) },
	} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cards := newCards(t, repeat(copies(ms), 2))
				g, err := group.New(streamsOf(cards), open(t), prefetch.Options{})
				require.NoError(t, err)
				var whole [][2]int
				for epoch := range 3 {
					for batch := range 3 {
						whole = append(whole, [2]int{epoch, batch})
					}
				}
				for stop := range 10 {
					require.NoError(t, g.Seek(0, 0))
					all := taken(t, g.All(t.Context()), stop)
					all = append(all, taken(t, g.All(t.Context()), 100)...)
					require.Equal(t, whole, all, "stopped behind %d", stop)
					require.Equal(t, 3, g.Epoch())
					require.Empty(t, taken(t, g.All(t.Context()), 100))

					require.NoError(t, g.Seek(0, 0))
					all = taken(t, g.All(t.Context()), stop)
					for epoch, steps := range g.Epochs(t.Context()) {
						for _, at := range taken(t, steps, 100) {
							require.Equal(t, epoch, at[0])
							all = append(all, at)
						}
					}
					require.Equal(t, whole, all, "stopped behind %d", stop)
				}
				require.NoError(t, g.Seek(0, 0))
				var all [][2]int
				for _, steps := range g.Epochs(t.Context()) {
					all = append(all, taken(t, steps, 1)...) // the rest of each is left out
				}
				require.Equal(t, [][2]int{{0, 0}, {1, 0}, {2, 0}}, all)
				require.Equal(t, whole[:3], taken(t, g.Pass(t.Context()), 100))
				require.NoError(t, g.Close())
				for _, c := range cards {
					c.close(t)
				}
			})
		})
	}
}

// taken are at most n steps of a range, by epoch and number.
func taken(t *testing.T, of iter.Seq2[group.Step, error], n int) (all [][2]int) {
	if n == 0 {
		return nil
	}
	for s, err := range of {
		require.NoError(t, err)
		all = append(all, [2]int{s.Position().Epoch, s.Position().Batch})
		if len(all) == n {
			break
		}
	}
	return all
}

// iterated is a loader of an iterator that gives as many samples as length says, of its turn
// in the first epoch.
func iterated(t *testing.T, length func(turn int) int) *loader.Loader {
	var turns atomic.Int32
	numbers := func(_ context.Context, pass loader.Pass) iter.Seq2[int, error] {
		n := length(-1)
		if pass.Epoch == 0 {
			n = length(int(turns.Add(1)) - 1)
		}
		return func(yield func(int, error) bool) {
			for i := range n {
				if !yield(i, nil) {
					return
				}
			}
		}
	}
	ld, err := loader.NewIterable(loader.FromSeqFunc([]loader.Field{{Name: "x", DType: dtype.Int64}}, numbers,
		func(_ context.Context, i int, row *loader.Row) error { return loader.Write(row, "x", int64(i)) }),
		4, loader.Options{Epochs: 3, Workers: 1, Last: loader.Exact})
	require.NoError(t, err)
	return ld
}

// An iterator that gives fewer samples to one device than to another is found out.
func TestUnevenPartsAreAnError(t *testing.T) {
	for _, short := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			ld := iterated(t, func(turn int) int {
				if turn == short {
					return 8
				}
				return 16
			})
			cards := newCards(t, repeat(copies(ms), 2))
			g, err := group.New(streamsOf(cards), ld, prefetch.Options{})
			require.NoError(t, err)
			n := 0
			var uneven *group.UnevenError
			for s, err := range g.All(t.Context()) {
				if err != nil {
					require.ErrorAs(t, err, &uneven)
					break
				}
				require.Equal(t, 4, s.Len())
				n++
			}
			require.Equal(t, 2, n)
			require.NotNil(t, uneven)
			require.Zero(t, uneven.Epoch)
			require.NotEqual(t, uneven.Ended, uneven.Going)
			require.NoError(t, g.Close())
			for _, c := range cards {
				c.close(t)
			}
		})
	}
}

// Two groups on the same devices, which take turns or run side by side, know nothing of
// each other.
func TestTwoGroupsOnTheSameDevices(t *testing.T) {
	for turn := 1; turn <= 3; turn++ {
		synctest.Test(t, func(t *testing.T) {
			lo := loader.Options{Shuffle: true, Workers: 2, Epochs: 2, Last: loader.Drop}
			a := newRig(t, canary{n: 48, width: 5}, repeat(copies(ms), 3), 6, lo, prefetch.Options{})
			other, err := group.New(streamsOf(a.cards), a.ld, prefetch.Options{Depth: 1})
			require.NoError(t, err)
			b := &rig{t: t, data: a.data, ld: a.ld, cards: a.cards, g: other}
			var ofA, ofB [][]reading
			for a.g.Epoch() < 2 || b.g.Epoch() < 2 {
				ofA = append(ofA, a.until(turn, "break")...)
				ofB = append(ofB, b.until(4-turn, "break")...)
			}
			a.verify(ofA, 0)
			b.verify(ofB, 0)
			require.NoError(t, other.Close())
			a.close()
		})
	}
}

// Close at any moment, from the body, beside a Next that waits, and with steps in hand.
func TestAGroupClosesAtAnyMoment(t *testing.T) {
	for _, way := range []string{"body", "beside"} {
		for at := range 10 {
			synctest.Test(t, func(t *testing.T) {
				data := canary{n: 60, width: 5, read: func(ctx context.Context, i int) error {
					time.Sleep(3 * ms)
					return nil
				}}
				r := newRig(t, data, repeat(copies(ms), 3), 3, loader.Options{Workers: 3}, prefetch.Options{})
				if way == "beside" {
					time.AfterFunc(time.Duration(at)*2*ms, func() { _ = r.g.Close() })
				}
				var failed error
				n := 0
				for s, err := range r.g.Steps(t.Context()) {
					if failed = err; err != nil {
						break
					}
					for _, b := range s.Batches {
						require.NoError(t, b.Stream().Launch(cpu.Busy(2*ms)))
					}
					if n++; way == "body" && n > at {
						var left *prefetch.CloseError
						require.ErrorAs(t, r.g.Close(), &left)
						require.Len(t, left.Leased, 1)
					}
				}
				require.Equal(t, prefetch.ErrClosed, failed, "%v", failed)
				for _, err := range r.g.All(t.Context()) {
					require.Equal(t, prefetch.ErrClosed, err)
				}
				require.Equal(t, prefetch.ErrClosed, r.g.Seek(0, 0))
				r.rest()
				time.Sleep(time.Second)
				r.close()
			})
		}
	}
}

// A Reader's Close ends a Next that waits on whichever device.
func TestAReaderClosesBesideNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked := make(chan struct{})
		data := canary{n: 60, width: 5, read: func(ctx context.Context, i int) error {
			if i == 7 { // the second device's part of the second step
				select {
				case <-blocked:
				case <-ctx.Done():
				}
			}
			return nil
		}}
		r := newRig(t, data, repeat(copies(ms), 2), 4, loader.Options{Workers: 2}, prefetch.Options{})
		rd, err := r.g.Open(t.Context())
		require.NoError(t, err)
		first, err := rd.Next(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = rd.Next(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded, "nothing is lost")
		ended := make(chan error)
		go func() {
			_, err := rd.Next(t.Context())
			ended <- err
		}()
		synctest.Wait()
		_, err = rd.Next(t.Context())
		require.Equal(t, prefetch.ErrBusy, err)
		require.NoError(t, rd.Close())
		require.Equal(t, prefetch.ErrClosed, <-ended)
		require.EqualValues(t, 4, r.g.State().Position)
		close(blocked)
		first.Release()
		steps := r.until(100, "break")
		require.Len(t, steps, 14)
		r.verify(steps, 1)
		r.close()
	})
}

// User code that panics or ends its goroutine is an error of the device that it was for,
// behind the steps before it; what comes next works again.
func TestUserCodeThatDoesNotReturn(t *testing.T) {
	for _, where := range []string{"read", "transform"} {
		for _, way := range []string{"panic", "goexit"} {
			t.Run(where+"/"+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					on := true
					fail := func(yes bool) {
						switch {
						case !on || !yes:
						case way == "panic":
							panic("user code")
						default:
							runtime.Goexit()
						}
					}
					data := canary{n: 40, width: 5}
					po := prefetch.Options{}
					if where == "read" {
						data.read = func(_ context.Context, i int) error { fail(i == 10); return nil }
					} else {
						po.Transform = &prefetch.Transform{Out: data.Fields(), Apply: func(s *device.Stream, out, in prefetch.Fields) error {
							fail(in.Position().First == 10)
							for _, name := range []string{"index", "bytes"} {
								if err := s.CopyD2D(out.Field(name).View, in.Field(name).View); err != nil {
									return err
								}
							}
							return nil
						}}
					}
					r := newRig(t, data, repeat(copies(ms), 2), 4, loader.Options{Workers: 2, Epochs: 1}, po)
					var steps [][]reading
					var of *group.DeviceError
					for s, err := range r.g.All(t.Context()) {
						if err != nil {
							require.ErrorAs(t, err, &of)
							break
						}
						steps = append(steps, r.step(s, ms))
					}
					require.NotNil(t, of)
					require.Equal(t, 1, of.Index, "samples 10 and 11 are the second device's")
					require.Len(t, steps, 2)
					on = false
					steps = append(steps, r.until(100, "break")...)
					require.Len(t, steps, 10)
					r.verify(steps, 0)
					r.close()
				})
			})
		}
	}
}

// Nothing is made on a device outside of the group, and nothing is left on those of it.
func TestNothingOnOtherDevices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cards := newCards(t, repeat(copies(ms), 3))
		outside := cards[0].dev.Usage()
		ld, err := loader.New(canary{n: 40, width: 5}, 4, loader.Options{Last: loader.Drop})
		require.NoError(t, err)
		g, err := group.New(streamsOf(cards[1:]), ld, prefetch.Options{})
		require.NoError(t, err)
		require.Len(t, taken(t, g.Steps(t.Context()), 100), 10)
		require.Equal(t, outside, cards[0].dev.Usage())
		require.NoError(t, g.Close())
		p, err := group.NewPool(streamsOf(cards[1:]), ld, prefetch.Options{})
		require.NoError(t, err)
		for _, err := range p.Map(t.Context(), prefetch.Output{Fields: canary{}.Fields()[:1]}, func(_ int, b prefetch.Batch, out prefetch.Fields) error {
			return b.Stream().CopyD2D(out.Field("index").View, b.Field("index").View)
		}) {
			require.NoError(t, err)
		}
		require.Equal(t, outside, cards[0].dev.Usage())
		require.NoError(t, p.Close())
		for _, c := range cards {
			c.close(t)
		}
	})
}

// What the devices share is divided, all of it, and Plan says how.
func TestPlanDividesWhatIsShared(t *testing.T) {
	for _, c := range []struct {
		devices, workers int
		width            int
		po               prefetch.Options
		want             group.Plan // Workers and BatchSize of it
		notes            int
		slots            int
	}{
		{devices: 2, workers: 5, width: 1016, po: prefetch.Options{Memory: prefetch.Memory{HostSlots: 3}}, slots: 3,
			want: group.Plan{Workers: 5, BatchSize: 8}},
		{devices: 3, workers: 2, width: 1016, po: prefetch.Options{Memory: prefetch.Memory{HostSlots: 4}}, slots: 4, notes: 1,
			want: group.Plan{Workers: 3, BatchSize: 12}},
		{devices: 2, workers: 2, width: 4<<20 - 1024, slots: 4, notes: 1,
			want: group.Plan{Workers: 2, BatchSize: 8}},
		{devices: 2, workers: 2, width: 4<<20 - 1024, po: prefetch.Options{Memory: prefetch.Memory{PinnedBytes: 100<<20 + 1}}, slots: 3, notes: 1,
			want: group.Plan{Workers: 2, BatchSize: 8}},
	} {
		t.Run(fmt.Sprintf("devices=%d/workers=%d/width=%d", c.devices, c.workers, c.width), func(t *testing.T) {
			cards := newCards(t, repeat(copies(0), c.devices))
			ld, err := loader.New(canary{n: 100, width: c.width}, 4*c.devices, loader.Options{Workers: c.workers, Last: loader.Drop})
			require.NoError(t, err)
			g, err := group.New(streamsOf(cards), ld, c.po)
			require.NoError(t, err)
			plan := g.Plan()
			require.Len(t, plan.Devices, c.devices)
			require.Equal(t, c.want.Workers, plan.Workers)
			require.Equal(t, c.want.BatchSize, plan.BatchSize)
			require.Equal(t, int64(c.devices)*plan.Devices[0].HostBytes, plan.HostBytes)
			require.Equal(t, int64(c.devices)*plan.Devices[0].BatchBytes, plan.BatchBytes)
			require.Len(t, plan.Notes, c.notes)
			budget := int64(0)
			for _, d := range plan.Devices {
				require.Equal(t, c.slots, d.HostSlots)
				require.Equal(t, 4, d.BatchSize)
				budget += d.Options.Memory.PinnedBytes
			}
			if total := c.po.Memory.PinnedBytes; total > 0 {
				require.Equal(t, total, budget)
				require.LessOrEqual(t, plan.HostBytes, total)
			}
			text := plan.String()
			require.Contains(t, text, fmt.Sprintf("%d devices, %d rows a batch", c.devices, c.want.BatchSize))
			require.Contains(t, text, fmt.Sprintf("device %d\n", c.devices-1))
			require.NoError(t, g.Close())
			for _, c := range cards {
				c.close(t)
			}
		})
	}
}

// Mistakes are all told at once, by name.
func TestNewRefuses(t *testing.T) {
	cards := newCards(t, repeat(copies(0), 2))
	ld, err := loader.New(canary{n: 10, width: 1}, 5, loader.Options{})
	require.NoError(t, err)
	_, err = group.New(nil, nil, prefetch.Options{})
	require.ErrorContains(t, err, "streams")
	require.ErrorContains(t, err, "ld is nil")
	_, err = group.New([]*device.Stream{cards[0].stream, nil, cards[0].stream}, ld, prefetch.Options{})
	require.ErrorContains(t, err, "streams[1] is nil")
	require.ErrorContains(t, err, "streams[2] is streams[0] again")
	_, err = group.New(streamsOf(cards), ld, prefetch.Options{})
	require.ErrorContains(t, err, "batchSize is 5, want a multiple of 2")
	require.ErrorContains(t, err, "Last is Keep")
	_, err = group.NewPool(streamsOf(cards), ld, prefetch.Options{Depth: -1})
	var of *group.DeviceError
	require.ErrorAs(t, err, &of)
	require.ErrorContains(t, err, "Depth is -1")
	even, err := loader.New(canary{n: 10, width: 1}, 4, loader.Options{Last: loader.Drop})
	require.NoError(t, err)
	_, err = group.New(streamsOf(cards), even, prefetch.Options{Memory: prefetch.Memory{PinnedBytes: -1}})
	require.ErrorAs(t, err, &of)
	require.ErrorContains(t, err, "PinnedBytes is -1")
	data := stream.Encode(stream.FromSlice([]byte{1, 2, 3, 4}, 2), canary{width: 1}.Fields(), func(context.Context, byte, *loader.Row) error { return nil })
	shards, err := loader.NewStream(data, 2, loader.Options{Steps: 1})
	require.NoError(t, err)
	for _, refused := range []func() error{
		func() error { _, err := group.New(streamsOf(cards), shards, prefetch.Options{}); return err },
		func() error { _, err := group.NewPool(streamsOf(cards), shards, prefetch.Options{}); return err },
	} {
		var option *loader.OptionError
		err := refused()
		require.ErrorAs(t, err, &option)
		require.ErrorContains(t, err, ": ld is ")
	}
	require.Panics(t, func() { group.Step{}.Len() })
	require.Panics(t, func() { group.Result{}.Len() })
	for _, c := range cards {
		c.close(t)
	}
}

// Who held a step up: each device is waited for in turn.
func TestStatsSayWhoWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := canary{n: 40, width: 5, read: func(ctx context.Context, i int) error {
			if i%2 == 1 { // the second device's
				time.Sleep(5 * ms)
			}
			return nil
		}}
		r := newRig(t, data, repeat(copies(0), 2), 2, loader.Options{Workers: 2, Epochs: 1}, prefetch.Options{})
		for _, err := range r.g.All(t.Context()) {
			require.NoError(t, err)
			time.Sleep(2 * ms)
		}
		s := r.g.Stats()
		require.EqualValues(t, 20, s.Steps)
		require.EqualValues(t, 40, s.Samples)
		require.EqualValues(t, 40*(256+5), s.Bytes) // fields are aligned
		require.Equal(t, 40*ms, s.Body)
		require.Equal(t, 5*ms+19*3*ms, s.Wait)
		require.Zero(t, s.Devices[0].Wait())
		require.Equal(t, s.Wait, s.Devices[1].Wait())
		require.Contains(t, s.String(), "you waited for device 1 (cpu)")
		r.close()
	})
}
