package serve_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/serve"
)

// The histogram's quantiles are never below the true ones, and at most 1/32 above them.
func TestQuantilesAreNearTheTrueOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 1))
		steps := make([]time.Duration, 3000)
		for i := range steps { // of every order of magnitude
			steps[i] = time.Duration(rng.Int64N(1 << (1 + i%40)))
		}
		n := 0
		q, err := serve.NewHost(1, squares(nil), func(ctx context.Context, b prefetch.Batch, out serve.Answers) error {
			n++
			return onHost(steps[n-1])(ctx, b, out)
		}, serve.Options{})
		require.NoError(t, err)
		require.Zero(t, q.Stats().Latency.Quantile(0.5))
		var half serve.Durations
		for i := range steps {
			_, err := q.Do(t.Context(), ask{number: int64(i)})
			require.NoError(t, err)
			if i == len(steps)/2-1 {
				half = q.Stats().Latency
			}
		}
		check := func(got serve.Durations, all []time.Duration) {
			want, sum := slices.Sorted(slices.Values(all)), time.Duration(0)
			for _, d := range want {
				sum += d
			}
			require.EqualValues(t, len(want), got.Len())
			require.Equal(t, sum/time.Duration(len(want)), got.Mean())
			for _, share := range []float64{0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1} {
				rank := max(int(share*float64(len(want))+0.999999), 1)
				exact, q := want[rank-1], got.Quantile(share)
				require.GreaterOrEqual(t, q, exact, "%v", share)
				require.LessOrEqual(t, q, exact+exact/32, "%v", share)
			}
		}
		check(q.Stats().Latency, steps)
		require.Equal(t, slices.Max(steps), q.Stats().Latency.Max())
		require.Equal(t, slices.Max(steps), q.Stats().Latency.Quantile(2))
		check(half, steps[:len(steps)/2])
		check(q.Stats().Latency.Since(half), steps[len(steps)/2:])
		require.NoError(t, q.Close())
	})
}

// All figures of a schedule that is known.
func TestStatsSayWhatHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := serve.NewHost(4, squares(nil), onHost(10*ms), serve.Options{MaxWait: 5 * ms, InFlight: 1})
		require.NoError(t, err)
		var asking sync.WaitGroup
		do := func(n int) {
			for i := range n {
				asking.Go(func() {
					_, err := q.DoAs(t.Context(), serve.Caller{Tenant: "a"}, ask{number: int64(i)})
					require.NoError(t, err)
				})
			}
			synctest.Wait()
		}
		do(1)              // waits for others until 5 ms
		time.Sleep(7 * ms) // and is computed until 15
		do(6)              // these wait, 4 until 15 and 2 until 25
		time.Sleep(3 * ms) // it is 10 ms
		s := q.Stats()
		require.Equal(t, 7, s.Open)
		require.Equal(t, 6, s.Waiting)
		require.Equal(t, 1, s.InFlight)
		require.Equal(t, 1, s.Tenants)
		require.Equal(t, 5*ms, s.Busy)
		require.Equal(t, 10*ms, s.Up)
		require.Equal(t, 0.5, s.Occupancy())
		asking.Wait()
		s = q.Stats()
		require.Equal(t, 35*ms, s.Up)
		require.Equal(t, 30*ms, s.Busy)
		require.EqualValues(t, 3, s.Batches)
		require.Equal(t, []int64{0, 1, 1, 0, 1}, s.Sizes)
		require.InDelta(t, 7.0/12, s.Fill(), 1e-9)
		require.Equal(t, 28*ms, s.Latency.Max())
		require.Equal(t, 18*ms, s.Line.Max())
		require.Equal(t, (15+4*18+2*28)*ms/7, s.Latency.Mean())
		require.Equal(t, (5+4*8+2*18)*ms/7, s.Line.Mean())
		require.NoError(t, q.Close())
	})
}

func TestAnswersAreReadByTheirNamesAndTypes(t *testing.T) {
	m := squares(nil)
	m.Decode = func(a serve.Answer) (int64, error) {
		_, err := serve.Value[float32](a, "x")
		require.ErrorContains(t, err, `field "x": its elements are int64, not float32`)
		_, err = serve.Values[int64](a, "z")
		require.ErrorContains(t, err, `field "z"`)
		_, err = serve.Value[uint8](a, "bytes")
		require.ErrorContains(t, err, "it has 5 elements, not 1")
		short := make([]uint8, 4)
		require.ErrorContains(t, serve.Copy(short, a, "bytes"), "it has 5 elements, not 4")
		require.Equal(t, make([]uint8, 4), short)
		dst := make([]uint8, 5)
		require.ErrorContains(t, serve.Copy(dst, a, "z"), "there is none of that name")
		require.NoError(t, serve.Copy(dst, a, "bytes"))
		return int64(dst[4]), nil
	}
	q, err := serve.NewHost(2, m, onHost(0), serve.Options{})
	require.NoError(t, err)
	got, err := q.Do(t.Context(), ask{number: 3})
	require.NoError(t, err)
	require.EqualValues(t, 7, got)
	require.NoError(t, q.Close())
}

// A ragged field goes in; what else is in the batch shows in nobody's answer.
func TestRaggedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := serve.Model[[]int32, int64]{
			In: []loader.Field{{Name: "tokens", DType: tokens, Shape: []int{8}, Ragged: &loader.Ragged{Length: "length"}}},
			Encode: func(_ context.Context, req []int32, row *loader.Row) error {
				return loader.Write(row, "tokens", req...)
			},
			Out:    fields[:1],
			Decode: func(a serve.Answer) (int64, error) { return serve.Value[int64](a, "x") },
		}
		q, err := serve.NewHost(4, m, func(_ context.Context, b prefetch.Batch, out serve.Answers) error {
			lengths, err := prefetch.Column[int32](b, "length")
			if err != nil {
				return err
			}
			all, err := prefetch.Column[int32](b, "tokens")
			if err != nil {
				return err
			}
			sums, err := prefetch.Column[int64](out, "x")
			if err != nil {
				return err
			}
			width := len(all) / b.Len()
			for i := range sums {
				sums[i] = 0
				for _, v := range all[i*width:][:lengths[i]] {
					sums[i] += int64(v)
				}
			}
			return nil
		}, serve.Options{MaxWait: ms})
		require.NoError(t, err)
		var asking sync.WaitGroup
		for n := range 8 {
			asking.Go(func() {
				got, err := q.Do(t.Context(), []int32{1, 1, 1, 1, 1, 1, 1, 1}[:n])
				require.NoError(t, err)
				require.EqualValues(t, n, got)
			})
		}
		asking.Wait()
		_, err = q.Do(t.Context(), make([]int32, 9))
		var size *loader.SizeError
		require.ErrorAs(t, err, &size)
		require.NoError(t, q.Close())
	})
}
