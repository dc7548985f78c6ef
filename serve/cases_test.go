package serve_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/serve"
)

const ms = time.Millisecond

// stage is where a request fails that goes wrong.
func stage(w wrong) serve.Stage {
	for s, in := range map[serve.Stage]wrong{serve.StageSize: inSize, serve.StageEncode: inEncode, serve.StageDecode: inDecode} {
		if len(w) > len(in) && w[:len(in)] == in {
			return s
		}
	}
	return ""
}

// requireOwn checks that an error is the one of a request that goes wrong.
func requireOwn(t *testing.T, a ask, err error) {
	t.Helper()
	var e *serve.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, stage(a.wrong), e.Stage)
	switch a.wrong[len(stage(a.wrong))+2:] {
	case fails:
		if e.Stage == serve.StageSize { // which panics with it
			requirePanic(t, a, err)
			return
		}
		require.Equal(t, own{a.number}, e.Err)
	case panics:
		requirePanic(t, a, err)
	case exits:
		var g *loader.GoexitError
		require.ErrorAs(t, err, &g)
		require.Contains(t, string(g.Stack), "goWrong")
	}
}

func requirePanic(t *testing.T, a ask, err error) {
	t.Helper()
	var p *loader.PanicError
	require.ErrorAs(t, err, &p)
	require.Equal(t, own{a.number}, p.Value)
	require.Contains(t, string(p.Stack), "rig_test.go")
}

// A function of the user's that fails, panics or ends its goroutine fails its own request,
// and the neighbours are answered in time.
func TestABadRequestFailsAlone(t *testing.T) {
	var bad []wrong
	for _, in := range []wrong{inSize, inEncode, inDecode} {
		bad = append(bad, in+fails, in+panics, in+exits)
	}
	for name, open := range queues() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const rounds = 200
				decode := func(number int64) wrong {
					if number%3 == 1 {
						return bad[number/3%int64(len(bad))]
					}
					return ""
				}
				q := open(t, 8, decode, serve.Options{MaxWait: 10 * ms, MaxSize: 1})
				for round := range int64(rounds) {
					var asking sync.WaitGroup
					for i := range int64(3) {
						a := ask{number: 3*round + i}
						a.wrong = decode(a.number)
						asking.Go(func() {
							began := time.Now()
							got, err := q.Do(t.Context(), a)
							require.LessOrEqual(t, time.Since(began), 10*ms)
							if a.wrong != "" {
								requireOwn(t, a, err)
								return
							}
							require.NoError(t, err)
							require.Equal(t, a.number*a.number, got)
						})
					}
					asking.Wait()
				}
				s := q.Stats()
				require.EqualValues(t, 2*rounds, s.Answered)
				require.EqualValues(t, rounds, s.Failed)
				require.NoError(t, q.Shutdown(t.Context()))
			})
		})
	}
}

func TestATooLargeRequestIsRefusedBeforeItIsEncoded(t *testing.T) {
	q := queues()["host"](t, 4, nil, serve.Options{MaxSize: 10})
	_, err := q.Do(t.Context(), ask{size: 11, wrong: inEncode + panics})
	require.ErrorIs(t, err, serve.ErrTooLarge)
	_, err = q.Do(t.Context(), ask{size: 10})
	require.NoError(t, err)
	require.NoError(t, q.Close())
}

// Time limits hold while all batches are under way, and those who leave take no row.
func TestDeadlinesHoldWhileAllIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := serve.Options{InFlight: 1, Limit: 3, Block: true}
		q, err := serve.NewHost(1, squares(nil), onHost(90*time.Second), o)
		require.NoError(t, err)
		began := time.Now()
		var asking sync.WaitGroup
		do := func(ctx context.Context, number int64, at time.Duration, stage serve.Stage, want error) {
			asking.Go(func() {
				_, err := q.Do(ctx, ask{number: number})
				require.Equal(t, at, time.Since(began))
				if want == nil {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, want)
				var e *serve.Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, stage, e.Stage)
				require.Equal(t, at, e.Waited)
			})
			synctest.Wait()
		}
		within := func(d time.Duration) context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			t.Cleanup(cancel)
			return ctx
		}
		mine := errors.New("mine")
		cancelled, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(11*time.Second, func() { cancel(mine) })
		do(t.Context(), 0, 90*time.Second, "", nil)
		do(within(10*time.Second), 1, 10*time.Second, serve.StageLine, context.DeadlineExceeded)
		do(cancelled, 2, 11*time.Second, serve.StageLine, mine)
		do(within(12*time.Second), 3, 12*time.Second, serve.StageLine, context.DeadlineExceeded)
		require.Equal(t, 1, q.Stats().Outside)
		do(within(9*time.Second), 4, 9*time.Second, serve.StagePlace, context.DeadlineExceeded)
		time.Sleep(10*time.Second + ms)
		synctest.Wait()
		require.Zero(t, q.Stats().Outside, "it has the place of the one that left")
		require.Equal(t, 3, q.Stats().Open)
		asking.Wait()
		require.EqualValues(t, 1, q.Stats().Rows)
		require.EqualValues(t, 4, q.Stats().GaveUp)
		require.NoError(t, q.Shutdown(t.Context()))
	})
}

// Far more comes than can be carried, with little time: what can be answered in time is, and
// rows are not spent on what can't.
func TestOverload(t *testing.T) {
	for inFlight := range 4 {
		t.Run(fmt.Sprint(inFlight), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, s := gpu(t, modelled(0, 0))
				q, err := serve.New(s, 8, squares(nil), onDevice(always(20*ms)),
					serve.Options{MaxWait: 10 * ms, InFlight: inFlight, Limit: 1000})
				require.NoError(t, err)
				var asking sync.WaitGroup
				var inTime, late atomic.Int64
				for i := range int64(20_000) {
					asking.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), 45*ms)
						defer cancel()
						if _, err := q.Do(ctx, ask{number: i}); err != nil {
							require.ErrorIs(t, err, context.DeadlineExceeded)
							late.Add(1)
							return
						}
						inTime.Add(1)
					})
					time.Sleep(ms / 2)
				}
				took := q.Stats().Up
				asking.Wait()
				const capacity = 10 * 400
				require.GreaterOrEqual(t, inTime.Load(), int64(capacity*9/10))
				require.EqualValues(t, 20_000, inTime.Load()+late.Load())
				st := q.Stats()
				require.Less(t, st.Rows-inTime.Load(), st.Rows/10, "rows that were computed for nobody")
				require.Greater(t, st.Busy, took-30*ms, "never idle")
				require.NoError(t, q.Close())
			})
		})
	}
}

// Half of those who wait for the only place leave it just as it becomes free.
func TestNoPlaceIsLostToOneThatLeaves(t *testing.T) {
	for round := range 200 {
		synctest.Test(t, func(t *testing.T) {
			o := serve.Options{InFlight: 1, Limit: 1 + round%2, TenantLimit: 1, Block: true}
			q, err := serve.NewHost(1, squares(nil), onHost(ms), o)
			require.NoError(t, err)
			var asking sync.WaitGroup
			var mu sync.Mutex
			var order []int64
			for i := range int64(100) {
				asking.Go(func() {
					ctx := t.Context()
					if i%2 == 1 {
						c, cancel := context.WithTimeout(ctx, time.Duration(i/2)*ms)
						defer cancel()
						ctx = c
					}
					if _, err := q.Do(ctx, ask{number: i}); err != nil {
						require.ErrorIs(t, err, context.DeadlineExceeded)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					order = append(order, i)
				})
				synctest.Wait()
			}
			asking.Wait()
			require.True(t, slices.IsSorted(order))
			require.GreaterOrEqual(t, len(order), 50)
			s := q.Stats()
			require.Zero(t, s.Open+s.Outside+s.Tenants)
			began := time.Now()
			_, err = q.Do(t.Context(), ask{})
			require.NoError(t, err)
			require.Equal(t, ms, time.Since(began))
			require.NoError(t, q.Close())
		})
	}
}

// In whatever way a request ends, its place returns once.
func TestEachPlaceReturnsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, quota = 100, 10
		failing := errors.New("step")
		gate := make(chan struct{})
		close(gate)
		step := func(ctx context.Context, b prefetch.Batch, out serve.Answers) error {
			<-gate
			if b.Position().First%7 == 0 {
				return failing
			}
			return onHost(ms)(ctx, b, out)
		}
		bad := []wrong{"", inSize + panics, inEncode + fails, inEncode + exits, inDecode + fails, inDecode + exits, inDecode + panics, ""}
		kind := func(number int64) wrong { return bad[number%int64(len(bad))] }
		q, err := serve.NewHost(4, squares(kind), step, serve.Options{Limit: limit, TenantLimit: quota, MaxWait: ms, MaxSize: 5})
		require.NoError(t, err)
		rng := rand.New(rand.NewPCG(1, 2))
		var asking sync.WaitGroup
		for i := range int64(10_000) {
			a := ask{number: i, wrong: kind(i), size: rng.Int64N(7), slow: time.Duration(rng.IntN(2)) * ms}
			patience := time.Duration(rng.IntN(5)) * ms
			who := serve.Caller{Tenant: fmt.Sprint(rng.IntN(15)), Priority: int8(rng.IntN(256) - 128)}
			asking.Go(func() {
				ctx := t.Context()
				if patience > 0 {
					c, cancel := context.WithTimeout(ctx, patience)
					defer cancel()
					ctx = c
				}
				_, _ = q.DoAs(ctx, who, a)
				s := q.Stats()
				require.True(t, s.Open >= 0 && s.Open <= limit && s.Encoding >= 0 && s.Waiting >= 0, "%+v", s)
			})
			time.Sleep(ms / 40)
		}
		asking.Wait()
		s := q.Stats()
		require.EqualValues(t, 10_000, s.Came)
		require.Equal(t, s.Came, s.Answered+s.Failed+s.GaveUp+s.Refused)
		for _, n := range []int64{s.Answered, s.Failed, s.GaveUp, s.Refused} {
			require.Greater(t, n, int64(100))
		}
		time.Sleep(time.Second) // the last batches, of which nobody waits for
		s = q.Stats()
		require.Zero(t, s.Open+s.Waiting+s.Encoding+s.Outside+s.InFlight+s.Tenants)

		gate = make(chan struct{})
		for i := range int64(limit) {
			asking.Go(func() {
				_, err := q.DoAs(t.Context(), serve.Caller{Tenant: fmt.Sprint(i % 10)}, ask{number: 8 * i})
				if !errors.Is(err, failing) {
					require.NoError(t, err)
				}
			})
		}
		synctest.Wait()
		require.Equal(t, limit, q.Stats().Open)
		_, err = q.DoAs(t.Context(), serve.Caller{Tenant: "another"}, ask{})
		require.ErrorIs(t, err, serve.ErrFull)
		close(gate)
		asking.Wait()
		require.Zero(t, q.Stats().Open)
		require.NoError(t, q.Shutdown(t.Context()))
	})
}

func TestATenantHasItsQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := serve.NewHost(4, squares(nil), onHost(ms), serve.Options{Limit: 10, TenantLimit: 2})
		require.NoError(t, err)
		var asking sync.WaitGroup
		for i := range int64(2) {
			asking.Go(func() {
				_, err := q.DoAs(t.Context(), serve.Caller{Tenant: "a"}, ask{number: i})
				require.NoError(t, err)
			})
		}
		synctest.Wait()
		_, err = q.DoAs(t.Context(), serve.Caller{Tenant: "a"}, ask{})
		require.ErrorIs(t, err, serve.ErrTenantFull)
		_, err = q.DoAs(t.Context(), serve.Caller{Tenant: "b"}, ask{})
		require.NoError(t, err)
		asking.Wait()
		require.NoError(t, q.Close())
	})
}

// One tenant's backlog is not another's, and who is alone has all.
func TestNobodyStarves(t *testing.T) {
	t.Run("tenant", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q, err := serve.NewHost(8, squares(nil), onHost(10*ms), serve.Options{InFlight: 1})
			require.NoError(t, err)
			var asking sync.WaitGroup
			for i := range int64(1000) {
				asking.Go(func() {
					_, err := q.DoAs(t.Context(), serve.Caller{Tenant: "a", Priority: 100}, ask{number: i})
					require.NoError(t, err)
				})
			}
			time.Sleep(5 * ms)
			began := time.Now()
			_, err = q.DoAs(t.Context(), serve.Caller{Tenant: "b"}, ask{})
			require.NoError(t, err)
			require.LessOrEqual(t, time.Since(began), 25*ms, "two further steps")
			asking.Wait()
			s := q.Stats()
			require.LessOrEqual(t, s.Batches, int64(1001/8+2), "batches are full")
			require.NoError(t, q.Close())
		})
	})
	t.Run("priority", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			const step, limit = 200 * ms, 400
			q, err := serve.NewHost(8, squares(nil), onHost(10*ms), serve.Options{InFlight: 1, Limit: limit, PriorityStep: step})
			require.NoError(t, err)
			ctx, stop := context.WithCancel(t.Context())
			var asking sync.WaitGroup
			asking.Go(func() {
				for i := int64(1); ctx.Err() == nil; i++ {
					asking.Go(func() { _, _ = q.DoAs(ctx, serve.Caller{Priority: 1}, ask{number: i}) })
					time.Sleep(10 * ms * 10 / 8 / 12) // 120% of what can be carried
				}
			})
			time.Sleep(time.Second)
			began := time.Now()
			_, err = q.Do(t.Context(), ask{})
			require.NoError(t, err)
			took := time.Since(began)
			require.Greater(t, took, step, "others go first")
			require.LessOrEqual(t, took, step+(limit/8+2)*10*ms, "but only those that come soon after it")
			stop()
			asking.Wait()
			require.NoError(t, q.Close())
		})
	})
}

// After Do has returned nobody reads the request, and nothing changes the answer.
func TestARequestIsTheCallersAgain(t *testing.T) {
	const requests, width = 20_000, 64
	m := serve.Model[[]byte, []byte]{
		In: []loader.Field{{Name: "b", DType: fields[1].DType, Shape: []int{width}}},
		Encode: func(_ context.Context, b []byte, row *loader.Row) error {
			return loader.Write(row, "b", b...)
		},
		Out:    []loader.Field{{Name: "b", DType: fields[1].DType, Shape: []int{width}}},
		Decode: func(a serve.Answer) ([]byte, error) { return serve.Values[byte](a, "b") },
	}
	q, err := serve.NewHost(8, m, func(_ context.Context, b prefetch.Batch, out serve.Answers) error {
		to, err := prefetch.Column[byte](out, "b")
		copy(to, b.Field("b").Bytes)
		return err
	}, serve.Options{Block: true})
	require.NoError(t, err)
	pool := sync.Pool{New: func() any { return new([width]byte) }}
	var asking sync.WaitGroup
	for g := range 8 {
		asking.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			var kept [][]byte
			for i := range requests / 8 {
				mine := pool.Get().(*[width]byte)
				b := mine[:]
				fill := byte(i*8 + g)
				for j := range b {
					b[j] = fill
				}
				ctx, cancel := context.WithCancel(t.Context())
				if rng.IntN(3) == 0 {
					go cancel()
				}
				got, err := q.Do(ctx, b)
				for j := range b { // the race detector looks on
					b[j] = 0
				}
				pool.Put(mine)
				cancel()
				if err != nil {
					require.ErrorIs(t, err, context.Canceled)
					continue
				}
				kept = append(kept, append(got, fill))
			}
			for _, k := range kept {
				for _, b := range k[:width] {
					if b != k[width] {
						t.Errorf("an answer has changed: %v", k)
						return
					}
				}
			}
		})
	}
	asking.Wait()
	require.NoError(t, q.Shutdown(t.Context()))
}
