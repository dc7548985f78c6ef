package stream_test

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/mix"
	"github.com/leat-go/leat/loader/internal/permute"
	"github.com/leat-go/leat/loader/internal/quota"
	"github.com/leat-go/leat/loader/stream"
)

// modelled is a stream with what it gives, said with plain slices.
type modelled struct {
	name  string
	s     stream.Stream[int]
	model func(pass loader.Pass, shard int) []int
	draws int
}

// composer draws compositions.
type composer struct {
	t      *rapid.T
	open   *atomic.Int64
	shards int
	bad    bool // sources have records that fail, and the models don't hold
	steady bool // no source flushes: with several ranks a batch is never cut short
	cached bool // a Cache is somewhere: a place has several marks
}

func (c *composer) upTo(least, most int, label string) int {
	return rapid.IntRange(least, most).Draw(c.t, label)
}

func (c *composer) source() modelled {
	n, first := c.upTo(0, 25, "items"), c.upTo(0, 9, "first")*100
	model := func(_ loader.Pass, shard int) (values []int) {
		for i := shard; i < n; i += c.shards {
			values = append(values, first+i)
		}
		return values
	}
	s := counted(c.open, c.shards, func(pass loader.Pass, shard int) (events []any) {
		for i, v := range model(pass, shard) {
			if events = append(events, v); c.bad && i%4 == 2 {
				events = append(events, errBad)
				if !c.steady {
					events = append(events, loader.Flush)
				}
			}
		}
		return events
	})
	return modelled{fmt.Sprintf("%d from %d", n, first), s, model, 0}
}

// any is a random composition.
func (c *composer) any(depth int) modelled {
	if depth == 0 {
		return c.source()
	}
	in := c.any(depth - 1)
	operators := []func(modelled, int) modelled{
		c.mapped, c.filtered, c.taken, c.repeated, c.shuffled, c.byLength, c.random, c.packed, c.ahead, c.concatenated, c.zipped, c.mixed, c.held,
	}
	return operators[c.upTo(0, len(operators)-1, "operator")](in, depth)
}

func triple(_ context.Context, n int) (int, error) {
	if n%5 == 0 {
		return 0, loader.Skip
	}
	return 3*n + 1, nil
}

// each makes a model of f, which leaves values out.
func each(in modelled, f func(n int) (int, bool)) func(loader.Pass, int) []int {
	return func(pass loader.Pass, shard int) (out []int) {
		for _, n := range in.model(pass, shard) {
			if n, ok := f(n); ok {
				out = append(out, n)
			}
		}
		return out
	}
}

func (c *composer) mapped(in modelled, _ int) modelled {
	return modelled{"Map " + in.name, stream.Map(in.s, triple), each(in, func(n int) (int, bool) { return 3*n + 1, n%5 != 0 }), in.draws}
}

func (c *composer) ahead(in modelled, _ int) modelled {
	s := stream.Retry(stream.ParallelMap(in.s, c.upTo(1, 3, "workers"), triple), stream.RetryOptions{})
	return modelled{"ParallelMap " + in.name, s, each(in, func(n int) (int, bool) { return 3*n + 1, n%5 != 0 }), in.draws}
}

func (c *composer) filtered(in modelled, _ int) modelled {
	return modelled{"Filter " + in.name, stream.Filter(in.s, func(n int) bool { return n%3 != 0 }),
		each(in, func(n int) (int, bool) { return n, n%3 != 0 }), in.draws}
}

func (c *composer) taken(in modelled, _ int) modelled {
	n := c.upTo(0, 30, "n")
	share := func(shard int) int { return (n - shard + c.shards - 1) / c.shards }
	if rapid.Bool().Draw(c.t, "skip") {
		return modelled{fmt.Sprint("Skip ", n, " ", in.name), stream.Skip(in.s, int64(n)), func(pass loader.Pass, shard int) []int {
			values := in.model(pass, shard)
			return values[min(len(values), max(0, share(shard))):]
		}, in.draws}
	}
	return modelled{fmt.Sprint("Take ", n, " ", in.name), stream.Take(in.s, int64(n)), func(pass loader.Pass, shard int) []int {
		values := in.model(pass, shard)
		return values[:min(len(values), max(0, share(shard)))]
	}, in.draws}
}

// again is pass number i within a pass.
func again(pass loader.Pass, i int) loader.Pass {
	if i > 0 {
		pass.Seed = mix.Hash(pass.Seed, uint64(i))
	}
	return pass
}

func (c *composer) repeated(in modelled, _ int) modelled {
	times := c.upTo(1, 3, "times")
	return modelled{fmt.Sprint("Repeat ", times, " ", in.name), stream.Repeat(in.s, times), func(pass loader.Pass, shard int) (out []int) {
		for i := range times {
			values := in.model(again(pass, i), shard)
			if len(values) == 0 {
				break
			}
			out = append(out, values...)
		}
		return out
	}, in.draws}
}

func key(pass loader.Pass, shard, draws int) uint64 {
	return mix.Hash(pass.Seed, uint64(pass.Epoch), uint64(shard), uint64(draws))
}

func (c *composer) shuffled(in modelled, _ int) modelled {
	size := c.upTo(1, 12, "size")
	return modelled{fmt.Sprint("Shuffle ", size, " ", in.name), stream.Shuffle(in.s, size), func(pass loader.Pass, shard int) (out []int) {
		var buffer []int
		draw := func() int {
			hi, _ := bits.Mul64(mix.Hash(key(pass, shard, in.draws), uint64(len(out))), uint64(len(buffer)))
			return int(hi)
		}
		for _, n := range in.model(pass, shard) {
			if len(buffer) < size {
				buffer = append(buffer, n)
				continue
			}
			i := draw()
			out, buffer[i] = append(out, buffer[i]), n
		}
		for len(buffer) > 0 {
			i, last := draw(), len(buffer)-1
			out, buffer[i] = append(out, buffer[i]), buffer[last]
			buffer = buffer[:last]
		}
		return out
	}, in.draws + 1}
}

func (c *composer) byLength(in modelled, _ int) modelled {
	run, runs := c.upTo(1, 4, "run"), c.upTo(1, 4, "runs")
	return modelled{fmt.Sprint("ByLength ", run, " ", runs, " ", in.name), stream.ByLength(in.s, run, runs, lengthOf), func(pass loader.Pass, shard int) (out []int) {
		number := uint64(0)
		for window := range slices.Chunk(in.model(pass, shard), run*runs) {
			window = slices.Clone(window)
			slices.SortStableFunc(window, func(a, b int) int { return lengthOf(a) - lengthOf(b) })
			pieces := slices.Collect(slices.Chunk(window, run))
			order := permute.New(mix.Hash(key(pass, 0, in.draws), number), uint64(len(pieces)))
			for i := range pieces {
				out = append(out, pieces[order.At(uint64(i))]...)
			}
			number++
		}
		return out
	}, in.draws + 1}
}

func (c *composer) random(in modelled, _ int) modelled {
	f := func(_ context.Context, r *rand.Rand, n int) (int, error) { return n + r.IntN(10), nil }
	s := stream.MapRand(in.s, f)
	if rapid.Bool().Draw(c.t, "parallel") {
		s = stream.ParallelMapRand(in.s, c.upTo(1, 3, "workers"), f)
	}
	return modelled{"MapRand " + in.name, s, func(pass loader.Pass, shard int) (out []int) {
		k := key(pass, shard, in.draws)
		for i, n := range in.model(pass, shard) {
			r := rand.New(rand.NewPCG(mix.Hash(k, uint64(i)), mix.Hash(k, uint64(i), 1)))
			out = append(out, n+r.IntN(10))
		}
		return out
	}, in.draws + 1}
}

// document is the number as one.
func document(n int) []int { return slices.Repeat([]int{n}, n%7) }

func sum(tokens []int) (sum int) {
	for i, t := range tokens {
		sum += (i + 1) * t
	}
	return sum % 1009
}

func (c *composer) packed(in modelled, _ int) modelled {
	window, open := c.upTo(1, 12, "window"), c.upTo(1, 3, "open")
	windows := stream.Pack(stream.Map(in.s, nil2(document)), window, stream.PackOptions[int]{Open: open})
	s := stream.Map(windows, nil2(func(w stream.Packed[int]) int { return sum(w.Tokens) }))
	return modelled{fmt.Sprint("Pack ", window, " ", open, " ", in.name), s, func(pass loader.Pass, shard int) (out []int) {
		var docs [][]int
		for _, n := range in.model(pass, shard) {
			docs = append(docs, document(n))
		}
		for _, w := range firstFit(docs, window, open) {
			out = append(out, sum(slices.Concat(w...)))
		}
		return out
	}, in.draws}
}

func (c *composer) concatenated(in modelled, depth int) modelled {
	other := c.any(c.upTo(0, depth-1, "depth"))
	return modelled{"Concat (" + in.name + ") (" + other.name + ")", stream.Concat(in.s, other.s), func(pass loader.Pass, shard int) []int {
		return slices.Concat(in.model(pass, shard), other.model(pass, shard))
	}, max(in.draws, other.draws)}
}

func (c *composer) held(in modelled, _ int) modelled {
	c.cached = true
	s := stream.Cache(in.s, int64(c.upTo(0, 40, "limit")), one)
	if rapid.Bool().Draw(c.t, "files") {
		directory, err := os.MkdirTemp("", "leat")
		require.NoError(c.t, err)
		c.t.Cleanup(func() { _ = os.RemoveAll(directory) })
		s = cacheFile(in.s, directory).Stream()
	}
	return modelled{"Cache " + in.name, s, func(_ loader.Pass, shard int) []int { return in.model(loader.Pass{}, shard) }, in.draws}
}

func (c *composer) zipped(in modelled, _ int) modelled {
	s := stream.Zip(in.s, stream.Map(in.s, nil2(func(n int) int { return -n })), func(_ context.Context, a, b int) (int, error) {
		if a != -b {
			return 0, errors.New("these don't belong together")
		}
		return a, nil
	})
	return modelled{"Zip " + in.name, s, in.model, in.draws}
}

func (c *composer) mixed(in modelled, depth int) modelled {
	other := c.any(c.upTo(0, depth-1, "depth"))
	parts := []modelled{in, other}
	rule := stream.Rule(c.upTo(0, 2, "rule"))
	weights := []float64{1, []float64{0.1, 1, 2.5}[c.upTo(0, 2, "weight")]}
	sources := []stream.Source[int]{{Stream: in.s, Weight: weights[0]}, {Stream: other.s, Weight: weights[1]}}
	s := stream.Mix(rule, sources...)
	if open := c.upTo(0, 2, "open"); open > 0 {
		s = stream.MixFew(rule, open, sources...)
	}
	return modelled{fmt.Sprint(rule, weights, " (", in.name, ") (", other.name, ")"), s, func(pass loader.Pass, shard int) (out []int) {
		lane := quota.Lane{Number: shard, Of: c.shards}
		limits := []int64{quota.Most, quota.Most}
		turns := quota.New([]quota.Step{{Weights: weights}}, lane, limits).Cursor()
		var passes [2]int
		left := [2][]int{in.model(pass, shard), other.model(pass, shard)}
		begun := [2]bool{}
		for {
			i, turn, ok := turns.Next()
			if !ok {
				return out
			}
			for len(left[i]) == 0 {
				passes[i]++
				if rule == stream.UntilFirstEnds || rule == stream.UntilAllEnded && passes[0] > 0 && passes[1] > 0 {
					return out
				}
				if rule == stream.Once || !begun[i] {
					break
				}
				left[i], begun[i] = parts[i].model(again(pass, passes[i]), shard), false
			}
			if len(left[i]) == 0 {
				limits[i] = turn
				turns = quota.New([]quota.Step{{Weights: weights}}, lane, limits).Cursor()
				turns.Move(int64(len(out)))
				continue
			}
			out, left[i], begun[i] = append(out, left[i][0]), left[i][1:], true
		}
	}, max(in.draws, other.draws)}
}

// Compositions of compositions give what plain slices say, from each place on, and leave no
// reader open.
func TestCompositions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var open atomic.Int64
		c := &composer{t: t, open: &open, shards: rapid.IntRange(1, 3).Draw(t, "shards")}
		m := c.any(rapid.IntRange(1, 4).Draw(t, "depth"))
		pass := loader.Pass{Epoch: rapid.IntRange(0, 2).Draw(t, "epoch"), Seed: rapid.Uint64().Draw(t, "seed")}
		require.NoError(t, m.s.Err())
		total := 0
		for shard := range c.shards {
			want := nonNil(m.model(pass, shard))
			require.Equal(t, want, nonNil(values(t, m.s, pass, shard)), "shard %d of %s", shard, m.name)
			total += len(want)
		}
		switch {
		case total >= 400:
		case c.cached:
			requireMarksIfAny(t, m.s, pass)
		default:
			requireMarks(t, m.s, pass)
		}
		require.Zero(t, open.Load(), m.name)
	})
}

// The same with records that fail.
func TestCompositionsOfFailures(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var open atomic.Int64
		c := &composer{t: t, open: &open, shards: rapid.IntRange(1, 2).Draw(t, "shards"), bad: true}
		m := c.any(rapid.IntRange(1, 4).Draw(t, "depth"))
		requireMarksIfAny(t, m.s, pass)
		require.Zero(t, open.Load(), m.name)
	})
}

// A mark that was damaged is refused, or goes on from somewhere; it allocates nothing by its
// numbers, hangs nothing and leaves nothing open.
func TestCompositionsOfDamagedMarks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var open atomic.Int64
		c := &composer{t: t, open: &open, shards: 1}
		m := c.any(rapid.IntRange(1, 4).Draw(t, "depth"))
		r, err := m.s.Open(ctx, pass, 0, nil)
		require.NoError(t, err)
		for range rapid.IntRange(0, 20).Draw(t, "items") {
			_, _, err := next(ctx, r)
			require.NoError(t, err)
		}
		mark := markOf(t, r)
		require.NoError(t, r.Close())
		for range rapid.IntRange(1, 3).Draw(t, "damages") {
			at := rapid.IntRange(0, len(mark)-1).Draw(t, "at")
			with := rapid.SampledFrom([]string{"", "-", "0", "9", "99999999999999999", "[", "]", "{", "}", "null", ",", `"`}).Draw(t, "with")
			mark = slices.Concat(mark[:at], []byte(with), mark[min(len(mark), at+rapid.IntRange(0, 3).Draw(t, "instead of")):])
			if len(mark) == 0 {
				mark = []byte("{")
			}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err = m.s.Open(ctx, pass, 0, mark)
		if err == nil {
			for range 1000 {
				if _, ok, _ := next(ctx, r); !ok {
					break
				}
			}
			require.NoError(t, r.Close())
		}
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
		require.Zero(t, open.Load(), "%s at %s: %v", m.name, mark, err)
	})
}
