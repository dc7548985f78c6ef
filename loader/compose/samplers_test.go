package compose_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/compose"
)

// chiSquare is how far counts are from what is expected of them, for so many degrees of
// freedom, in standard deviations of a normal variable (Wilson and Hilferty). Those that
// are expected 0 times must be.
func chiSquare(t *testing.T, counts []int, expected []float64) float64 {
	sum, degrees := 0.0, -1.0
	for i, want := range expected {
		if want == 0 {
			require.Zero(t, counts[i])
			continue
		}
		sum += (float64(counts[i]) - want) * (float64(counts[i]) - want) / want
		degrees++
	}
	d := 2 / (9 * degrees)
	return (math.Cbrt(sum/degrees) - (1 - d)) / math.Sqrt(d)
}

func TestWeightedDrawsInProportion(t *testing.T) {
	const n = 200_000
	random := rand.New(rand.NewPCG(1, 2))
	for name, weights := range map[string][]float64{
		"equal":           {1, 1, 1, 1},
		"one":             {0, 0, 5, 0},
		"unequal":         {1, 2, 3, 4, 0, 10},
		"huge and little": {1e-300, 1e300, 0, 1e300},
		"many": func() (w []float64) {
			for range 1000 {
				w = append(w, random.ExpFloat64())
			}
			return w
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			ds := must(compose.Weighted(values(upTo(0, len(weights))...), weights, n, 7)).(loader.Composed)
			sum := 0.0
			for _, w := range weights {
				sum += w
			}
			expected, counts := make([]float64, len(weights)), make([]int, len(weights))
			for i, w := range weights {
				if expected[i] = float64(n) * (w / sum); w > 0 && expected[i] < 1e-9 {
					expected[i] = 0
				}
			}
			for i := range n {
				_, at, _ := ds.Part(3, i)
				counts[at]++
			}
			if degrees := len(slices.DeleteFunc(slices.Clone(expected), func(w float64) bool { return w == 0 })); degrees > 1 {
				require.Less(t, math.Abs(chiSquare(t, counts, expected)), 4.0)
			} else {
				chiSquare(t, counts, expected)
			}
		})
	}
}

func TestWeightedDrawsAnewInEachEpoch(t *testing.T) {
	ds := must(compose.Weighted(values(upTo(0, 100)...), slices.Repeat([]float64{1}, 100), 50, 7))
	two := contents(t, ds, 2)
	require.Len(t, two[0], 50)
	require.NotEqual(t, two[0], two[1])
	require.Equal(t, two, contents(t, ds, 2))
}

func TestBalancedHasAllClassesEquallyOften(t *testing.T) {
	labels := []int{7, -1, 7, 7, 100, 7, 7, -1} // five of 7, two of -1, one of 100
	ds := must(compose.Balanced(values(upTo(0, 8)...), labels, 3))
	require.Equal(t, 15, ds.Len())
	all := contents(t, ds, 3)
	for _, epoch := range all {
		for turn := range slices.Chunk(epoch, 3) {
			require.Equal(t, []int{-1, 7, 100}, []int{labels[turn[0]], labels[turn[1]], labels[turn[2]]})
		}
		times := counts(epoch)
		for _, sample := range []int64{0, 2, 3, 5, 6} {
			require.Equal(t, 1, times[sample])
		}
		require.Equal(t, 5, times[1]+times[7])
		require.LessOrEqual(t, max(times[1], times[7]), 3)
		require.Equal(t, 5, times[4])
	}
	require.NotEqual(t, all[0], all[1])
	require.Zero(t, must(compose.Balanced(values(), nil, 1)).Len())
}

// The span of lengths within batches is a fraction of what it is in random batches, each
// sample comes once an epoch, and the batches of epochs differ.
func TestByLengthMakesBatchesOfSimilarLength(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 7, 8, 100, 1000, 5003} {
		const batch = 8
		lengths := make([]int, n)
		for i := range lengths {
			lengths[i] = random.IntN(1000)
		}
		padding := func(order []int64) (sum int) {
			for b := range slices.Chunk(order, batch) {
				longest := 0
				for _, i := range b {
					longest = max(longest, lengths[i])
				}
				sum += longest * len(b)
				for _, i := range b {
					sum -= lengths[i]
				}
			}
			return sum
		}
		ds := must(compose.ByLength(values(upTo(0, n)...), lengths, batch, 1))
		all := contents(t, ds, 4)
		for _, epoch := range all {
			require.Equal(t, upTo(0, n), slices.Sorted(slices.Values(epoch)))
			if n >= 1000 {
				require.Less(t, 15*padding(epoch), padding(upTo(0, n)))
			}
		}
		if n >= 100 {
			require.NotEqual(t, all[0], all[1])
			require.NotEqual(t, slices.Sorted(slices.Values(all[0][:batch])), slices.Sorted(slices.Values(all[1][:batch])))
		}
		if left := n % batch; n > 1000 && left > 0 {
			require.NotEqual(t, all[0][n-left:], all[1][n-left:], "what fills no batch differs")
		}
	}
}

func TestMisuseOfSamplers(t *testing.T) {
	ten, none := values(upTo(0, 10)...), loader.Dataset(nil)
	w := slices.Repeat([]float64{1}, 10)
	bad := slices.Clone(w)
	bad[3] = math.NaN()
	one := func(ds loader.Dataset, err error) error { return err }
	for name, c := range map[string]struct {
		err  error
		want []string
	}{
		"weights":         {one(compose.Weighted(ten, w[:9], -1, 1)), []string{"9 weights, want 10", "Weighted: n is -1"}},
		"NaN":             {one(compose.Weighted(ten, bad, 1, 1)), []string{"weights[3] is NaN"}},
		"a sum of 0":      {one(compose.Weighted(ten, make([]float64, 10), 1, 1)), []string{"sum 0"}},
		"no sample":       {one(compose.Weighted(values(), nil, 1, 1)), []string{"sum 0"}},
		"an infinite sum": {one(compose.Weighted(values(1, 2), []float64{math.MaxFloat64, math.MaxFloat64}, 1, 1)), []string{"sum +Inf"}},
		"labels":          {one(compose.Balanced(ten, []int{1}, 1)), []string{"1 labels, want 10"}},
		"lengths":         {one(compose.ByLength(ten, nil, 0, 1)), []string{"0 lengths, want 10", "batch is 0"}},
		"Filter":          {one(compose.Filter(none, nil)), []string{"Filter: ds", "Filter: keep"}},
		"FilterRead":      {one(compose.FilterRead(t.Context(), ten, nil)), []string{"FilterRead: keep"}},
		"an unsteady one": {one(compose.FilterRead(t.Context(), must(compose.Shuffle(ten, 1)), nil)), []string{"stay at their indices"}},
		"below":           {one(compose.FilterRead(t.Context(), must(compose.Take(must(compose.Shuffle(ten, 1)), 2)), nil)), []string{"stay at their indices"}},
		"Map":             {one(compose.Map(none, nil, nil)), []string{"Map: ds", "Map: f", "Fields is empty"}},
		"Retry":           {one(compose.Retry(none, compose.RetryOptions{Attempts: -1, Wait: -1, MaxWait: -1})), []string{"Retry: ds", "Attempts is -1", "Wait is -1ns", "MaxWait is -1ns"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorAs(t, c.err, new(*loader.OptionError))
			for _, part := range c.want {
				require.ErrorContains(t, c.err, part)
			}
		})
	}
}
