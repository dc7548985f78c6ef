package compose_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/compose"
)

// split is what each part has.
func split(t *testing.T, parts []loader.Dataset, err error) (all [][]int64) {
	t.Helper()
	require.NoError(t, err)
	for _, p := range parts {
		all = append(all, contents(t, p, 1)[0])
	}
	return all
}

func TestSplitHasEachSampleOnceNearItsFractions(t *testing.T) {
	const n = 10_000
	ds := values(upTo(0, n)...)
	for seed := range uint64(5) {
		parts, err := compose.Split(ds, seed, 0.7, 0.2, 0.1)
		got := split(t, parts, err)
		require.Equal(t, upTo(0, n), slices.Sorted(slices.Values(slices.Concat(got...))), "the sum 0.7+0.2+0.1 leaves nothing out")
		for i, f := range []float64{0.7, 0.2, 0.1} {
			require.True(t, slices.IsSorted(got[i]))
			sigma := math.Sqrt(n * f * (1 - f))
			require.InDelta(t, n*f, len(got[i]), 4*sigma)
		}
	}
}

func TestSplitLeavesOutWhatIsLeftOver(t *testing.T) {
	parts, err := compose.Split(values(upTo(0, 10_000)...), 3, 0.1)
	got := split(t, parts, err)
	require.InDelta(t, 1000, len(got[0]), 120)
}

func TestSplitIsStable(t *testing.T) {
	parts, err := compose.Split(values(upTo(0, 1000)...), 3, 0.5, 0.5)
	small := split(t, parts, err)
	parts, err = compose.Split(values(upTo(0, 1500)...), 3, 0.5, 0.5)
	grown := split(t, parts, err)
	for i := range small {
		require.Equal(t, small[i], grown[i][:len(small[i])], "a part only grows at its end")
	}
	parts, err = compose.Split(values(upTo(0, 1000)...), 3, 0.6, 0.4)
	raised := split(t, parts, err)
	require.Subset(t, raised[0], small[0])
	parts, err = compose.Split(values(upTo(0, 1000)...), 4, 0.5, 0.5)
	require.NotEqual(t, small, split(t, parts, err), "another seed is another split")
}

func TestSplitByKeepsTogetherWhatHasOneKey(t *testing.T) {
	patient := func(i int) string { return fmt.Sprint("patient ", i%100) }
	parts, err := compose.SplitBy(values(upTo(0, 1000)...), 1, patient, 0.5, 0.5)
	got := split(t, parts, err)
	of := map[string]int{}
	for part, samples := range got {
		for _, s := range samples {
			if other, ok := of[patient(int(s))]; ok {
				require.Equal(t, other, part)
			}
			of[patient(int(s))] = part
		}
	}
	require.Len(t, of, 100)
	require.Len(t, slices.Concat(got...), 1000)
}

func TestSplitNIsExact(t *testing.T) {
	parts, err := compose.SplitN(values(upTo(0, 1000)...), 1, 700, 200, 50)
	got := split(t, parts, err)
	require.Len(t, got[0], 700)
	require.Len(t, got[1], 200)
	require.Len(t, got[2], 50)
	all := slices.Sorted(slices.Values(slices.Concat(got...)))
	require.Len(t, slices.Compact(all), 950, "no sample is in two parts")
	require.False(t, slices.IsSorted(got[0]))
	require.Equal(t, contents(t, parts[0], 2)[1], got[0], "the same in every epoch")
}
