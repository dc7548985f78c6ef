package prefetch_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/pinnedpool"
	"github.com/leat-go/leat/prefetch"
)

// A host slot whose sample hangs is out of use only until that has returned, whether
// that is before the next range, in it, or behind Close; also where other batches of
// the slot were copied.
func TestASlotComesBackFromQuarantine(t *testing.T) {
	const second = time.Second
	for _, per := range []int{1, 3} {
		for hangs := range 9 {
			for _, returns := range []string{"before", "within", "closed"} {
				t.Run(fmt.Sprint(per, hangs, returns), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						goOn, inside, hung := make(chan struct{}), make(chan struct{}), false
						data := canary{n: 80, width: 8, read: func(_ context.Context, i int) error {
							if i == 2*hangs && !hung {
								hung = true
								close(inside)
								<-goOn
							}
							return nil
						}}
						r := newRig(t, data, adversarial(time.Millisecond), 2, loader.Options{Workers: 1, GracePeriod: second},
							prefetch.Options{BatchesPerCopy: per, Memory: prefetch.Memory{HostSlots: 3 * per}})
						var all []reading
						rd, err := r.pf.Open(t.Context())
						require.NoError(t, err)
						for range hangs {
							b, err := rd.Next(t.Context())
							require.NoError(t, err)
							all = append(all, r.read(b, 5*time.Millisecond))
							b.Release()
						}
						<-inside
						var stuck *loader.StuckError
						require.ErrorAs(t, halt(r.pf, rd), &stuck)
						require.Equal(t, 1, r.pf.Stats().Pool.Quarantined)
						if returns == "before" {
							close(goOn)
							synctest.Wait()
							require.Zero(t, r.pf.Stats().Pool.Quarantined)
						}
						if returns == "closed" {
							require.ErrorContains(t, r.pf.Close(), fmt.Sprintf("1 of %d buffers are not back", 3*per))
							require.EqualValues(t, 1, r.dev.Usage().HostBuffers-r.before.HostBuffers)
							close(goOn)
							synctest.Wait()
							require.NoError(t, r.dev.Synchronize(t.Context()))
							for _, got := range all {
								require.NoError(t, r.verify(got))
							}
							r.nothingLeft()
							return
						}
						for b, err := range r.pf.Batches(t.Context()) {
							require.NoError(t, err)
							all = append(all, r.read(b, 5*time.Millisecond))
							if len(all) == 20 && returns == "within" {
								close(goOn)
							}
						}
						r.sequence(all, 1)
						require.NoError(t, r.pf.Seek(0, 0))
						r.used = 0
						require.NoError(t, r.epochs(1, time.Millisecond))
						require.Zero(t, r.pf.Stats().Pool.Quarantined)
						require.NoError(t, r.pf.Quiesce(t.Context()))
						require.Equal(t, 3*per, r.pf.Stats().Pool.Free)
						r.close()
					})
				})
			}
		}
	}
}

// Close tells of a host slot that is out of use also where the user still has a batch.
func TestQuarantineBesideALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		data := canary{n: 20, width: 8, read: func(_ context.Context, i int) error {
			if i == 4 {
				<-goOn
			}
			return nil
		}}
		r := newRig(t, data, cpu.Options{}, 2, loader.Options{Workers: 1, GracePeriod: time.Second},
			prefetch.Options{Memory: prefetch.Memory{HostSlots: 3}})
		rd, err := r.pf.Open(t.Context())
		require.NoError(t, err)
		b, err := rd.Next(t.Context())
		require.NoError(t, err)
		synctest.Wait()
		var stuck *loader.StuckError
		require.ErrorAs(t, halt(r.pf, rd), &stuck)
		err = r.pf.Close()
		var left *prefetch.CloseError
		require.ErrorAs(t, err, &left)
		require.Len(t, left.Leased, 1)
		require.ErrorContains(t, err, "1 of 3 buffers are not back")
		b.Release()
		close(goOn)
		synctest.Wait()
		require.NoError(t, r.dev.Synchronize(t.Context()))
		synctest.Wait()
		r.nothingLeft()
	})
}

// It may be the only slot there is, and come back while the next run begins.
func TestTheOnlySlotComesBackFromQuarantine(t *testing.T) {
	for _, settled := range []bool{true, false} { // it is back before the next run begins, or while it does
		for hangs := range 4 {
			synctest.Test(t, func(t *testing.T) {
				goOn, inside, hung := make(chan struct{}), make(chan struct{}), false
				data := canary{n: 20, width: 8, read: func(_ context.Context, i int) error {
					if i == 2*hangs && !hung {
						hung = true
						close(inside)
						<-goOn
					}
					return nil
				}}
				r := newRig(t, data, adversarial(time.Millisecond), 2, loader.Options{Workers: 1, GracePeriod: time.Second},
					prefetch.Options{BatchesPerCopy: 4, Memory: prefetch.Memory{HostSlots: 4}})
				var all []reading
				rd, err := r.pf.Open(t.Context())
				require.NoError(t, err)
				for range hangs {
					b, err := rd.Next(t.Context())
					require.NoError(t, err)
					all = append(all, r.read(b, 0))
					b.Release()
				}
				<-inside
				var stuck *loader.StuckError
				require.ErrorAs(t, halt(r.pf, rd), &stuck)
				close(goOn)
				if settled {
					synctest.Wait()
				}
				for r.pf.Epoch() == 0 {
					for b, err := range r.pf.Batches(t.Context()) {
						if err != nil && !settled { // the range was the faster one
							require.ErrorIs(t, err, pinnedpool.ErrExhausted)
							break
						}
						require.NoError(t, err)
						all = append(all, r.read(b, 0))
					}
				}
				require.Len(t, all, 10)
				require.NoError(t, r.dev.Synchronize(t.Context()))
				for i, got := range all {
					require.Equal(t, i, got.at.Batch)
					require.NoError(t, r.verify(got))
				}
				r.close()
			})
		}
	}
}

// Other batches of a slot in quarantine may still be copied when Close comes: it waits
// for that before it frees what the copy writes.
func TestCloseWaitsForCopiesOfASlotInQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn, inside := make(chan struct{}), make(chan struct{})
		data := canary{n: 80, width: 8, read: func(_ context.Context, i int) error {
			if i == 4 {
				close(inside)
				<-goOn
			}
			return nil
		}}
		r := newRig(t, data, adversarial(20*time.Second), 2, loader.Options{Workers: 1, GracePeriod: time.Second},
			prefetch.Options{BatchesPerCopy: 3, CloseTimeout: time.Hour, Memory: prefetch.Memory{HostSlots: 3}})
		start := time.Now()
		rd, err := r.pf.Open(t.Context())
		require.NoError(t, err)
		<-inside
		synctest.Wait() // those before it are on their way, and nobody gets them
		var stuck *loader.StuckError
		require.ErrorAs(t, halt(r.pf, rd), &stuck)
		require.ErrorContains(t, r.pf.Close(), "1 of 3 buffers are not back")
		require.GreaterOrEqual(t, time.Since(start), 20*time.Second)
		close(goOn)
		synctest.Wait()
		require.NoError(t, r.dev.Synchronize(t.Context()))
		r.nothingLeft()
	})
}

// With every slot in quarantine there is nothing to release: the error says what is so.
func TestEverySlotInQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		data := canary{n: 20, width: 8, read: func(context.Context, int) error { <-goOn; return nil }}
		ld, err := loader.New(data, 2, loader.Options{Workers: 1, GracePeriod: time.Second})
		require.NoError(t, err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{Memory: prefetch.Memory{HostSlots: 1}})
		require.NoError(t, err)
		var stuck *loader.StuckError
		r, err := pf.Open(t.Context())
		require.NoError(t, err)
		synctest.Wait()
		require.ErrorAs(t, halt(pf, r), &stuck)
		r, err = pf.Open(t.Context())
		require.NoError(t, err)
		_, err = r.Next(t.Context())
		require.ErrorIs(t, err, pinnedpool.ErrExhausted)
		require.NotErrorIs(t, err, prefetch.ErrLeases)
		require.NoError(t, r.Close())
		close(goOn)
		synctest.Wait()
		for b, err := range pf.Batches(t.Context()) {
			require.NoError(t, err)
			require.Zero(t, b.Position().Batch)
			break
		}
		require.NoError(t, pf.Close())
	})
}
