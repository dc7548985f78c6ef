package prefetch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// two is two pipelines of different data on one device.
func two(t *testing.T, co cpu.Options, batchSize int, lo loader.Options, po prefetch.Options) (a, b *rig, closeAll func()) {
	t.Helper()
	plain, err := cpu.New(co)
	require.NoError(t, err)
	_, drv := watch(t, plain)
	a = newRigOn(t, drv, cpuSpin, canary{n: 60, width: 9}, batchSize, lo, po)
	lo.Seed++
	b = newRigOn(t, drv, cpuSpin, canary{n: 80, width: 17}, batchSize, lo, po)
	return a, b, func() {
		for _, r := range []*rig{a, b} {
			require.NoError(t, r.dev.Synchronize(t.Context()))
			require.NoError(t, r.pf.Close())
			r.nothingLeft()
			require.NoError(t, errors.Join(r.arena.Close(), r.compute.Close()))
		}
		require.NoError(t, drv.Close())
	}
}

func TestTwoPrefetchersAlternateOnOneDevice(t *testing.T) {
	lo := loader.Options{Shuffle: true, Seed: 21, Workers: 2, Epochs: 2}
	for _, po := range []prefetch.Options{{}, {Depth: 1, Memory: prefetch.Memory{HostSlots: 1}}, {BatchesPerCopy: 3}, {Streams: prefetch.Streams{Compute: 2}}} {
		for turn := 1; turn <= 4; turn++ {
			t.Run(fmt.Sprintf("%+v/turn=%d", po, turn), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					co := adversarial(2 * time.Millisecond)
					co.Adversary.Reorder, co.Adversary.Delay, co.Adversary.CheckInputs = true, time.Millisecond, true
					a, b, closeAll := two(t, co, 4, lo, po)
					var ofA, ofB []reading
					for a.pf.Epoch() < 2 || b.pf.Epoch() < 2 {
						ofA = append(ofA, a.until(turn, "break")...)
						ofB = append(ofB, b.until(5-turn, "break")...)
					}
					a.sequence(ofA, 2)
					b.sequence(ofB, 2)
					closeAll()
				})
			})
		}
	}
}

// Two readers with leases that overlap, batch by batch.
func TestTwoReadersInterleave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		co := adversarial(2 * time.Millisecond)
		a, b, closeAll := two(t, co, 4, loader.Options{Shuffle: true, Workers: 2}, prefetch.Options{Depth: 2})
		rigs := []*rig{a, b}
		readers := make([]*prefetch.Reader, 2)
		all := make([][]reading, 2)
		held := make([]prefetch.Batch, 2)
		for i, r := range rigs {
			var err error
			readers[i], err = r.pf.Open(t.Context())
			require.NoError(t, err)
		}
		for open := 2; open > 0; {
			for i, r := range rigs {
				if readers[i] == nil {
					continue
				}
				next, err := readers[i].Next(t.Context())
				if held[i] != (prefetch.Batch{}) {
					held[i].Release()
				}
				if errors.Is(err, prefetch.ErrEpochEnd) {
					require.NoError(t, readers[i].Close())
					readers[i] = nil
					open--
					continue
				}
				require.NoError(t, err)
				all[i] = append(all[i], r.read(next, 3*time.Millisecond))
				held[i] = next
			}
		}
		a.sequence(all[0], 1)
		b.sequence(all[1], 1)
		closeAll()
	})
}

// Each from a goroutine of its own, and one is closed in the middle of the other's
// epoch.
func TestOneClosesWhileTheOtherGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		co := adversarial(2 * time.Millisecond)
		co.Adversary.CheckInputs = true
		a, b, closeAll := two(t, co, 4, loader.Options{Shuffle: true, Workers: 2, Epochs: 3}, prefetch.Options{})
		third, err := prefetch.New(b.compute, b.ld, prefetch.Options{})
		require.NoError(t, err)
		failed := make(chan error)
		go func() { failed <- a.epochs(3, 3*time.Millisecond) }()
		n := 0
		for batch, err := range third.Batches(t.Context()) {
			require.NoError(t, err)
			if n++; n == 7 {
				break
			}
			require.NoError(t, cpuSpin(batch.Stream(), 5*time.Millisecond))
		}
		require.NoError(t, third.Close())
		require.NoError(t, b.epochs(3, time.Millisecond))
		require.NoError(t, <-failed)
		closeAll()
	})
}

// A compute stream that stands still for two seconds holds up what it holds, costs
// no memory, and everything goes on behind it.
func TestAStreamThatStandsStillCostsNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		co := adversarial(time.Millisecond)
		co.Model.ComputeEngines = 2
		r := newRig(t, canary{n: 80, width: 9}, co, 2, loader.Options{Workers: 2, Shuffle: true}, prefetch.Options{Depth: 4, Streams: prefetch.Streams{Compute: 2}})
		before := r.dev.Usage()
		start := time.Now()
		var all []reading
		for b, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err)
			busy := time.Millisecond
			if b.Position().Batch == 5 {
				busy = 2 * time.Second
			}
			all = append(all, r.read(b, busy))
			require.Equal(t, before, r.dev.Usage())
		}
		r.sequence(all, 1)
		require.Less(t, time.Since(start), 3*time.Second)
		r.close()
	})
}

// An interrupt cancels the context of a program that waits for its next batch: the
// range ends at once, the device's work ends, and nothing is left.
func TestACancelledContextEndsTheWaitForABatch(t *testing.T) {
	for _, stage := range []string{"producers", "device"} {
		t.Run(stage, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				interrupt := errors.New("interrupt")
				ctx, cancel := context.WithCancelCause(t.Context())
				data := canary{n: 100, width: 4, read: func(ctx context.Context, i int) error {
					if stage == "producers" && i >= 10 {
						<-ctx.Done()
						return context.Cause(ctx)
					}
					return nil
				}}
				r := newRig(t, data, adversarial(time.Millisecond), 2, plain, prefetch.Options{Depth: 2})
				time.AfterFunc(time.Second, func() { cancel(interrupt) })
				start := time.Now()
				var failed error
				for b, err := range r.pf.Batches(ctx) {
					if err != nil {
						failed = err
						break
					}
					if stage == "device" { // which is behind: then the body is what waits
						require.NoError(t, cpuSpin(b.Stream(), 100*time.Millisecond))
						_ = b.Stream().Synchronize(ctx)
					}
				}
				require.ErrorIs(t, failed, interrupt)
				require.Equal(t, time.Second, time.Since(start))
				r.close()
				require.LessOrEqual(t, time.Since(start), 2*time.Second)
			})
		})
	}
}

// A slow source is waited for by the producers and not by the loop, which only ever
// waits for the difference.
func TestALoopSlowerThanItsSourceNeverWaits(t *testing.T) {
	const ms = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		data := canary{n: 50, width: 8, read: func(context.Context, int) error { time.Sleep(30 * ms); return nil }}
		r := newRig(t, data, cpu.Options{Model: modelled(ms)}, 1, loader.Options{Workers: 1}, prefetch.Options{})
		for b, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err)
			require.NoError(t, cpuSpin(b.Stream(), 40*ms))
			require.NoError(t, b.Stream().Synchronize(t.Context()))
		}
		require.Equal(t, 30*ms, r.pf.Stats().WaitProducer, "for the first batch")
		r.close()
	})
}

// A hand-over for later: the batch is read on the device long after its release was
// called on the host, while the ring goes on.
func TestWorkSubmittedBeforeReleaseSeesItsOwnBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 40, width: 33}, adversarial(time.Millisecond), 2, plain, prefetch.Options{Depth: 3, Memory: prefetch.Memory{HostSlots: 2}})
		rd, err := r.pf.Open(t.Context())
		require.NoError(t, err)
		var all []reading
		for {
			b, err := rd.Next(t.Context())
			if errors.Is(err, prefetch.ErrEpochEnd) {
				break
			}
			require.NoError(t, err)
			all = append(all, r.read(b, 50*time.Millisecond))
			b.Release()
		}
		require.NoError(t, rd.Close())
		r.sequence(all, 1)
		r.close()
	})
}

// Leases that outlive Close keep their memory, and the device stays usable by
// others meanwhile.
func TestLeasesOutliveCloseWhileTheDeviceGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 40, width: 8}, adversarial(time.Millisecond), 2, plain, prefetch.Options{Depth: 3, Streams: prefetch.Streams{Compute: 2}})
		rd, err := r.pf.Open(t.Context())
		require.NoError(t, err)
		var held []prefetch.Batch
		for range 3 {
			b, err := rd.Next(t.Context())
			require.NoError(t, err)
			held = append(held, b)
		}
		require.NoError(t, rd.Close())
		var left *prefetch.CloseError
		require.ErrorAs(t, r.pf.Close(), &left)
		require.Len(t, left.Leased, 3)

		next, err := prefetch.New(r.compute, r.ld, prefetch.Options{})
		require.NoError(t, err)
		closed := r.pf
		r.pf = next
		require.NoError(t, r.epochs(1, time.Millisecond))
		require.NoError(t, next.Close())
		r.pf = closed

		var all []reading
		for _, b := range held {
			all = append(all, r.read(b, time.Millisecond))
			b.Release()
		}
		require.NoError(t, r.dev.Synchronize(t.Context()))
		for _, got := range all {
			require.NoError(t, r.verify(got))
		}
		synctest.Wait()
		r.nothingLeft()
		require.NoError(t, r.pf.Close())
	})
}

// Batches that were uploaded ahead and discarded are still being transformed when
// Close comes, and the raw buffers of one that is leased still read.
func TestCloseWaitsForTransformsOfBatchesThatNobodyGets(t *testing.T) {
	for depth, leased := range map[int]bool{3: false, 1: true} {
		synctest.Test(t, func(t *testing.T) {
			data := canary{n: 40, width: 8}
			r := newRig(t, data, adversarial(time.Millisecond), 2, plain, prefetch.Options{Depth: depth, Transform: passOn(cpuSpin, 50*time.Millisecond, data)})
			rd, err := r.pf.Open(t.Context())
			require.NoError(t, err)
			b, err := rd.Next(t.Context())
			require.NoError(t, err)
			synctest.Wait()
			if !leased {
				b.Release()
				require.NoError(t, r.pf.Close())
				r.nothingLeft()
				return
			}
			var left *prefetch.CloseError
			require.ErrorAs(t, r.pf.Close(), &left)
			require.NoError(t, left.Err)
			require.Len(t, left.Leased, 1)
			got := r.read(b, 0)
			b.Release()
			require.NoError(t, r.dev.Synchronize(t.Context()))
			require.NoError(t, r.verify(got))
			synctest.Wait()
			r.nothingLeft()
		})
	}
}
