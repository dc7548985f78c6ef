package compose_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/compose"
)

// over are compositions of a dataset, one of each kind that has its samples.
func over(t *testing.T, ds loader.Dataset) map[string]loader.Dataset {
	n := ds.Len()
	lengths, labels := make([]int, n), make([]int, n)
	for i := range n {
		lengths[i], labels[i] = i*7919%101, i%5%3
	}
	source := func(weight float64) compose.Source { return compose.Source{Dataset: ds, Weight: weight} }
	short := func(weight float64) compose.Source {
		return compose.Source{Dataset: must(compose.Take(ds, n/3)), Weight: weight}
	}
	file, err := compose.CacheFile(ds, filepath.Join(t.TempDir(), "cache"), "1")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	parts, err := compose.SplitN(ds, 1, n/2, n/4)
	require.NoError(t, err)
	return map[string]loader.Dataset{
		"Shuffle":          must(compose.Shuffle(ds, 1)),
		"Shuffle of few":   must(compose.Shuffle(must(compose.Take(ds, 100)), 1)),
		"Repeated Shuffle": must(compose.Repeat(must(compose.Shuffle(ds, 1)), 3)),
		"Mix":              must(compose.Mix(1, compose.UntilAllEnded, source(3), short(1), short(2))),
		"Mix of few":       must(compose.Mix(1, compose.Once, source(1), short(0.001))),
		"MixSteps": must(compose.MixSteps(1, compose.UntilAllEnded,
			[]compose.Step{{Weights: []float64{1, 0}}, {From: 70, Weights: []float64{1, 5}}, {From: 200, Weights: []float64{0.3, 1}}}, source(0), short(0))),
		"Balanced":    must(compose.Balanced(ds, labels, 1)),
		"ByLength":    must(compose.ByLength(ds, lengths, 16, 1)),
		"Weighted":    must(compose.Weighted(ds, slices.Repeat([]float64{1, 0, 2}, n/3), n, 1)),
		"SplitN":      parts[1],
		"Concat":      must(compose.Concat(ds, must(compose.Skip(ds, n/2)))),
		"Select":      must(compose.Select(ds, n, func(epoch, i int) int { return (i + 7*epoch) % n })),
		"Map":         must(compose.Map(ds, ds.Fields(), func(_ context.Context, in, out *loader.Row) error { out.CopyFrom(in); return nil })),
		"Retry":       must(compose.Retry(ds, compose.RetryOptions{})),
		"CacheMemory": cached(ds),
		"CacheFile":   file,
	}
}

// What a sample is does not depend on which were read before, by the same worker or by who
// only asks; and a sample that there is not is an *IndexError.
func TestSamplesInAnyOrder(t *testing.T) {
	const n = 600
	random := rand.New(rand.NewPCG(1, 2))
	sequential, mixed := over(t, values(upTo(0, n)...)), over(t, values(upTo(0, n)...))
	for name, ds := range sequential {
		other := mixed[name]
		want := contents(t, ds, 1)[0]
		require.Len(t, want, ds.Len(), name)
		scratch, err := loader.NewScratch(ds.Fields())
		require.NoError(t, err)
		parts := map[[2]int][3]uint64{}
		if c, ok := ds.(loader.Composed); ok {
			for pass := range 4 {
				for i := range ds.Len() {
					part, at, partPass := c.Part(uint64(pass), i)
					parts[[2]int{pass, i}] = [3]uint64{uint64(part), uint64(at), partPass}
				}
			}
		}
		at := 0
		for range 2000 {
			switch random.IntN(6) {
			case 0:
				at = random.IntN(ds.Len())
			case 1:
				at = min(at+random.IntN(100), ds.Len()-1)
			case 2:
				at = max(at-random.IntN(4), 0)
			default:
				at = (at + 1) % ds.Len()
			}
			row := scratch.Begin(new(loader.Row))
			require.NoError(t, other.Read(t.Context(), at, row), name)
			require.Equal(t, want[at:at+1], loader.Value[int64](row, "x"), "%s: sample %d", name, at)
			if c, ok := other.(loader.Composed); ok {
				pass := random.IntN(4)
				part, index, partPass := c.Part(uint64(pass), at)
				require.Equal(t, parts[[2]int{pass, at}], [3]uint64{uint64(part), uint64(index), partPass}, "%s: sample %d of pass %d", name, at, pass)
			}
		}
		for _, index := range []int{-1, ds.Len(), math.MaxInt, math.MinInt} {
			var wrong *compose.IndexError
			require.ErrorAs(t, ds.Read(t.Context(), index, scratch.Begin(new(loader.Row))), &wrong, name)
			require.Equal(t, compose.IndexError{Index: index, Len: ds.Len()}, *wrong, name)
		}
	}
}

// A failure of the dataset at the bottom comes out of every composition, as itself.
func TestFailuresOfCompositions(t *testing.T) {
	bad := errors.New("bad")
	ds := loader.FromFunc(600, []loader.Field{{Name: "x", DType: dtype.Int64}}, func(context.Context, int, *loader.Row) error { return bad })
	for name, ds := range over(t, ds) {
		scratch, err := loader.NewScratch(ds.Fields())
		require.NoError(t, err)
		for i := range 3 {
			require.ErrorIs(t, ds.Read(t.Context(), i, scratch.Begin(new(loader.Row))), bad, name)
		}
	}
	_, err := compose.FilterRead(t.Context(), ds, func(context.Context, int, *loader.Row) (bool, error) { return true, nil })
	require.ErrorIs(t, err, bad)
}

// The lengths of compositions up to the largest, and one beyond.
func TestLengthsOfCompositions(t *testing.T) {
	most := min(1<<62, math.MaxInt)
	large := func(n int) loader.Dataset { return nothing{n} }
	source := func(n int) compose.Source { return compose.Source{Dataset: large(n), Weight: 1} }
	for name, c := range map[string]struct {
		good, bad func() (loader.Dataset, error)
	}{
		"Concat": {
			func() (loader.Dataset, error) { return compose.Concat(large(most-5), large(5)) },
			func() (loader.Dataset, error) { return compose.Concat(large(most-5), large(6)) },
		},
		"Repeat": {
			func() (loader.Dataset, error) { return compose.Repeat(large(most/3), 3) },
			func() (loader.Dataset, error) { return compose.Repeat(large(most/3+1), 3) },
		},
		"Select": {
			func() (loader.Dataset, error) {
				return compose.Select(large(1), most, func(int, int) int { return 0 })
			},
			func() (loader.Dataset, error) {
				return compose.Select(large(1), -1, func(int, int) int { return 0 })
			},
		},
		"Mix": {
			func() (loader.Dataset, error) { return compose.Mix(1, compose.Once, source(most-1), source(1)) },
			func() (loader.Dataset, error) { return compose.Mix(1, compose.Once, source(most-1), source(2)) },
		},
	} {
		ds, err := c.good()
		require.NoError(t, err, name)
		if name != "Repeat" {
			require.Equal(t, most, ds.Len(), name)
		}
		_, err = c.bad()
		require.ErrorAs(t, err, new(*loader.OptionError), name)
		require.ErrorContains(t, err, "compose: "+name+": ")
	}
	// A fraction of 1 is all of it, and several may add up to 1 but for rounding.
	ds := values(upTo(0, 1000)...)
	for _, fractions := range [][]float64{{1}, {0.1, 0.2, 0.7}, {0.3, 0.3, 0.4}} {
		parts, err := compose.Split(ds, 1, fractions...)
		require.NoError(t, err)
		sum := 0
		for _, p := range parts {
			sum += p.Len()
		}
		require.Equal(t, 1000, sum, "%v: nothing is left over", fractions)
	}
	for _, fractions := range [][]float64{{1.001}, {0.5, 0.6}, {math.NaN()}, {-0.1}, {0}} {
		_, err := compose.Split(ds, 1, fractions...)
		require.ErrorAs(t, err, new(*loader.OptionError), "%v", fractions)
	}
	_, err := compose.Weighted(values(1, 2), []float64{1, math.Inf(1)}, 1, 1)
	require.ErrorContains(t, err, "compose: Weighted: weights[1] is +Inf, want 0 or more, and finite")
	_, err = compose.CacheFile(values(1), filepath.Join(t.TempDir(), "cache"), strings.Repeat("v", 1<<20))
	require.ErrorContains(t, err, "compose: CacheFile: version is ")
	_, err = compose.CacheFile(large(most), filepath.Join(t.TempDir(), "cache"), "1")
	require.ErrorContains(t, err, "compose: CacheFile: ds is a dataset of ")
}

// Whatever bit of a file is wrong, and wherever it is cut off, the samples are those of the
// dataset; and what may be another's file stays as it is.
func TestEveryDamageToAFile(t *testing.T) {
	numbers := upTo(40, 6)
	path := filepath.Join(t.TempDir(), "cache")
	c, err := compose.CacheFile(values(numbers...), path, "1")
	require.NoError(t, err)
	require.NoError(t, c.Build(t.Context()))
	require.NoError(t, c.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	try := func(damaged []byte, what string) {
		require.NoError(t, os.WriteFile(path, damaged, 0o600))
		c, err := compose.CacheFile(values(numbers...), path, "1")
		if err != nil {
			require.ErrorContains(t, err, "the file is no cache", what)
			left, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, damaged, left, what)
			return
		}
		require.Equal(t, numbers, contents(t, c, 1)[0], what)
		require.NoError(t, c.Close(), what)
	}
	for at := range whole {
		if at > 200 && at < 4090 {
			continue // nothing stands there
		}
		damaged := slices.Clone(whole)
		damaged[at] ^= 1 << (at % 8)
		try(damaged, fmt.Sprint("a bit flipped at ", at))
		try(whole[:at], fmt.Sprint("cut off at ", at))
	}
}
