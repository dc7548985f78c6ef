package serve_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/serve"
)

var errStep = errors.New("this step fails")

// run runs a program on a modelled card, and says what became of each request.
func (p program) run(t *testing.T) []outcome {
	_, stream := gpu(t, modelled(p.in, p.out))
	number := fields[:1]
	m := serve.Model[int64, int64]{
		In: number, Out: number,
		Encode: func(_ context.Context, i int64, row *loader.Row) error {
			time.Sleep(p.requests[i].slow)
			return loader.Write(row, "x", i)
		},
		Decode: func(a serve.Answer) (int64, error) { return serve.Value[int64](a, "x") },
	}
	begun := 0
	step := func(b prefetch.Batch, out prefetch.Fields) error {
		i := begun
		begun++
		if p.fails[i] {
			return errStep
		}
		if err := b.Stream().Launch(cpu.Busy(p.steps[i])); err != nil {
			return err
		}
		return b.Stream().CopyD2D(out.Field("x").View, b.Field("x").View)
	}
	q, err := serve.New(stream, p.maxBatch, m, step, serve.Options{MaxWait: p.maxWait, InFlight: p.inFlight, PriorityStep: p.priority})
	require.NoError(t, err)
	got := make([]outcome, len(p.requests))
	began := time.Now()
	var asking sync.WaitGroup
	for i, r := range p.requests {
		asking.Go(func() {
			time.Sleep(r.at)
			ctx, cancel := t.Context(), context.CancelFunc(func() {})
			switch {
			case r.deadline > 0:
				ctx, cancel = context.WithDeadline(ctx, began.Add(r.deadline))
			case r.cancel > 0:
				ctx, cancel = context.WithCancel(ctx)
				time.AfterFunc(r.cancel-r.at, cancel)
			}
			defer cancel()
			answer, err := q.DoAs(ctx, serve.Caller{Tenant: fmt.Sprint(r.tenant), Priority: r.priority}, int64(i))
			got[i] = outcome{time.Since(began), answeredAt}
			switch {
			case err == nil:
				require.EqualValues(t, i, answer)
			case errors.Is(err, errStep):
				got[i].result = failedAt
			default:
				require.ErrorIs(t, err, ctx.Err())
				got[i].result = gaveUpAt
			}
		})
	}
	asking.Wait()
	require.NoError(t, q.Shutdown(t.Context()))
	return got
}

// Whatever comes, each request has the outcome that the documentation says, at the very
// nanosecond.
func TestProgramsGoAsTheReferenceDoes(t *testing.T) {
	const programs = 400
	var results [3]int
	for seed := range uint64(programs) {
		p := newProgram(rand.New(rand.NewPCG(seed, 7)))
		want := p.simulate()
		synctest.Test(t, func(t *testing.T) {
			require.Equal(t, want, p.run(t), "seed %d", seed)
		})
		for _, o := range want {
			for i, r := range []result{answeredAt, failedAt, gaveUpAt} {
				if o.result == r {
					results[i]++
				}
			}
		}
	}
	for _, n := range results {
		require.Greater(t, n, 2*programs, "the programs try everything")
	}
}
