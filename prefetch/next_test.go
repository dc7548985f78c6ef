package prefetch_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// forms are the kinds of pipeline that a consumer can stand behind. open makes one,
// whose transform, if it has one, takes busy for each batch.
var forms = []struct {
	name string
	open func(t *testing.T, data canary, batchSize int, lo loader.Options, po prefetch.Options, busy time.Duration) *prefetch.Prefetcher
}{
	{"device", func(t *testing.T, data canary, batchSize int, lo loader.Options, po prefetch.Options, _ time.Duration) *prefetch.Prefetcher {
		return newRig(t, data, adversarial(time.Millisecond), batchSize, lo, po).pf
	}},
	{"device with transform", func(t *testing.T, data canary, batchSize int, lo loader.Options, po prefetch.Options, busy time.Duration) *prefetch.Prefetcher {
		po.Transform = passOn(cpuSpin, busy, data)
		return newRig(t, data, adversarial(time.Millisecond), batchSize, lo, po).pf
	}},
	{"host", func(t *testing.T, data canary, batchSize int, lo loader.Options, po prefetch.Options, _ time.Duration) *prefetch.Prefetcher {
		po.Memory.HostSlots = 3
		return hostOf(t, data, batchSize, lo, po)
	}},
	{"host with transform", func(t *testing.T, data canary, batchSize int, lo loader.Options, po prefetch.Options, busy time.Duration) *prefetch.Prefetcher {
		po.Transform = passOn(func(s *device.Stream, d time.Duration) error {
			return s.HostFunc(func() { time.Sleep(d) })
		}, busy, data)
		return hostOf(t, data, batchSize, lo, po)
	}},
}

func hostOf(t *testing.T, data canary, batchSize int, lo loader.Options, po prefetch.Options) *prefetch.Prefetcher {
	t.Helper()
	ld, err := loader.New(data, batchSize, lo)
	require.NoError(t, err)
	pf, err := prefetch.NewHost(ld, po)
	require.NoError(t, err)
	return pf
}

// A Next whose own context ends loses nothing: the next one goes on, and no sample is
// read twice.
func TestNextsOwnContext(t *testing.T) {
	const ms = time.Millisecond
	for _, form := range forms {
		t.Run(form.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				reads := map[int]int{}
				data := canary{n: 12, width: 8, read: func(ctx context.Context, i int) error {
					mu.Lock()
					defer mu.Unlock()
					reads[i]++
					select {
					case <-time.After(100 * ms):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				}}
				pf := form.open(t, data, 2, loader.Options{Workers: 1, Epochs: 1}, prefetch.Options{}, 300*ms)
				rd, err := pf.Open(t.Context())
				require.NoError(t, err)
				impatient := errors.New("impatient")
				var got []int
				interrupted := 0
				for len(got) < 6 {
					ctx, cancel := context.WithTimeoutCause(t.Context(), 30*ms, impatient)
					b, err := rd.Next(ctx)
					cancel()
					if errors.Is(err, impatient) {
						interrupted++
						require.Less(t, interrupted, 1000)
						continue
					}
					require.NoError(t, err)
					got = append(got, b.Position().Batch)
					b.Release()
				}
				require.Equal(t, []int{0, 1, 2, 3, 4, 5}, got)
				require.Greater(t, interrupted, 12)
				require.Len(t, reads, 12)
				for i, n := range reads {
					require.Equal(t, 1, n, "sample %d", i)
				}
				_, err = rd.Next(t.Context())
				require.ErrorIs(t, err, prefetch.ErrEpochEnd)
				require.NoError(t, rd.Close())
				require.NoError(t, pf.Close())
			})
		})
	}
}

// A range whose context ends says so, last; the next range goes on behind the last
// batch that was delivered.
func TestARangesContext(t *testing.T) {
	for _, form := range forms {
		t.Run(form.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pf := form.open(t, canary{n: 12, width: 8}, 2, loader.Options{Workers: 1, Epochs: 1}, prefetch.Options{}, time.Millisecond)
				var got []int
				enough := errors.New("enough")
				for pf.Epoch() == 0 {
					ctx, cancel := context.WithCancelCause(t.Context())
					var errs []error
					for b, err := range pf.Batches(ctx) {
						if err != nil {
							errs = append(errs, err)
							continue
						}
						got = append(got, b.Position().Batch)
						cancel(enough)
					}
					cancel(nil)
					if pf.Epoch() == 0 {
						require.Equal(t, []error{enough}, errs)
					}
				}
				require.Equal(t, []int{0, 1, 2, 3, 4, 5}, got)
				require.NoError(t, pf.Close())
			})
		})
	}
}

// One goroutine takes batches for others, which release them when they like.
func TestWaitNextWaitsForReleases(t *testing.T) {
	for _, form := range forms {
		t.Run(form.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pf := form.open(t, canary{n: 40, width: 8}, 2, loader.Options{Workers: 2, Epochs: 1}, prefetch.Options{}, 0)
				rd, err := pf.Open(t.Context())
				require.NoError(t, err)
				queue := make(chan prefetch.Batch, 3)
				var wg sync.WaitGroup
				for range 3 {
					wg.Go(func() {
						for b := range queue {
							time.Sleep(time.Second)
							b.Release()
						}
					})
				}
				start := time.Now()
				for n := 0; ; n++ {
					b, err := rd.WaitNext(t.Context())
					if errors.Is(err, prefetch.ErrEpochEnd) {
						require.Equal(t, 20, n)
						break
					}
					require.NoError(t, err)
					require.Equal(t, n, b.Position().Batch)
					queue <- b
				}
				require.Equal(t, 6*time.Second, time.Since(start).Truncate(time.Second), "three slots, one second each")
				close(queue)
				wg.Wait()
				require.NoError(t, rd.Close())
				require.NoError(t, pf.Close())
			})
		})
	}
}

// While all is held only WaitNext's context and Close wake it; Next doesn't wait.
func TestWhatWakesWaitNext(t *testing.T) {
	for _, form := range forms {
		t.Run(form.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pf := form.open(t, canary{n: 40, width: 8}, 2, loader.Options{Workers: 2, StallTimeout: time.Second}, prefetch.Options{}, 0)
				rd, err := pf.Open(t.Context())
				require.NoError(t, err)
				var held []prefetch.Batch
				for range 3 {
					b, err := rd.WaitNext(t.Context())
					require.NoError(t, err)
					held = append(held, b)
				}
				_, err = rd.Next(t.Context())
				require.ErrorIs(t, err, prefetch.ErrLeases)

				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				_, err = rd.WaitNext(ctx)
				cancel()
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Equal(t, time.Hour, time.Since(start))

				closed := make(chan error)
				go func() {
					time.Sleep(time.Second)
					closed <- pf.Close()
				}()
				start = time.Now()
				_, err = rd.WaitNext(t.Context())
				require.ErrorIs(t, err, prefetch.ErrClosed)
				require.Equal(t, time.Second, time.Since(start))
				var left *prefetch.CloseError
				require.ErrorAs(t, <-closed, &left)
				require.Len(t, left.Leased, 3)
				for _, b := range held {
					b.Release()
				}
				require.NoError(t, rd.Close())
			})
		})
	}
}

// Close wakes a host consumer that waits for its transform's work.
func TestCloseWakesAHostConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		form := forms[3]
		pf := form.open(t, canary{n: 40, width: 8}, 2, loader.Options{Workers: 2}, prefetch.Options{CloseTimeout: time.Second}, time.Minute)
		rd, err := pf.Open(t.Context())
		require.NoError(t, err)
		closed := make(chan error)
		start := time.Now()
		go func() {
			time.Sleep(time.Second)
			closed <- pf.Close()
		}()
		_, err = rd.Next(t.Context())
		require.ErrorIs(t, err, prefetch.ErrClosed)
		require.Equal(t, time.Second, time.Since(start))
		require.ErrorIs(t, <-closed, context.DeadlineExceeded)
		require.Equal(t, 2*time.Second, time.Since(start))
		time.Sleep(time.Hour)
	})
}

// Errors of the user's that wrap what the pipeline tells its own end by, or are it,
// are errors: in a range, a Map and a Reader, at the place where they happen.
func TestAUsersErrorIsNoEnd(t *testing.T) {
	ends := map[string]error{
		"loader.ErrEpochEnd": loader.ErrEpochEnd, "loader.ErrEnd": loader.ErrEnd,
		"prefetch.ErrEpochEnd": prefetch.ErrEpochEnd, "prefetch.ErrClosed": prefetch.ErrClosed,
		"prefetch.ErrBusy": prefetch.ErrBusy, "prefetch.ErrLeases": &prefetch.LeaseError{},
		"context.Canceled": context.Canceled,
	}
	wheres := map[string]func(r *endRig, inner error){
		"read": func(r *endRig, inner error) { r.read = inner },
		"transform": func(r *endRig, inner error) {
			r.transform = inner
		},
		"step": func(r *endRig, inner error) { r.step = inner },
		"cause": func(r *endRig, inner error) {
			r.cause = inner
		},
	}
	for name, end := range ends {
		for where, put := range wheres {
			for _, inner := range []error{end, fmt.Errorf("the inner pipeline: %w", end)} {
				t.Run(fmt.Sprintf("%s/%s/%v", where, name, inner == end), func(t *testing.T) {
					for _, form := range []string{"range", "reader", "map"} {
						for _, epochs := range []int{0, 3} {
							r := &endRig{t: t, form: form, epochs: epochs}
							put(r, inner)
							if where == "step" && form != "map" || where == "cause" && form == "reader" {
								continue // a Reader whose Next is cancelled goes on
							}
							synctest.Test(t, func(t *testing.T) { r.t = t; r.run() })
						}
					}
				})
			}
		}
	}
}

// endRig reads an epoch of twenty batches, in which one thing fails at batch 10.
type endRig struct {
	t                            *testing.T
	form                         string
	epochs                       int
	read, transform, step, cause error
}

func (e *endRig) run() {
	t := e.t
	data := canary{n: 20, width: 4, read: func(_ context.Context, i int) error {
		if i == 10 {
			return e.read
		}
		return nil
	}}
	pass := passOn(cpuSpin, 0, data)
	po := prefetch.Options{Transform: &prefetch.Transform{Out: pass.Out, Apply: func(s *device.Stream, out, in prefetch.Fields) error {
		if in.Position().Batch == 10 && e.transform != nil {
			return e.transform
		}
		return pass.Apply(s, out, in)
	}}}
	r := newRig(t, data, cpu.Options{}, 1, loader.Options{Workers: 1, Epochs: e.epochs}, po)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	n := 0
	one := func() {
		if n++; n == 10 && e.cause != nil {
			cancel(e.cause)
		}
	}
	var err error
	switch e.form {
	case "range":
		var b prefetch.Batch
		for b, err = range r.pf.Batches(ctx) {
			if err == nil {
				require.Equal(t, n, b.Position().Batch)
				one()
			}
		}
	case "map":
		for _, err = range r.pf.Map(ctx, prefetch.Output{Fields: data.Fields()[:1]}, func(b prefetch.Batch, out prefetch.Fields) error {
			if b.Position().Batch == 10 && e.step != nil {
				return e.step
			}
			return b.Stream().CopyD2D(out.Field("index").View, b.Field("index").View)
		}) {
			if err == nil {
				one()
			}
		}
	case "reader":
		rd, openErr := r.pf.Open(ctx)
		require.NoError(t, openErr)
		for err == nil {
			var b prefetch.Batch
			if b, err = rd.Next(ctx); err == nil {
				one()
				b.Release()
			}
		}
		require.NotErrorIs(t, err, prefetch.ErrEpochEnd)
		require.NotErrorIs(t, err, prefetch.ErrLeases)
		_, again := rd.Next(ctx)
		require.Equal(t, err, again)
		require.NoError(t, rd.Close())
	}
	require.Error(t, err, "%d batches", n)
	require.Equal(t, 10, n)
	want := errors.Join(e.read, e.transform, e.step, e.cause)
	require.ErrorContains(t, err, want.Error())
	require.Zero(t, r.pf.Epoch())
	require.EqualValues(t, 10, r.pf.State().Position)
	r.close()
}

// What a user's error wraps besides the pipeline's ends is still found in it.
func TestAReadersErrorKeepsItsIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		data := canary{n: 20, width: 4, read: func(context.Context, int) error {
			return fmt.Errorf("%w: %w", boom, prefetch.ErrEpochEnd)
		}}
		r := newRig(t, data, cpu.Options{}, 2, plain, prefetch.Options{})
		rd, err := r.pf.Open(t.Context())
		require.NoError(t, err)
		_, err = rd.Next(t.Context())
		require.ErrorIs(t, err, boom)
		require.NotErrorIs(t, err, prefetch.ErrEpochEnd)
		var at *loader.Error
		require.ErrorAs(t, err, &at)
		require.NoError(t, rd.Close())
		r.close()
	})
}

// A second Next does not wait for the first, which may wait for long.
func TestASecondNextIsBusyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := canary{n: 4, width: 8, read: func(context.Context, int) error {
			time.Sleep(time.Second)
			return nil
		}}
		r := newRig(t, data, adversarial(time.Millisecond), 2, plain, prefetch.Options{})
		rd, err := r.pf.Open(t.Context())
		require.NoError(t, err)
		var first error
		done := make(chan struct{})
		go func() {
			defer close(done)
			var b prefetch.Batch
			if b, first = rd.Next(t.Context()); first == nil {
				b.Release()
			}
		}()
		synctest.Wait()
		start := time.Now()
		_, err = rd.Next(t.Context())
		require.ErrorIs(t, err, prefetch.ErrBusy)
		require.Zero(t, time.Since(start))
		<-done
		require.NoError(t, first)
		require.NoError(t, rd.Close())
		r.close()
	})
}

// A Next that waits for a Quiesce waits no longer than its context, and not at all where its
// Reader is being closed.
func TestNextBesideQuiesceEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 40, width: 8}, adversarial(time.Hour), 2, plain, prefetch.Options{BatchesPerCopy: 1})
		rd, err := r.pf.Open(t.Context())
		require.NoError(t, err)
		b, err := rd.Next(t.Context())
		require.NoError(t, err)
		b.Release()
		synctest.Wait()
		var quiet error
		done := make(chan struct{})
		go func() {
			defer close(done)
			quiet = r.pf.Quiesce(t.Context()) // which waits for copies of an hour each
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err = rd.Next(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(start))
		closed := make(chan error)
		go func() { closed <- rd.Close() }()
		synctest.Wait()
		start = time.Now()
		_, err = rd.Next(t.Context())
		require.ErrorIs(t, err, prefetch.ErrClosed)
		require.Zero(t, time.Since(start))
		require.NoError(t, <-closed)
		<-done
		require.NoError(t, quiet)
		r.close()
	})
}
