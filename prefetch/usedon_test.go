package prefetch_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// usedOnForms are pipelines whose batches travel alone or together, with one compute
// stream or two, and with a transform.
func usedOnForms(data canary) map[string]prefetch.Options {
	return map[string]prefetch.Options{
		"one a copy":      {Depth: 2},
		"four a copy":     {Depth: 2, BatchesPerCopy: 4},
		"compute streams": {Depth: 2, BatchesPerCopy: 3, Streams: prefetch.Streams{Compute: 2}},
		"transform":       {Depth: 2, BatchesPerCopy: 4, Transform: passOn(cpuSpin, time.Millisecond, data)},
	}
}

// A stream of UsedOn may be closed right behind the batch's Release, with its work
// still to come, also where other batches came in the same copy. MaxStreams counts for
// each batch, and no event is made for a new stream.
func TestAStreamMayBeClosedBehindTheRelease(t *testing.T) {
	data := canary{n: 160, width: 16}
	for name, po := range usedOnForms(data) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				co := adversarial(2 * time.Millisecond)
				co.Model.ComputeEngines = 3
				r := newRig(t, data, co, 2, plain, po)
				events := r.dev.Usage().Events
				var all []reading
				for b, err := range r.pf.Batches(t.Context()) {
					require.NoError(t, err)
					var temps []*device.Stream
					for range 3 {
						temp := r.stream("temp")
						require.NoError(t, b.UsedOn(temp))
						require.NoError(t, b.UsedOn(temp), "a second time changes nothing")
						temps = append(temps, temp)
						all = append(all, r.readOn(b, temp, 7*time.Millisecond))
					}
					b.Release()
					for _, temp := range temps {
						require.NoError(t, temp.Close())
					}
					require.Equal(t, events, r.dev.Usage().Events)
				}
				require.NoError(t, r.dev.Synchronize(t.Context()))
				require.Len(t, all, 3*80)
				for _, got := range all {
					require.NoError(t, r.verify(got))
				}
				r.close()
			})
		})
	}
}

// Batches of one copy that are released in any order, some on a stream that others
// are used on too.
func TestAStreamSharedByBatchesOfOneCopy(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}} {
		synctest.Test(t, func(t *testing.T) {
			co := adversarial(2 * time.Millisecond)
			co.Model.ComputeEngines = 3
			r := newRig(t, canary{n: 160, width: 16}, co, 2, plain, prefetch.Options{Depth: 2, BatchesPerCopy: 4})
			rd, err := r.pf.Open(t.Context())
			require.NoError(t, err)
			var all []reading
			for ended := false; !ended; {
				shared := r.stream("shared")
				var held []prefetch.Batch
				for range order {
					b, err := rd.Next(t.Context())
					if errors.Is(err, prefetch.ErrLeases) { // fewer have travelled together
						break
					}
					if ended = errors.Is(err, prefetch.ErrEpochEnd); ended {
						break
					}
					require.NoError(t, err)
					require.NoError(t, b.UsedOn(shared))
					held = append(held, b)
				}
				for _, i := range order {
					if i < len(held) {
						all = append(all, r.readOn(held[i], shared, 3*time.Millisecond))
						held[i].Release()
					}
				}
				require.NoError(t, shared.Close())
			}
			require.Len(t, all, 80)
			require.NoError(t, rd.Close())
			require.NoError(t, r.dev.Synchronize(t.Context()))
			for _, got := range all {
				require.NoError(t, r.verify(got))
			}
			r.close()
		})
	}
}

func (r *rig) stream(name string) *device.Stream {
	r.t.Helper()
	s, err := r.dev.NewStream(device.StreamOptions{Name: name})
	require.NoError(r.t, err)
	return s
}

// A stream of UsedOn that is late holds up the slot that it reads, and no copy into another
// one that is free.
func TestALateUseHoldsUpNoOtherSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := canary{n: 20, width: 8, read: func(context.Context, int) error {
			time.Sleep(10 * time.Millisecond) // so that slots are free
			return nil
		}}
		co := adversarial(time.Millisecond)
		co.Model.ComputeEngines = 2
		r := newRig(t, data, co, 1, loader.Options{Workers: 1}, prefetch.Options{Depth: 3, BatchesPerCopy: 1})
		late := r.stream("late")
		start := time.Now()
		var all []reading
		for b, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err)
			if len(all) == 0 {
				require.NoError(t, b.UsedOn(late))
				all = append(all, r.readOn(b, late, time.Hour))
				continue
			}
			all = append(all, r.read(b, time.Millisecond))
		}
		require.NoError(t, r.compute.Synchronize(t.Context()))
		require.Less(t, time.Since(start), time.Second)
		r.sequence(all, 1)
		require.NoError(t, late.Close())
		r.close()
	})
}

// A batch may be used on a stream of a peer: the copy into its memory waits for that
// too. The events there are made at the first use of each slot and freed by Close.
func TestABatchUsedOnAPeersStream(t *testing.T) {
	data := canary{n: 80, width: 16}
	for name, po := range usedOnForms(data) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, data, adversarial(2*time.Millisecond), 2, plain, po)
				co := adversarial(2 * time.Millisecond)
				co.Index = 1
				peer, err := cpu.Open(co)
				require.NoError(t, err)
				before := peer.Usage()
				host, err := peer.AllocHost(40*2*16, device.HostOptions{})
				require.NoError(t, err)
				var all []reading
				var buffers []*device.Buffer
				for b, err := range r.pf.Batches(t.Context()) {
					require.NoError(t, err)
					temp, err := peer.NewStream(device.StreamOptions{Name: "remote"})
					require.NoError(t, err)
					require.NoError(t, b.UsedOn(temp))
					buffer, err := peer.Alloc(b.Field("bytes").View.Size())
					require.NoError(t, err)
					to := host.Bytes()[len(all)*2*16:][:buffer.Size()]
					require.NoError(t, errors.Join(cpuSpin(temp, 7*time.Millisecond),
						temp.CopyPeer(buffer.View(), b.Field("bytes").View), temp.CopyD2H(to, buffer.View())))
					buffers = append(buffers, buffer)
					got := r.read(b, 0)
					got.bytes = to
					all = append(all, got)
					b.Release()
					require.NoError(t, temp.Close())
				}
				require.NoError(t, peer.Synchronize(t.Context()))
				r.sequence(all, 1)
				require.LessOrEqual(t, peer.Usage().Events, before.Events+int64(2*r.pf.Plan().BatchesPerCopy))
				r.close()
				for _, b := range buffers {
					require.NoError(t, b.Close())
				}
				require.NoError(t, host.Close())
				after := peer.Usage()
				after.Allocations = before.Allocations
				require.Equal(t, before, after)
				require.NoError(t, peer.Close())
			})
		})
	}
}

// A peer that is closed behind the Release, when its work is done, has nothing to wait for
// any more.
func TestAPeerMayBeClosedBehindTheRelease(t *testing.T) {
	for _, closeFirst := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, canary{n: 80, width: 16}, adversarial(2*time.Millisecond), 2, plain, prefetch.Options{Depth: 2, BatchesPerCopy: 4})
			peer, err := cpu.Open(cpu.Options{Index: 1})
			require.NoError(t, err)
			remote, err := peer.NewStream(device.StreamOptions{})
			require.NoError(t, err)
			var all []reading
			for b, err := range r.pf.Batches(t.Context()) {
				require.NoError(t, err)
				all = append(all, r.read(b, time.Millisecond))
				if len(all) == 10 {
					require.NoError(t, b.UsedOn(remote))
					b.Release()
					require.NoError(t, remote.Synchronize(t.Context())) // work that a closed peer never did is a fault of who waits
					require.NoError(t, remote.Close())
					var left *cpu.LeakError
					require.ErrorAs(t, peer.Close(), &left)
					require.Equal(t, cpu.Live{Events: 1}, left.Live, "the Prefetcher's own")
					if closeFirst {
						break
					}
				}
			}
			if !closeFirst {
				r.sequence(all, 1)
			}
			r.close()
		})
	}
}

// loner is a device that no other is a peer of.
type loner struct{ driver.Device }

// What UsedOn can't do it says itself, by a typed error, and the range goes on.
func TestUsedOnRefusesWhatCannotWork(t *testing.T) {
	for _, per := range []int{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, canary{n: 80, width: 16}, adversarial(time.Millisecond), 2, plain, prefetch.Options{BatchesPerCopy: per, Streams: prefetch.Streams{Max: 2}})
			closed, open, third := r.stream("closed"), r.stream("open"), r.stream("third")
			require.NoError(t, closed.Close())
			another := r.stream("another") // perhaps with the handle of the closed one
			peer, err := cpu.Open(cpu.Options{Index: 1})
			require.NoError(t, err)
			gone, err := peer.NewStream(device.StreamOptions{Name: "gone"})
			require.NoError(t, err)
			require.Error(t, peer.Close()) // its stream is left
			drv, err := cpu.New(cpu.Options{Index: 2})
			require.NoError(t, err)
			alone := device.New(loner{drv})
			foreign, err := alone.NewStream(device.StreamOptions{Name: "foreign"})
			require.NoError(t, err)
			var all []reading
			for b, err := range r.pf.Batches(t.Context()) {
				require.NoError(t, err)
				require.NoError(t, b.UsedOn(open))
				for s, want := range map[*device.Stream]error{
					closed: device.ErrInvalid, gone: device.ErrClosed, foreign: device.ErrUnsupported, third: prefetch.ErrMaxStreams,
				} {
					if len(all)%2 == 0 { // not as the second one, but as the only one
						require.ErrorIs(t, b.UsedOn(third), prefetch.ErrMaxStreams)
						require.ErrorContains(t, b.UsedOn(third), "allows (2)")
					}
					err := b.UsedOn(s)
					var refused *prefetch.StreamError
					if s != third && errors.Is(err, prefetch.ErrMaxStreams) {
						continue // one reason is enough
					}
					require.ErrorAs(t, err, &refused)
					require.ErrorIs(t, err, want)
					require.Equal(t, b.Position(), refused.Position)
					require.Equal(t, s.Name(), refused.Stream)
				}
				err := b.UsedOn(nil)
				require.ErrorContains(t, err, "the stream is nil")
				require.NotErrorIs(t, err, prefetch.ErrMaxStreams)
				all = append(all, r.readOn(b, open, time.Millisecond))
			}
			r.sequence(all, 1)
			require.NoError(t, errors.Join(open.Close(), third.Close(), another.Close(), foreign.Close(), alone.Close()))
			r.close()
		})
	}
}

// A stream that its owner closed too early, before the Release: the error is clear,
// what it still reads isn't overwritten, and all goes on.
func TestAStreamThatIsGoneAtTheRelease(t *testing.T) {
	data := canary{n: 160, width: 16}
	for name, po := range usedOnForms(data) {
		for _, at := range []int{0, 5, 79} {
			t.Run(fmt.Sprint(name, at), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					co := adversarial(2 * time.Millisecond)
					co.Model.ComputeEngines = 3
					r := newRig(t, data, co, 2, plain, po)
					var all []reading
					var failed []error
					for range 3 {
						for b, err := range r.pf.Batches(t.Context()) {
							if err != nil {
								failed = append(failed, err)
								break
							}
							if b.Position().Batch == at && len(failed) == 0 && b.Position().Epoch == 0 {
								temp := r.stream("temp")
								require.NoError(t, b.UsedOn(temp))
								all = append(all, r.readOn(b, temp, 200*time.Millisecond))
								require.NoError(t, temp.Close())
							} else {
								all = append(all, r.read(b, time.Millisecond))
							}
						}
					}
					require.Len(t, failed, 1)
					require.ErrorIs(t, failed[0], device.ErrInvalid)
					require.ErrorContains(t, failed[0], "prefetch: Release:")
					require.NoError(t, r.dev.Synchronize(t.Context()))
					for _, got := range all {
						require.NoError(t, r.verify(got))
					}
					r.close()
				})
			})
		}
	}
}

// The end of a use that can't be marked: the next range waits for the stream before
// it writes to the memory, and so does Close before it frees it.
func TestAReleaseThatFailsIsNoReasonToOverwrite(t *testing.T) {
	boom := errors.New("boom")
	data := canary{n: 160, width: 16}
	for name, po := range usedOnForms(data) {
		for _, on := range []string{"compute", "other"} {
			for _, end := range []string{"range", "Close"} {
				t.Run(name+"/"+on+"/"+end, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						co := adversarial(time.Millisecond)
						co.Model.ComputeEngines = 3
						po.CloseTimeout = time.Minute
						r := newRig(t, data, co, 2, plain, po)
						other := r.stream("other")
						r.before.Streams++
						armed := r.tap.Arm(devicetest.Rule{Op: devicetest.Record, Event: "consumed", Stream: on, Nth: 2, Err: boom})
						var all []reading
						var failed error
						for b, err := range r.pf.Batches(t.Context()) {
							if failed = err; err != nil {
								break
							}
							require.NoError(t, b.UsedOn(other))
							all = append(all, r.readOn(b, map[string]*device.Stream{"compute": b.Stream(), "other": other}[on], 500*time.Millisecond))
						}
						require.ErrorIs(t, failed, boom)
						require.EqualValues(t, 1, armed.Fired())
						if end == "range" {
							for b, err := range r.pf.Batches(t.Context()) {
								require.NoError(t, err)
								all = append(all, r.read(b, time.Millisecond))
							}
						} else {
							require.NoError(t, r.pf.Close())
							r.nothingLeft()
						}
						require.NoError(t, r.dev.Synchronize(t.Context()))
						for _, got := range all {
							require.NoError(t, r.verify(got))
						}
						require.NoError(t, other.Close())
						r.before.Streams--
						r.close()
					})
				})
			}
		}
	}
}

// A Release behind Close that fails frees its memory when the stream is done.
func TestAReleaseBehindCloseThatFailsLeavesNothing(t *testing.T) {
	boom := errors.New("boom")
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 40, width: 16}, adversarial(time.Millisecond), 2, plain, prefetch.Options{BatchesPerCopy: 2})
		rd, err := r.pf.Open(t.Context())
		require.NoError(t, err)
		var held []prefetch.Batch
		for range 2 {
			b, err := rd.Next(t.Context())
			require.NoError(t, err)
			held = append(held, b)
		}
		var left *prefetch.CloseError
		require.ErrorAs(t, r.pf.Close(), &left)
		r.tap.Arm(devicetest.Rule{Op: devicetest.Record, Event: "consumed", Nth: 1, Err: boom})
		got := []reading{r.read(held[0], time.Second), r.read(held[1], time.Second)}
		held[0].Release()
		held[1].Release()
		require.NoError(t, r.dev.Synchronize(t.Context()))
		for _, got := range got {
			require.NoError(t, r.verify(got))
		}
		synctest.Wait()
		r.nothingLeft()
		require.NoError(t, rd.Close())
	})
}

// UsedOn in one goroutine while another releases the batch: it takes place, or panics
// as on any released batch; of two Releases one takes place.
func TestUsedOnAndReleaseAtOnce(t *testing.T) {
	for _, per := range []int{1, 3} {
		r := newRig(t, canary{n: 300, width: 16}, cpu.Options{}, 2, plain, prefetch.Options{BatchesPerCopy: per, Depth: 2})
		other := r.stream("other")
		var all []reading
		for b, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err)
			all = append(all, r.read(b, 0))
			var releases, stale atomic.Int32
			var wg sync.WaitGroup
			try := func(f func()) {
				wg.Go(func() {
					defer func() {
						if v := recover(); v != nil {
							require.Contains(t, v, "after its release")
							stale.Add(1)
						}
					}()
					f()
				})
			}
			for range 2 {
				try(func() { b.Release(); releases.Add(1) })
				try(func() { require.NoError(t, b.UsedOn(other)) })
			}
			wg.Wait()
			require.EqualValues(t, 1, releases.Load())
			require.GreaterOrEqual(t, stale.Load(), int32(1))
			require.Panics(t, func() { _ = b.UsedOn(other) })
		}
		r.sequence(all, 1)
		require.NoError(t, other.Close())
		r.close()
	}
}

// A late Release of a batch that another goroutine has released is never taken for the
// one of the batch that has come into its memory: each lease ends once.
func TestALateReleaseEndsNoOtherLease(t *testing.T) {
	r := newRig(t, canary{n: 400, width: 1}, cpu.Options{}, 1, loader.Options{Workers: 1}, prefetch.Options{Depth: 1})
	var current atomic.Pointer[prefetch.Batch]
	var ended atomic.Int32
	release := func(b prefetch.Batch) {
		defer func() { _ = recover() }()
		b.Release()
		ended.Add(1)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					if b := current.Load(); b != nil {
						release(*b)
					}
				}
			}
		})
	}
	rd, err := r.pf.Open(t.Context())
	require.NoError(t, err)
	for n := int32(1); ; n++ {
		b, err := rd.Next(t.Context())
		if errors.Is(err, prefetch.ErrEpochEnd) {
			break
		}
		require.NoError(t, err)
		current.Store(&b)
		release(b)
		for ended.Load() < n { // a goroutine above was faster, and isn't through yet
			runtime.Gosched()
		}
		require.Equal(t, n, ended.Load())
	}
	close(done)
	wg.Wait()
	require.NoError(t, rd.Close())
	r.close()
}

// An event that can't be waited for is no reason to free what is in use.
func TestCloseWaitsWhereAnEventFails(t *testing.T) {
	boom := errors.New("boom")
	data := canary{n: 2, width: 16} // one batch: no upload waits for its slot
	for name, po := range usedOnForms(data) {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprint(name, late), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, data, adversarial(time.Millisecond), 2, plain, po)
					rd, err := r.pf.Open(t.Context())
					require.NoError(t, err)
					b, err := rd.Next(t.Context())
					require.NoError(t, err)
					got := r.read(b, time.Second)
					if !late {
						b.Release()
					}
					r.tap.Arm(devicetest.Rule{Op: devicetest.SynchronizeEvent, Event: "consumed", Nth: 1, Err: boom})
					err = r.pf.Close()
					if late {
						b.Release()
					} else {
						require.ErrorIs(t, err, boom)
						r.nothingLeft()
					}
					require.NoError(t, r.dev.Synchronize(t.Context()))
					require.NoError(t, r.verify(got))
					synctest.Wait()
					r.nothingLeft()
					require.NoError(t, rd.Close())
				})
			})
		}
	}
}

// UsedOn of one batch beside Next, which delivers another of the same copy.
func TestUsedOnBesideNext(t *testing.T) {
	r := newRig(t, canary{n: 400, width: 16}, cpu.Options{}, 2, plain, prefetch.Options{BatchesPerCopy: 8, Depth: 2, Streams: prefetch.Streams{Compute: 2}})
	other := r.stream("other")
	rd, err := r.pf.Open(t.Context())
	require.NoError(t, err)
	var all []reading
	var wg sync.WaitGroup
	for {
		b, err := rd.Next(t.Context())
		if errors.Is(err, prefetch.ErrLeases) {
			wg.Wait()
			continue
		}
		if errors.Is(err, prefetch.ErrEpochEnd) {
			break
		}
		require.NoError(t, err)
		all = append(all, r.read(b, 0))
		wg.Go(func() {
			require.NoError(t, b.UsedOn(other))
			b.Release()
		})
	}
	wg.Wait()
	require.NoError(t, rd.Close())
	r.sequence(all, 1)
	require.NoError(t, other.Close())
	r.close()
}
