package group_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/group"
)

// reads counts how often each sample was read.
type reads struct {
	mu    sync.Mutex
	times map[int]int
}

func (r *reads) read(_ context.Context, index int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.times == nil {
		r.times = map[int]int{}
	}
	r.times[index]++
	return nil
}

func (r *reads) of(index int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.times[index]
}

// Start, Stop and Quiesce are for all devices. Samples 0 and 1 are the first device's, 2 and 3
// the second's.
func TestStartStopAndQuiesceReachEveryDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var counts reads
		r := newRig(t, canary{n: 400, width: 5, read: counts.read}, repeat(copies(time.Second), 2), 4,
			loader.Options{Workers: 2}, prefetch.Options{Depth: 2, BatchesPerCopy: 1})
		require.NoError(t, r.g.Start(t.Context()))
		time.Sleep(time.Second / 2) // a copy is under way on each device
		require.Equal(t, [2]int{1, 1}, [2]int{counts.of(0), counts.of(2)})

		require.NoError(t, r.g.Quiesce(t.Context()))
		at := time.Now()
		r.rest()
		require.Zero(t, time.Since(at), "the devices were at rest")

		require.NoError(t, r.g.Stop())
		require.NoError(t, r.g.Start(t.Context()))
		time.Sleep(time.Second)
		require.Equal(t, [2]int{2, 2}, [2]int{counts.of(0), counts.of(2)}, "what was read ahead was thrown away")
		r.close()
	})
}

// Who is in the way of a device is in the way of all, and has no number.
func TestQuiesceBesideNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(context.Context, int) error { time.Sleep(time.Second); return nil }
		r := newRig(t, canary{n: 400, width: 5, read: slow}, repeat(copies(0), 2), 4, loader.Options{}, prefetch.Options{})
		rd, err := r.g.Open(t.Context())
		require.NoError(t, err)
		done := make(chan error)
		go func() {
			s, err := rd.Next(t.Context())
			if err == nil {
				s.Release()
			}
			done <- err
		}()
		synctest.Wait()
		require.Equal(t, prefetch.ErrBusy, r.g.Quiesce(t.Context()))
		require.NoError(t, <-done)
		require.NoError(t, rd.Close())
		r.close()
	})
}

// If the second device can't be moved, because its samples don't come back, the first one is
// moved back.
func TestASeekMovesAllDevicesOrNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		r := newRig(t, canary{n: 400, width: 5, read: func(_ context.Context, index int) error {
			if index%4 >= 2 {
				<-stuck
			}
			return nil
		}}, repeat(copies(0), 2), 4, loader.Options{Workers: 2, GracePeriod: time.Second}, prefetch.Options{})
		require.NoError(t, r.g.Start(t.Context()))
		synctest.Wait()
		err := r.g.Seek(0, 40)
		var of *group.DeviceError
		require.ErrorAs(t, err, &of)
		require.Equal(t, 1, of.Index)
		require.Zero(t, r.g.State().Position)
		close(stuck)
		var steps [][]reading
		for s, err := range r.g.Steps(t.Context()) {
			require.NoError(t, err)
			if steps = append(steps, r.step(s, 0)); len(steps) == 5 {
				break
			}
		}
		r.verify(steps, 0)
		require.ErrorAs(t, r.g.Seek(0, 401), &of)
		require.Zero(t, of.Index)
		r.close()
	})
}

// What can't be mapped is said before any work, and a Map can follow.
func TestMapRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, canary{n: 40, width: 5}, repeat(copies(ms), 2), 4, loader.Options{Epochs: 1}, prefetch.Options{}, speeds(ms, ms))
		first := func(o prefetch.Output, work group.Work) error {
			for _, err := range s.p.Map(t.Context(), o, work) {
				return err
			}
			return nil
		}
		var option *prefetch.OptionError
		require.ErrorAs(t, first(s.output(), nil), &option)
		require.Equal(t, "work", option.Option)
		require.Error(t, first(prefetch.Output{}, s.work), "an output without fields")
		results := 0
		for r, err := range s.p.Map(t.Context(), s.output(), s.work) {
			require.NoError(t, err)
			s.check(r)
			if results++; results == 2 {
				require.Equal(t, prefetch.ErrBusy, first(s.output(), s.work))
			}
		}
		require.Equal(t, 10, results)
		require.NoError(t, first(s.output(), s.work), "nothing is left")
		require.NoError(t, s.p.Close())
		require.Equal(t, prefetch.ErrClosed, first(s.output(), s.work))
		s.close()
	})
}
