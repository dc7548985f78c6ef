package serve_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/serve"
)

// Everybody who came before Shutdown is answered, at whatever moment it is called, and
// everybody after it is told.
func TestShutdownLosesNobody(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			_, s := gpu(t, modelled(ms, ms))
			q, err := serve.New(s, 1+rng.IntN(5), squares(nil), onDevice(always(3*ms)), serve.Options{
				MaxWait: time.Hour, InFlight: 1 + rng.IntN(3), Limit: 5 + rng.IntN(10), Block: true})
			require.NoError(t, err)
			moment := time.Duration(rng.IntN(int(30 * ms)))
			var shut atomic.Bool
			var asking sync.WaitGroup
			for i := range int64(40) {
				slow := time.Duration(rng.IntN(3)) * ms
				asking.Go(func() {
					time.Sleep(time.Duration(i)*ms + 1)
					after := shut.Load()
					got, err := q.Do(t.Context(), ask{number: i, slow: slow})
					if after {
						require.ErrorIs(t, err, serve.ErrClosed)
						return
					}
					require.NoError(t, err)
					require.Equal(t, i*i, got)
				})
			}
			time.Sleep(moment)
			synctest.Wait()
			shut.Store(true)
			require.NoError(t, q.Shutdown(t.Context()))
			require.Equal(t, 0, q.Stats().Open)
			require.ErrorIs(t, q.Shutdown(t.Context()), nil)
			require.NoError(t, q.Close())
			asking.Wait()
		})
	}
}

// Close ends everything at once, and everybody is told.
func TestCloseAtAnyMoment(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 2))
			_, s := gpu(t, modelled(ms, ms))
			q, err := serve.New(s, 1+rng.IntN(5), squares(nil), onDevice(always(3*ms)), serve.Options{
				MaxWait: 5 * ms, InFlight: 1 + rng.IntN(3), Limit: 3 + rng.IntN(10), Block: true})
			require.NoError(t, err)
			var asking sync.WaitGroup
			for i := range int64(40) {
				slow := time.Duration(rng.IntN(3)) * ms
				asking.Go(func() {
					time.Sleep(time.Duration(i/4) * ms)
					got, err := q.Do(t.Context(), ask{number: i, slow: slow})
					if err != nil {
						require.ErrorIs(t, err, serve.ErrClosed)
						return
					}
					require.Equal(t, i*i, got)
				})
			}
			time.Sleep(time.Duration(rng.IntN(int(20 * ms))))
			began := time.Now()
			switch rng.IntN(2) {
			case 0:
				require.NoError(t, q.Close())
			case 1:
				ctx, cancel := context.WithTimeout(t.Context(), 2*ms)
				if err := q.Shutdown(ctx); err != nil {
					require.Equal(t, context.DeadlineExceeded.Error(), err.Error())
				}
				cancel()
			}
			require.Less(t, time.Since(began), 30*ms)
			asking.Wait()
			st := q.Stats()
			require.Zero(t, st.Open+st.Outside+st.InFlight)
			require.Equal(t, st.Came, st.Answered+st.Failed+st.GaveUp+st.Refused)
		})
	}
}

// A request that Decode or a step makes of its own Queue waits for the caller: until its
// context ends, or the Queue. One of Encode's is like any other.
func TestARequestInARequest(t *testing.T) {
	for _, in := range []string{"encode", "decode", "step"} {
		for _, way := range []string{"context", "close"} {
			synctest.Test(t, func(t *testing.T) {
				var q *serve.Queue[ask, int64]
				nested := func() error {
					ctx, cancel := context.WithTimeout(t.Context(), 5*ms)
					if way == "close" {
						ctx = t.Context()
					}
					defer cancel()
					got, err := q.Do(ctx, ask{number: 3})
					if err == nil {
						require.EqualValues(t, 9, got)
					}
					return err
				}
				model, step := squares(nil), onHost(ms)
				outer, computed := model.Decode, step
				model.Encode = func(ctx context.Context, req ask, row *loader.Row) error {
					if in == "encode" && req.number == 2 {
						if err := nested(); err != nil {
							return err
						}
					}
					return encode(ctx, req, row)
				}
				model.Decode = func(a serve.Answer) (int64, error) {
					if x, _ := serve.Value[int64](a, "x"); in == "decode" && x == 2 {
						if err := nested(); err != nil {
							return 0, err
						}
					}
					return outer(a)
				}
				step = func(ctx context.Context, b prefetch.Batch, out serve.Answers) error {
					if x, _ := prefetch.Column[int64](b, "x"); in == "step" && x[0] == 2 {
						if err := nested(); err != nil {
							return err
						}
					}
					return computed(ctx, b, out)
				}
				var err error
				q, err = serve.NewHost(1, model, step, serve.Options{InFlight: 3})
				require.NoError(t, err)
				if way == "close" {
					time.AfterFunc(20*ms, func() { require.NoError(t, q.Close()) })
				}
				_, err = q.Do(t.Context(), ask{number: 2})
				switch {
				case in == "encode":
					require.NoError(t, err)
				case way == "context":
					require.ErrorIs(t, err, context.DeadlineExceeded)
				default:
					require.ErrorIs(t, err, serve.ErrClosed)
				}
				time.Sleep(30 * ms)
				require.NoError(t, q.Close())
			})
		}
	}
}

// User code that does not return holds up Close, and nobody who waits for an answer.
func TestCloseAnswersThoseOfAStepThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		q, err := serve.NewHost(2, squares(nil), func(context.Context, prefetch.Batch, serve.Answers) error {
			<-free
			return errStep
		}, serve.Options{})
		require.NoError(t, err)
		began := time.Now()
		var asking sync.WaitGroup
		for range 9 {
			asking.Go(func() {
				_, err := q.Do(t.Context(), ask{})
				require.ErrorIs(t, err, serve.ErrClosed)
				require.Equal(t, 7*ms, time.Since(began))
			})
		}
		time.Sleep(7 * ms)
		var stuck *serve.StuckError
		require.ErrorAs(t, q.Close(), &stuck)
		require.Equal(t, 1, stuck.Calls)
		asking.Wait()
		close(free)
		time.Sleep(time.Minute)
		st := q.Stats()
		require.EqualValues(t, 9, st.Failed)
		require.Zero(t, st.Open+st.InFlight)
	})
}

// A step that fails fails its own batch.
func TestAFailingStepFailsItsBatch(t *testing.T) {
	for kind, bad := range map[string]func() error{
		"error": func() error { return errStep },
		"panic": func() error { panic(errStep) },
		"exit":  func() error { runtime.Goexit(); return nil },
	} {
		failed := func(t *testing.T, err error) {
			var e *serve.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, serve.StageStep, e.Stage)
			var exit *loader.GoexitError
			require.True(t, errors.Is(err, errStep) || errors.As(err, &exit), "%v", err)
		}
		steps := 0
		fails := func() error {
			if steps++; steps%3 == 2 {
				return bad()
			}
			return nil
		}
		run := func(t *testing.T, q *serve.Queue[ask, int64]) {
			for i := range int64(30) {
				var asking sync.WaitGroup
				for j := range int64(2) {
					asking.Go(func() {
						_, err := q.Do(t.Context(), ask{number: 2*i + j})
						if i%3 == 1 {
							failed(t, err)
							return
						}
						require.NoError(t, err)
					})
				}
				asking.Wait()
			}
			require.EqualValues(t, 20, q.Stats().Failed)
			require.NoError(t, q.Shutdown(t.Context()))
		}
		t.Run("device/"+kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, s := gpu(t, cpu.Options{Adversary: &cpu.Adversary{Poison: true, CheckInputs: true}})
				steps = 0
				q, err := serve.New(s, 2, squares(nil), func(b prefetch.Batch, out prefetch.Fields) error {
					if err := fails(); err != nil {
						return err
					}
					return onDevice(always(ms))(b, out)
				}, serve.Options{MaxWait: time.Second})
				require.NoError(t, err)
				run(t, q)
			})
		})
		t.Run("host/"+kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				steps = 0
				q, err := serve.NewHost(2, squares(nil), func(ctx context.Context, b prefetch.Batch, out serve.Answers) error {
					if err := fails(); err != nil {
						return err
					}
					return onHost(ms)(ctx, b, out)
				}, serve.Options{MaxWait: time.Second})
				require.NoError(t, err)
				run(t, q)
			})
		})
	}
}

// A device that is lost is everybody's failure, and nobody waits for it.
func TestALostDeviceEndsTheQueue(t *testing.T) {
	for op := range int64(40) {
		synctest.Test(t, func(t *testing.T) {
			fault := errors.New("lost")
			var launched int64
			dev, err := cpu.Open(cpu.Options{Adversary: &cpu.Adversary{Fault: func(c cpu.Call) error {
				if launched++; launched == 1+op {
					return fault
				}
				return nil
			}}})
			require.NoError(t, err)
			s, err := dev.NewStream(device.StreamOptions{})
			require.NoError(t, err)
			q, err := serve.New(s, 2, squares(nil), onDevice(always(ms)), serve.Options{Limit: 10, Block: true})
			require.NoError(t, err)
			var asking sync.WaitGroup
			var lost atomic.Int64
			for i := range int64(40) {
				asking.Go(func() {
					_, err := q.Do(t.Context(), ask{number: i})
					if err != nil {
						lost.Add(1)
						var e *serve.Error
						require.ErrorAs(t, err, &e)
						require.Contains(t, []serve.Stage{serve.StagePipeline, serve.StageStep}, e.Stage)
						require.ErrorIs(t, err, fault)
					}
				})
			}
			asking.Wait()
			require.Positive(t, lost.Load())
			_, err = q.Do(t.Context(), ask{})
			require.ErrorIs(t, err, fault)
			require.ErrorIs(t, q.Err(), fault)
			require.ErrorIs(t, q.Shutdown(t.Context()), fault)
			st := q.Stats()
			require.Zero(t, st.Open+st.Outside+st.InFlight)
			s.Close()
			dev.Close()
		})
	}
}

// A step that forgets a field would give everybody the answer of another batch.
func TestAForgottenFieldIsAnError(t *testing.T) {
	q, err := serve.NewHost(2, squares(nil), func(_ context.Context, _ prefetch.Batch, out serve.Answers) error {
		_, err := prefetch.Column[int64](out, "x")
		return err
	}, serve.Options{})
	require.NoError(t, err)
	_, err = q.Do(t.Context(), ask{})
	var u *loader.UnwrittenError
	require.ErrorAs(t, err, &u)
	require.Equal(t, "bytes", u.Field.Name)
	require.NoError(t, q.Close())

	m := squares(nil)
	m.Out = append(slices.Clone(fields), loader.Field{Name: "empty", DType: dtype.Uint8, Shape: []int{0}})
	q, err = serve.NewHost(2, m, onHost(0), serve.Options{})
	require.NoError(t, err)
	_, err = q.Do(t.Context(), ask{})
	require.NoError(t, err, "there is nothing to write")
	require.NoError(t, q.Close())

	_, s := gpu(t, cpu.Options{})
	q, err = serve.New(s, 2, squares(nil), func(b prefetch.Batch, out prefetch.Fields) error {
		return b.Stream().CopyD2D(out.Field("x").View, b.Field("x").View)
	}, serve.Options{})
	require.NoError(t, err)
	_, err = q.Do(t.Context(), ask{})
	require.ErrorAs(t, err, &u)
	require.Equal(t, "bytes", u.Field.Name)
	require.ErrorAs(t, q.Close(), &u)
}

// User code that does not return is named, and nobody waits for it longer than the limit.
func TestCloseDoesNotWaitForEver(t *testing.T) {
	for where := range 3 {
		synctest.Test(t, func(t *testing.T) {
			over := make(chan bool)
			m := squares(nil)
			encode, decode := m.Encode, m.Decode
			m.Encode = func(ctx context.Context, a ask, row *loader.Row) error {
				if where == 0 {
					<-over
				}
				return encode(ctx, a, row)
			}
			m.Decode = func(a serve.Answer) (int64, error) {
				if where == 1 {
					<-over
				}
				return decode(a)
			}
			o := serve.Options{}
			o.Prefetch.CloseTimeout = time.Second
			q, err := serve.NewHost(2, m, func(ctx context.Context, b prefetch.Batch, out serve.Answers) error {
				if where == 2 {
					<-over
				}
				return onHost(0)(ctx, b, out)
			}, o)
			require.NoError(t, err)
			told := make(chan error, 1)
			go func() {
				_, err := q.Do(t.Context(), ask{})
				told <- err
			}()
			synctest.Wait()
			began := time.Now()
			var stuck *serve.StuckError
			require.ErrorAs(t, q.Close(), &stuck)
			if where == 0 { // the pipeline has ended
				require.Equal(t, time.Second, time.Since(began))
			}
			require.LessOrEqual(t, time.Since(began), 5*time.Second)
			require.Equal(t, 1, stuck.Calls)
			close(over)
			err = <-told
			if where == 0 { // the others' batch is done, in spite of all
				require.ErrorIs(t, err, serve.ErrClosed)
			}
		})
	}
}

// That nothing runs after Close is checked by the bubble's end.
func TestNothingRunsBeforeTheFirstDo(t *testing.T) {
	for _, open := range queues() {
		synctest.Test(t, func(t *testing.T) {
			before := runtime.NumGoroutine()
			q := open(t, 4, nil, serve.Options{})
			require.LessOrEqual(t, runtime.NumGoroutine(), before, "those of an earlier test may have ended")
			require.NoError(t, q.Err())
			require.NoError(t, q.Close())
			require.Equal(t, serve.ErrClosed, q.Err())
			_, err := q.Do(t.Context(), ask{})
			require.ErrorIs(t, err, serve.ErrClosed)
			require.ErrorContains(t, err, "serve: before it had a place, after ")
		})
	}
}

func TestAContextThatHasEndedIsNotServed(t *testing.T) {
	q := queues()["host"](t, 4, nil, serve.Options{})
	cause := errors.New("mine")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, err := q.Do(ctx, ask{})
	require.ErrorIs(t, err, cause)
	require.Zero(t, q.Stats().Came)
	require.NoError(t, q.Close())
}

func TestBadOptions(t *testing.T) {
	m := squares(nil)
	m.Size = nil
	_, err := serve.NewHost(0, m, nil, serve.Options{MaxWait: 1 << 62, InFlight: -1, Limit: 2, TenantLimit: 3, MaxSize: 4, PriorityStep: -1})
	for _, option := range []string{"step", "maxBatch", "MaxWait", "InFlight", "TenantLimit", "MaxSize", "PriorityStep"} {
		require.ErrorContains(t, err, "serve: "+option+" is")
	}
	_, err = serve.New(nil, 1, serve.Model[int, int]{}, nil, serve.Options{Limit: -1})
	for _, option := range []string{"compute", "step", "Model.In", "Model.Out", "Model.Encode", "Model.Decode", "Limit"} {
		require.ErrorContains(t, err, "serve: "+option+" is")
	}
	m = squares(nil)
	m.Out = []loader.Field{{Name: "r", DType: fields[0].DType, Shape: []int{4}, Ragged: &loader.Ragged{}}}
	_, err = serve.NewHost(1, m, onHost(0), serve.Options{})
	var o *serve.OptionError
	require.ErrorAs(t, err, &o)
	require.Equal(t, "Model.Out", o.Option)
	require.Contains(t, fmt.Sprint(err), "fields of one size")
}
