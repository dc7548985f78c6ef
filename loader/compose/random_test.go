package compose_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/compose"
	"github.com/leat-go/leat/loader/internal/mix"
	"github.com/leat-go/leat/loader/internal/permute"
	"github.com/leat-go/leat/loader/internal/quota"
)

// model is a dataset and what it should have in each pass, worked out in plain slices.
type model struct {
	ds     loader.Dataset
	want   func(pass uint64) []int64
	steady bool // whether that is the same in every pass
}

// generator draws models. Every leaf has numbers of its own.
type generator struct {
	*rapid.T
	next int64
}

func (g *generator) int(low, high int, what string) int {
	return rapid.IntRange(low, high).Draw(g.T, what)
}

func (g *generator) seed() uint64 { return rapid.Uint64().Draw(g.T, "seed") }

func (g *generator) leaf() model {
	numbers := upTo(g.next, g.int(0, 12, "samples"))
	g.next += 100
	return model{values(numbers...), func(uint64) []int64 { return numbers }, true}
}

// picked is a model of samples of another one by index.
func (m model) picked(ds loader.Dataset, indices []int) model {
	return model{ds, func(pass uint64) (all []int64) {
		inner := m.want(pass)
		for _, i := range indices {
			all = append(all, inner[i])
		}
		return all
	}, m.steady}
}

// told is picked by what the dataset itself tells, of what another test looks at.
func (m model) told(ds loader.Dataset) model {
	return model{ds, func(pass uint64) (all []int64) {
		inner := m.want(pass)
		for i := range ds.Len() {
			_, at, _ := ds.(loader.Composed).Part(pass, i)
			all = append(all, inner[at])
		}
		return all
	}, false}
}

func count(from, to int) (all []int) {
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all
}

// draw is a model of at most that depth.
func (g *generator) draw(depth int) model {
	if depth == 0 {
		return g.leaf()
	}
	m := g.draw(depth - 1)
	n := m.ds.Len()
	switch rapid.SampledFrom([]string{"Subset", "Take", "Skip", "Repeat", "Concat", "Zip", "Select", "Shuffle",
		"SplitN", "Filter", "Map", "Mix", "Weighted", "Balanced", "ByLength", "Retry", "Cache"}).Draw(g.T, "kind") {
	case "Subset":
		var indices []int
		if n > 0 {
			indices = rapid.SliceOfN(rapid.IntRange(0, n-1), 0, 20).Draw(g.T, "indices")
		}
		return m.picked(must(compose.Subset(m.ds, indices)), indices)
	case "Take":
		k := g.int(0, n+1, "n")
		return m.picked(must(compose.Take(m.ds, k)), count(0, min(k, n)))
	case "Skip":
		k := g.int(0, n+1, "n")
		return m.picked(must(compose.Skip(m.ds, k)), count(min(k, n), n))
	case "Repeat":
		times := g.int(1, 3, "times")
		return model{must(compose.Repeat(m.ds, times)), func(pass uint64) (all []int64) {
			for time := range times {
				all = append(all, m.want(pass*uint64(times)+uint64(time))...)
			}
			return all
		}, m.steady}
	case "Concat":
		o := g.draw(depth - 1)
		return model{must(compose.Concat(m.ds, o.ds)), func(pass uint64) []int64 {
			return slices.Concat(m.want(pass), o.want(pass))
		}, m.steady && o.steady}
	case "Zip":
		return g.zip(m)
	case "Select":
		if n == 0 {
			return m
		}
		k := g.int(0, 20, "n")
		return model{must(compose.Select(m.ds, k, func(epoch, i int) int { return (epoch*7 + i*3) % n })), func(pass uint64) (all []int64) {
			for i := range k {
				all = append(all, m.want(pass)[(int(pass)*7+i*3)%n])
			}
			return all
		}, false}
	case "Shuffle":
		seed := g.seed()
		return model{must(compose.Shuffle(m.ds, seed)), func(pass uint64) (all []int64) {
			for i := range n {
				all = append(all, m.want(pass)[place(mix.Hash(seed, 8), pass, n, i)])
			}
			return all
		}, false}
	case "SplitN":
		if n < 2 {
			return m
		}
		seed, k := g.seed(), g.int(1, n-1, "count")
		parts, err := compose.SplitN(m.ds, seed, k, n-k)
		require.NoError(g.T, err)
		var indices []int
		for i := range n {
			indices = append(indices, place(mix.Hash(seed, 9), 0, n, i))
		}
		if rapid.Bool().Draw(g.T, "first") {
			return m.picked(parts[0], indices[:k])
		}
		return m.picked(parts[1], indices[k:])
	case "Filter":
		return m.picked(must(compose.Filter(m.ds, func(i int) bool { return i%3 != 1 })),
			slices.DeleteFunc(count(0, n), func(i int) bool { return i%3 == 1 }))
	case "Map":
		return model{must(compose.Map(m.ds, xField, plus(0))), m.want, m.steady}
	case "Mix":
		return g.mix(m, g.draw(depth-1))
	case "Weighted":
		if n == 0 {
			return m
		}
		weights := slices.Repeat([]float64{1, 0, 3}, n)[:n]
		return m.told(must(compose.Weighted(m.ds, weights, g.int(0, 20, "n"), g.seed())))
	case "Balanced":
		if n == 0 {
			return m
		}
		return m.told(must(compose.Balanced(m.ds, rapid.SliceOfN(rapid.IntRange(0, 2), n, n).Draw(g.T, "labels"), g.seed())))
	case "ByLength":
		return m.told(must(compose.ByLength(m.ds, rapid.SliceOfN(rapid.IntRange(0, 9), n, n).Draw(g.T, "lengths"), g.int(1, 4, "batch"), g.seed())))
	case "Retry":
		return model{must(compose.Retry(m.ds, compose.RetryOptions{})), m.want, m.steady}
	case "Cache":
		c, err := compose.CacheMemory(m.ds, int64(8*n+g.int(0, 200, "bytes")))
		require.Equal(g.T, m.steady, err == nil)
		if m.steady {
			m.ds = c
		}
	}
	return m
}

// place is where a shuffle sends a position.
func place(key, pass uint64, n, position int) int {
	p := permute.New(mix.Hash(key, pass), uint64(n))
	return int(p.At(uint64(position)))
}

// zip has the sample and its double beside it, and gives their difference.
func (g *generator) zip(m model) model {
	double := must(compose.Map(m.ds, column("twice").Fields(), func(_ context.Context, in, out *loader.Row) error {
		return loader.Write(out, "twice", 2*loader.Value[int64](in, "x")[0])
	}))
	both := must(compose.Zip(m.ds, double))
	return model{must(compose.Map(both, xField, func(_ context.Context, in, out *loader.Row) error {
		return loader.Write(out, "x", loader.Value[int64](in, "twice")[0]-loader.Value[int64](in, "x")[0])
	})), m.want, m.steady}
}

// mix is a mix of two, which goes through the choices one by one.
func (g *generator) mix(a, b model) model {
	if a.ds.Len() == 0 || b.ds.Len() == 0 {
		return a
	}
	seed, rule := g.seed(), compose.Rule(g.int(0, 2, "rule"))
	models, inOrder := []model{a, b}, rapid.Bool().Draw(g.T, "in order")
	weights := []float64{1, rapid.SampledFrom([]float64{0.1, 1, 2.5}).Draw(g.T, "weight")}
	ds := must(compose.Mix(seed, rule, compose.Source{Dataset: a.ds, Weight: weights[0]},
		compose.Source{Dataset: b.ds, Weight: weights[1], InOrder: inOrder}))
	var limits []int64
	if rule == compose.Once {
		limits = []int64{int64(a.ds.Len()), int64(b.ds.Len())}
	}
	choices := quota.New([]quota.Step{{Weights: weights}}, quota.Lane{}, limits).Cursor()
	var sources []int
	turns := []int{0, 0}
	for {
		source, _, ok := choices.Next()
		ended := func(i int) bool { return turns[i] >= models[i].ds.Len() }
		if !ok || rule == compose.UntilFirstEnds && ended(source) || rule == compose.UntilAllEnded && ended(0) && ended(1) {
			break
		}
		sources = append(sources, source)
		turns[source]++
	}
	return model{ds, func(pass uint64) (all []int64) {
		had := []int{0, 0}
		for _, s := range sources {
			n := models[s].ds.Len()
			passes := max((turns[s]+n-1)/n, 1)
			p := pass*uint64(passes) + uint64(had[s]/n)
			at := had[s] % n
			if s == 0 || !inOrder {
				at = place(mix.Hash(seed, 11, uint64(s)), p, n, at)
			}
			all = append(all, models[s].want(p)[at])
			had[s]++
		}
		return all
	}, false}
}

// byPosition reads two epochs on some ranks, each of which stops once and goes on from its
// state, and puts the samples at their positions.
func byPosition(t require.TestingT, ds loader.Dataset, batch, ranks, workers, stop int) [][]int64 {
	all := [][]int64{make([]int64, ds.Len()), make([]int64, ds.Len())}
	for rank := range ranks {
		ld, err := loader.New(ds, batch, loader.Options{Epochs: 2, Workers: workers, Last: loader.Exact, Shard: loader.Shard{Index: rank, Count: ranks}})
		require.NoError(t, err)
		mem, err := loader.NewHeap(ld.Layout().Size(), 2)
		require.NoError(t, err)
		var at loader.Cursor
		for _, most := range []int{stop, math.MaxInt} {
			run := ld.Start(context.Background(), at, mem)
			for steps := 0; steps < most; {
				f, err := run.Next(context.Background())
				if errors.Is(err, loader.ErrEpochEnd) {
					continue
				}
				if errors.Is(err, loader.ErrEnd) {
					break
				}
				require.NoError(t, err)
				if f.N > 0 {
					copy(all[f.Epoch][f.Position:], column64(ld, f, "x"))
				}
				at = f.After
				mem.Put(f.Slot)
				steps++
			}
			require.NoError(t, run.Close())
			require.NoError(t, ld.Check(ld.StateAt(at)))
			at = ld.StateAt(at).Cursor()
		}
	}
	return all
}

// leaves are the datasets below all compositions, in order.
func leaves(ds loader.Dataset) (all []loader.Dataset) {
	composed, ok := ds.(loader.Composed)
	if !ok {
		return []loader.Dataset{ds}
	}
	for _, part := range composed.Parts() {
		all = append(all, leaves(part)...)
	}
	return all
}

// Compositions of compositions have what plain slices have, read by any number of ranks and
// workers, with a stop at any place; and they tell which samples those are.
func TestRandomCompositions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &generator{T: t}
		m := g.draw(g.int(1, 4, "depth"))
		want := [][]int64{m.want(0), m.want(1)}
		require.Len(t, want[0], m.ds.Len())
		if m.ds.Len() == 0 {
			return
		}
		for epoch := range want {
			require.Equal(t, want[epoch], contents(t, m.ds, 2)[epoch])
		}
		got := byPosition(t, m.ds, g.int(1, 4, "batch"), g.int(1, 3, "ranks"), g.int(1, 3, "workers"), g.int(0, 12, "stop"))
		require.Equal(t, want, got)

		ld, err := loader.New(m.ds, 2, loader.Options{})
		require.NoError(t, err)
		samples, err := ld.Which(loader.Span{To: loader.Cursor{Epoch: 2}})
		require.NoError(t, err)
		all := leaves(m.ds)
		for s := range samples {
			x := contents(t, all[s.Leaf.Source], 1)[0][s.Leaf.Index]
			require.Equal(t, want[s.Epoch][s.Position], x)
		}
	})
}
