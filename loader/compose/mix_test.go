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

// inTurn are the sources of which samples are: source i has the numbers from 1000·i on.
func inTurn(numbers []int64) (sources []int64) {
	for _, n := range numbers {
		sources = append(sources, n/1000)
	}
	return sources
}

// of are sources of those lengths.
func of(lengths []int, weights ...float64) (sources []compose.Source) {
	for i, n := range lengths {
		s := compose.Source{Dataset: values(upTo(int64(1000*i), n)...)}
		if i < len(weights) {
			s.Weight = weights[i]
		}
		sources = append(sources, s)
	}
	return sources
}

func counts(numbers []int64) map[int64]int {
	times := map[int64]int{}
	for _, n := range numbers {
		times[n]++
	}
	return times
}

func TestAMixKeepsItsWeightsAndItsRule(t *testing.T) {
	lengths, weights := []int{3, 4, 3}, []float64{0.2, 0.6, 0.2}
	for rule, check := range map[compose.Rule]func(t *testing.T, epoch []int64){
		compose.Once: func(t *testing.T, epoch []int64) {
			require.Len(t, epoch, 10)
			require.Len(t, counts(epoch), 10)
		},
		compose.UntilAllEnded: func(t *testing.T, epoch []int64) {
			require.Len(t, counts(epoch), 10, "each of the ten is there")
			require.Equal(t, 1, counts(inTurn(epoch))[epoch[len(epoch)-1]/1000]/3, "it ends with the last of a source's first pass")
		},
		compose.UntilFirstEnds: func(t *testing.T, epoch []int64) {
			require.Len(t, counts(epoch), len(epoch), "no sample comes twice")
			require.Equal(t, 4, counts(inTurn(epoch))[1], "the first to end has given all")
		},
	} {
		t.Run(rule.String(), func(t *testing.T) {
			ds := must(compose.Mix(1, rule, of(lengths, weights...)...))
			all := contents(t, ds, 4)
			for _, epoch := range all {
				require.Len(t, epoch, ds.Len())
				check(t, epoch)
				require.Equal(t, inTurn(all[0]), inTurn(epoch), "the sources take turns alike in every epoch")
			}
			require.NotEqual(t, all[0], all[1], "their samples do not")
			// The rule survives what is put around the mix.
			twice := must(compose.Repeat(must(compose.Shuffle(ds, 3)), 2))
			require.Equal(t, 2*ds.Len(), twice.Len())
			for _, epoch := range contents(t, twice, 2) {
				for _, half := range [][]int64{epoch[:ds.Len()], epoch[ds.Len():]} {
					require.Equal(t, counts(inTurn(all[0])), counts(inTurn(half)))
					if rule != compose.UntilFirstEnds {
						require.Len(t, counts(half), 10)
					}
				}
			}
		})
	}
}

// A loader that shuffles keeps what an epoch of a mix has, but for its order.
func TestAShuffledMixHasTheSameSamples(t *testing.T) {
	ds := must(compose.Mix(1, compose.UntilAllEnded, of([]int{30, 7}, 2, 1)...))
	ld, err := loader.New(ds, 4, loader.Options{Epochs: 2, Shuffle: true, Workers: 3})
	require.NoError(t, err)
	shuffled, _ := epochs(t, ld, loader.Cursor{}, math.MaxInt)
	for epoch, want := range contents(t, ds, 2) {
		require.NotEqual(t, want, shuffled[epoch])
		require.ElementsMatch(t, want, shuffled[epoch])
	}
}

// A short source that begins again is shuffled anew each time, in one epoch and the next.
func TestEachPassOverASourceHasAnOrderOfItsOwn(t *testing.T) {
	ds := must(compose.Mix(5, compose.UntilAllEnded, of([]int{25, 200}, 1, 1)...))
	require.InDelta(t, 400, ds.Len(), 1)
	orders := map[string]bool{}
	for _, epoch := range contents(t, ds, 2) {
		var small []int64
		for _, n := range epoch {
			if n < 1000 {
				small = append(small, n)
			}
		}
		require.InDelta(t, 200, len(small), 1)
		for pass := range slices.Chunk(small[:200-1], 25) {
			if len(pass) == 25 {
				require.Equal(t, upTo(0, 25), slices.Sorted(slices.Values(pass)))
				orders[fmt.Sprint(pass)] = true
			}
		}
	}
	require.Len(t, orders, 14)
}

func TestASourceInOrderKeepsIt(t *testing.T) {
	sources := of([]int{5, 5}, 1, 1)
	sources[0].InOrder = true
	for _, epoch := range contents(t, must(compose.Mix(1, compose.Once, sources...)), 2) {
		require.Equal(t, upTo(0, 5), slices.DeleteFunc(epoch, func(n int64) bool { return n >= 1000 }))
	}
}

// Weights change at the stated sample, and a stop on either side of it resumes exactly, for
// any number of ranks and workers.
func TestWeightsChangeAtTheStatedSample(t *testing.T) {
	steps := []compose.Step{{From: 0, Weights: []float64{3, 1}}, {From: 640, Weights: []float64{1, 3}}}
	ds := must(compose.MixSteps(1, compose.UntilFirstEnds, steps, of([]int{600, 900})...))
	whole := contents(t, ds, 1)[0]
	before, after := counts(inTurn(whole[:640])), counts(inTurn(whole[640:]))
	require.InDelta(t, 480, before[0], 1)
	require.InDelta(t, float64(len(whole)-640)/4, after[0], 1)
	for _, n := range []int{600, 628} { // the proportions are right up to the change, and from it on
		require.InDelta(t, 9, counts(inTurn(whole[n : n+12]))[0], 1)
	}
	require.InDelta(t, 3, counts(inTurn(whole[640:652]))[0], 1)
	for _, ranks := range []int{1, 2, 4} {
		for _, workers := range []int{1, 16} {
			for _, stop := range []int{79, 80, 81} {
				require.Equal(t, whole[:len(whole)/8*8], ranked(t, ds, ranks, workers, stop), "%d ranks, %d workers, stop at %d", ranks, workers, stop)
			}
		}
	}
}

// ranked reads an epoch in global batches of 8, in which it stops once after some steps.
func ranked(t *testing.T, ds loader.Dataset, ranks, workers, stop int) []int64 {
	n := ds.Len() / 8 * 8
	all := make([]int64, n)
	for rank := range ranks {
		ld, err := loader.New(ds, 8/ranks, loader.Options{Epochs: 1, Workers: workers, Last: loader.Drop, Shard: loader.Shard{Index: rank, Count: ranks}})
		require.NoError(t, err)
		first, at := epochs(t, ld, loader.Cursor{}, stop)
		rest, _ := epochs(t, ld, at, math.MaxInt)
		mine := slices.Concat(first[0], rest[0])
		for i, x := range mine {
			step, row := i/(8/ranks), i%(8/ranks)
			all[8*step+rank*(8/ranks)+row] = x
		}
	}
	return all
}

func TestManySources(t *testing.T) {
	const k = 200
	weight := func(i int) float64 { return 1 / float64(i+1) }
	sources, sum := make([]compose.Source, k), 0.0
	for i := range sources {
		sum += weight(i)
		sources[i] = compose.Source{Dataset: values(int64(i)), Weight: weight(i)}
	}
	ds := must(compose.Mix(1, compose.UntilAllEnded, sources...)).(loader.Composed)
	seen := map[int]int{}
	for i := range ds.Len() {
		part, _, _ := ds.Part(0, i)
		seen[part]++
	}
	require.Len(t, seen, k, "each source comes at least once")
	require.InDelta(t, float64(ds.Len())/sum, seen[0], 5)
}

func TestMisuseOfMixes(t *testing.T) {
	two := of([]int{3, 3}, 1, 1)
	with := func(weights ...float64) []compose.Source { return of([]int{3, 3}, weights...) }
	one := func(ds loader.Dataset, err error) error { return err }
	long := compose.Source{Dataset: endless{values(1)}, Weight: 1}
	for name, c := range map[string]struct {
		err  error
		want []string
	}{
		"too many":        {one(compose.Mix(1, compose.Once, long, long, long)), []string{"sources[", "those before it have"}},
		"no early end":    {one(compose.Mix(1, compose.UntilFirstEnds, long, long, long)), []string{"a source that ends among the first"}},
		"no source":       {one(compose.Mix(1, compose.Once)), []string{"Mix: sources is empty"}},
		"a rule":          {one(compose.Mix(1, 7, two...)), []string{"Mix: rule is Rule(7)"}},
		"weights of 0":    {one(compose.Mix(1, compose.Once, with(0, 0)...)), []string{"[0 0], want one above 0"}},
		"NaN":             {one(compose.Mix(1, compose.Once, with(math.NaN(), -1)...)), []string{"Weights[0] is NaN", "Weights[1] is -1"}},
		"Inf":             {one(compose.Mix(1, compose.Once, with(1, math.Inf(1))...)), []string{"Weights[1] is +Inf"}},
		"fields":          {one(compose.Mix(1, compose.Once, compose.Source{Dataset: values(1), Weight: 1}, compose.Source{Dataset: column("y", 1), Weight: 1})), []string{"sources[1]", "y int64", "x int64"}},
		"an empty source": {one(compose.Mix(1, compose.Once, of([]int{3, 0}, 1, 1)...)), []string{"sources[1] is a dataset of 0 samples"}},
		"no end":          {one(compose.Mix(1, compose.UntilAllEnded, with(1, 1e-30)...)), []string{"sources[1]", "weight is too small"}},
		"never":           {one(compose.Mix(1, compose.UntilAllEnded, with(1, 0)...)), []string{"sources[1]", "weight is too small"}},
		"left over":       {one(compose.Mix(1, compose.Once, with(1, 0)...)), []string{"after 3 of 6 samples only sources of weight 0"}},
		"a step too long": {one(compose.MixSteps(1, compose.Once, []compose.Step{{Weights: []float64{1, 0}}, {From: 4, Weights: []float64{0, 1}}}, of([]int{3, 3})...)), []string{"after 3 of 6"}},
		"a step too late": {one(compose.MixSteps(1, compose.Once, []compose.Step{{Weights: []float64{1, 1}}, {From: 6, Weights: []float64{0, 1}}}, of([]int{3, 3})...)), []string{"MixSteps: steps[1].From is 6, want less than 6"}},
		"weights twice":   {one(compose.MixSteps(1, compose.Once, []compose.Step{{Weights: []float64{1, 1}}}, two...)), []string{"sources[0].Weight is 1", "sources[1].Weight is 1"}},
		"no steps":        {one(compose.MixSteps(1, compose.Once, nil, of([]int{3})...)), []string{"steps is empty"}},
		"several":         {one(compose.Mix(1, -1, compose.Source{}, compose.Source{Dataset: values(1), Weight: -1})), []string{"Mix: rule is", "sources[0]", "Weights[1] is -1"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorAs(t, c.err, new(*loader.OptionError))
			for _, part := range c.want {
				require.ErrorContains(t, c.err, part)
			}
		})
	}
}
