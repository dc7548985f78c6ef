package prefetch_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// closes calls Close, whose error may tell of leases alone.
func closes(t *testing.T, pf *prefetch.Prefetcher) {
	var left *prefetch.CloseError
	if err := pf.Close(); errors.As(err, &left) {
		require.NoError(t, left.Err)
	} else {
		require.NoError(t, err)
	}
}

func TestAHostLeaseOutlivesItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ld, err := loader.New(canary{n: 20, width: 4}, 2, plain)
		require.NoError(t, err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{Memory: prefetch.Memory{HostSlots: 1}})
		require.NoError(t, err)
		for range 3 {
			rd, err := pf.Open(t.Context())
			require.NoError(t, err)
			b, err := rd.Next(t.Context())
			require.NoError(t, err)
			require.NoError(t, rd.Close())
			b.Release()
			require.Zero(t, pf.Stats().Leases)
			synctest.Wait()
			require.Equal(t, 1, pf.Stats().Pool.Slots-pf.Stats().Pool.Free, "the only slot holds the next batch")
		}
		rd, err := pf.Open(t.Context())
		require.NoError(t, err)
		b, err := rd.Next(t.Context())
		require.NoError(t, err)
		var left *prefetch.CloseError
		require.ErrorAs(t, pf.Close(), &left)
		b.Release()
		require.Zero(t, pf.Stats().Pool.Bytes, "the last lease frees its slot")
		require.NoError(t, rd.Close())
	})
}

// Whatever comes first, Close, the Releases or Stats: nothing is left.
func TestCloseAndReleaseAtOnce(t *testing.T) {
	for i := range 60 {
		synctest.Test(t, func(t *testing.T) {
			po := prefetch.Options{BatchesPerCopy: 1 + i/3%3, Timing: i%2 == 0, Streams: prefetch.Streams{Compute: 1 + i%3}, Memory: prefetch.Memory{HostSlots: 3}}
			r := newRig(t, canary{n: 40, width: 4}, cpu.Options{}, 4, loader.Options{Workers: 1, Epochs: 2}, po)
			host, err := prefetch.NewHost(r.ld, prefetch.Options{Memory: prefetch.Memory{HostSlots: 3}})
			require.NoError(t, err)
			for _, pf := range []*prefetch.Prefetcher{r.pf, host} {
				rd, err := pf.Open(t.Context())
				require.NoError(t, err)
				var wg sync.WaitGroup
				for range 2 {
					b, err := rd.Next(t.Context())
					require.NoError(t, err)
					wg.Go(b.Release)
				}
				wg.Go(func() { require.NotEmpty(t, pf.Stats().String()) })
				wg.Go(func() { closes(t, pf) })
				wg.Wait()
				require.NoError(t, rd.Close())
				synctest.Wait() // the reapers
				require.Zero(t, pf.Stats().Pool.Bytes)
			}
			r.nothingLeft()
		})
	}
}

// A range or a Map that begins while Close is under way ends with ErrClosed or not at
// all.
func TestCloseWhileRangesBeginAndEnd(t *testing.T) {
	for name, epoch := range map[string]func(ctx context.Context, r *rig) error{
		"Batches": func(ctx context.Context, r *rig) error {
			for _, err := range r.pf.Batches(ctx) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"Map": func(ctx context.Context, r *rig) error {
			for _, err := range r.pf.Map(ctx, prefetch.Output{Fields: r.data.Fields()}, r.echo(always(0))) {
				if err != nil {
					return err
				}
			}
			return nil
		},
	} {
		for i := range 60 {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, canary{n: 40, width: 4}, cpu.Options{}, 4, loader.Options{Workers: 1, Epochs: 10}, prefetch.Options{Streams: prefetch.Streams{Compute: 1 + i%2}})
				var wg sync.WaitGroup
				wg.Go(func() {
					for r.pf.Epoch() < 10 {
						if err := epoch(t.Context(), r); err != nil {
							require.ErrorIs(t, err, prefetch.ErrClosed, name)
							return
						}
					}
				})
				wg.Go(func() {
					for range 60 * i {
						r.pf.Epoch() // takes a little while
					}
					closes(t, r.pf)
				})
				wg.Wait()
				synctest.Wait()
				r.nothingLeft()
			})
		}
	}
}

// A Map that is left while the device is busy for longer than Close may take: the
// compute streams live until the results' memory is free.
func TestAMapLeftBehindIsFreedInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 20, width: 4}, cpu.Options{Model: stages(0, 0, 2)}, 2, plain, prefetch.Options{CloseTimeout: time.Second, Streams: prefetch.Streams{Compute: 2}})
		slow := func(at prefetch.Position) time.Duration { return time.Duration(at.Batch) * time.Minute }
		for res, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: r.data.Fields()}, r.echo(slow)) {
			require.NoError(t, err)
			if res.Position().Batch == 1 {
				break // by now the steps behind it are on the device
			}
		}
		require.Error(t, r.pf.Close(), "the device still works")
		require.NoError(t, r.dev.Synchronize(context.Background()))
		synctest.Wait()
		r.nothingLeft()
	})
}

// A producer that never returns takes its slot out of use. Who holds all others is
// told so.
func TestHoldingAllHostSlotsButAStuckOneFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs, goOn := make(chan struct{}), make(chan struct{})
		var hung atomic.Bool
		data := canary{n: 8, width: 4, read: func(_ context.Context, i int) error {
			if i == 2 && !hung.Swap(true) {
				close(hangs)
				<-goOn
			}
			return nil
		}}
		ld, err := loader.New(data, 1, loader.Options{Workers: 1})
		require.NoError(t, err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{Memory: prefetch.Memory{HostSlots: 3}})
		require.NoError(t, err)
		for _, err := range pf.Batches(t.Context()) {
			require.NoError(t, err)
			<-hangs
			break
		}
		var stuck *loader.StuckError
		require.ErrorAs(t, pf.Seek(1, 0), &stuck)
		rd, err := pf.Open(t.Context())
		require.NoError(t, err)
		var held [2]prefetch.Batch
		for i := range held {
			held[i], err = rd.Next(t.Context())
			require.NoError(t, err)
		}
		_, err = rd.Next(t.Context())
		require.ErrorIs(t, err, prefetch.ErrLeases)
		for _, b := range held {
			b.Release()
		}
		require.NoError(t, rd.Close())
		err = pf.Close()
		require.ErrorContains(t, err, "1 of 3 buffers are not back")
		require.NotContains(t, err.Error(), "cpu", "the user has no such device")
		close(goOn)
	})
}
