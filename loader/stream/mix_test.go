package stream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/stream"
	"github.com/leat-go/leat/prefetch"
)

// sourcesOf are streams of these lengths, of which source i begins with 1000·i.
func sourcesOf(open *atomic.Int64, shards int, lengths []int, weights ...float64) (all []stream.Source[int]) {
	for i, n := range lengths {
		s := stream.Source[int]{Stream: count(open, 1000*i, n, shards)}
		if weights != nil {
			s.Weight = weights[i]
		}
		all = append(all, s)
	}
	return all
}

func ids(lengths []int) (all []int) {
	for i, n := range lengths {
		for j := range n {
			all = append(all, 1000*i+j)
		}
	}
	return all
}

func TestMixRules(t *testing.T) {
	var open atomic.Int64
	lengths := []int{3, 4, 3, 0, 5}
	for _, shards := range []int{1, 2, 3} {
		sources := sourcesOf(&open, shards, lengths, 0.2, 0.6, 0.2, 0.5, 0)
		want := ids(lengths[:3])

		once := stream.Mix(stream.Once, sources...)
		require.ElementsMatch(t, want, all(t, once, pass), "each exactly once, and the source of weight 0 never")
		requireMarks(t, once, pass)

		every := stream.Mix(stream.UntilAllEnded, sources...)
		got := all(t, every, pass)
		require.Subset(t, got, want)
		require.Subset(t, want, got)
		requireMarks(t, every, pass)

		first := stream.Mix(stream.UntilFirstEnds, sources[:3]...)
		got = all(t, first, pass)
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(got))), len(got), "nothing twice")
		require.Subset(t, want, got)
		requireMarks(t, first, pass)
		require.Empty(t, all(t, stream.Mix(stream.UntilFirstEnds, sources[3]), pass))
	}
	require.Zero(t, open.Load())
}

// The rule survives whatever stands around the mix: each id comes, and as many values.
func TestMixRuleSurvivesWrappers(t *testing.T) {
	var open atomic.Int64
	lengths := []int{3, 4, 3}
	for _, shards := range []int{1, 2} {
		mixed := stream.Mix(stream.UntilAllEnded, sourcesOf(&open, shards, lengths, 0.2, 0.6, 0.2)...)
		n := len(all(t, mixed, pass))
		for name, s := range map[string]stream.Stream[int]{
			"Shuffle":        stream.Shuffle(mixed, 1000),
			"Shuffle Repeat": stream.Shuffle(stream.Repeat(mixed, 2), 1000),
			"Repeat Shuffle": stream.Repeat(stream.Shuffle(mixed, 1000), 2),
			"Concat":         stream.Concat(mixed, mixed),
			"Mix":            stream.Mix(stream.UntilAllEnded, stream.Source[int]{Stream: mixed, Weight: 2}),
			"ParallelMap":    stream.ParallelMap(mixed, 3, nil2(func(n int) int { return n })),
			"Filter":         stream.Filter(mixed, func(int) bool { return true }),
		} {
			got := all(t, s, pass)
			require.Contains(t, []int{n, 2 * n}, len(got), name)
			require.Subset(t, got, ids(lengths), name)
			requireMarks(t, s, pass)
		}
	}
	require.Zero(t, open.Load())
}

// A small source that is shuffled is gone through eight times, in eight orders, each of which
// is whole. (1:1 with one of 200.)
func TestMixShufflesAgain(t *testing.T) {
	var open atomic.Int64
	small := stream.Shuffle(count(&open, 0, 25, 1), 100)
	s := stream.Mix(stream.UntilAllEnded,
		stream.Source[int]{Stream: small, Weight: 1},
		stream.Source[int]{Stream: count(&open, 1000, 200, 1), Weight: 1})
	var passes [][]int
	seen := map[string]bool{}
	for _, n := range values(t, s, pass, 0) {
		if n >= 1000 {
			continue
		}
		if len(passes) == 0 || len(passes[len(passes)-1]) == 25 {
			passes = append(passes, nil)
		}
		passes[len(passes)-1] = append(passes[len(passes)-1], n)
	}
	require.GreaterOrEqual(t, len(passes), 8)
	for _, p := range passes[:8] {
		require.Equal(t, ids([]int{25}), slices.Sorted(slices.Values(p)))
		seen[fmt.Sprint(p)] = true
	}
	require.Len(t, seen, 8)
	require.Equal(t, values(t, small, pass, 0), passes[0], "the first is that of the source alone")
	requireMarks(t, s, pass)
	require.Zero(t, open.Load())
}

// endlessSources never end; the value is the source's number.
func endlessSources(shards, n int) (all []stream.Source[int]) {
	for i := range n {
		all = append(all, stream.Source[int]{Stream: stream.Map(endless(shards), nil2(func(int) int { return i }))})
	}
	return all
}

// Shares at each prefix of the whole stream; a weight of a millionth, and a thousand sources.
func TestMixShares(t *testing.T) {
	for _, c := range []struct {
		weights []float64
		shards  int
		n       int
		within  float64
	}{
		{[]float64{1, 1, 1e-6}, 1, 3_000_000, 1},
		{[]float64{1, 1, 1e-5}, 3, 300_000, 2},
		{[]float64{0.31, 0.27, 0.2, 0.11, 0.07, 0.03, 0.01}, 4, 20_000, 3},
		{squares(1000), 1, 100_000, 20},
	} {
		sources := endlessSources(c.shards, len(c.weights))
		sum := 0.0
		for i, w := range c.weights {
			sources[i].Weight = w
			sum += w
		}
		s := stream.Mix(stream.UntilFirstEnds, sources...)
		var readers []stream.Reader[int]
		for shard := range c.shards {
			r, err := s.Open(ctx, pass, shard, nil)
			require.NoError(t, err)
			readers = append(readers, r)
		}
		given := make([]int, len(c.weights))
		for n := range c.n {
			item, _, _ := next(ctx, readers[n%c.shards])
			i := item.Value
			given[i]++
			if quota := c.weights[i] / sum * float64(n+1); math.Abs(float64(given[i])-quota) > c.within {
				t.Fatalf("%d shards: after %d values source %d has given %d, want %v", c.shards, n+1, i, given[i], quota)
			}
		}
		for i, w := range c.weights {
			require.InDelta(t, w/sum*float64(c.n), given[i], c.within)
			if w/sum*float64(c.n) >= 1.1 {
				require.NotZero(t, given[i], "source %d", i)
			}
		}
		for _, r := range readers {
			require.NoError(t, r.Close())
		}
	}
}

func squares(n int) []float64 {
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = 1 / float64((i+1)*(i+1))
	}
	return weights
}

// Weights change exactly at the stated value of the whole stream, for each number of shards,
// and for readers that go on from either side.
func TestMixStepsChangeExactly(t *testing.T) {
	for _, shards := range []int{1, 2, 4, 8} {
		steps := []stream.Step{{From: 0, Weights: []float64{1, 0}}, {From: 640, Weights: []float64{0, 1}}}
		s := stream.Take(stream.MixSteps(stream.UntilFirstEnds, steps, endlessSources(shards, 2)...), 800)
		got := all(t, s, pass)
		require.Len(t, got, 800)
		require.Equal(t, 640, slices.Index(got, 1))
		require.NotContains(t, got[640:], 0)

		mixed := []stream.Step{{From: 0, Weights: []float64{3, 1}}, {From: 637, Weights: []float64{1, 3}}}
		s = stream.Take(stream.MixSteps(stream.UntilFirstEnds, mixed, endlessSources(shards, 2)...), 800)
		ones := 0
		for _, i := range all(t, s, pass)[:637] {
			ones += i
		}
		require.InDelta(t, 637/4.0, ones, 3)
		if shards == 8 {
			requireMarks(t, s, pass)
		}
	}
}

// Sources that have no weight any more are not waited for, and those that get one too late
// come all the same.
func TestMixStepsAndRules(t *testing.T) {
	var open atomic.Int64
	for _, rule := range []stream.Rule{stream.UntilAllEnded, stream.Once} {
		late := stream.MixSteps(rule, []stream.Step{{Weights: []float64{1, 0, 0}}, {From: 100, Weights: []float64{1, 1, 1}}},
			sourcesOf(&open, 1, []int{5, 4, 3})...)
		got := values(t, late, pass, 0)
		require.Subset(t, got, ids([]int{5, 4, 3}), rule)
		if rule == stream.Once {
			require.Equal(t, []int{0, 1, 2, 3, 4, 1000, 1001, 1002, 1003, 2000, 2001, 2002}, got)
		}
		requireMarks(t, late, pass)

		over := stream.MixSteps(rule, []stream.Step{{Weights: []float64{1, 0}}, {From: 10, Weights: []float64{0, 1}}},
			sourcesOf(&open, 1, []int{50, 4})...)
		require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1000, 1001, 1002, 1003}, values(t, over, pass, 0), rule)
		requireMarks(t, over, pass)
	}
	require.Zero(t, open.Load())
}

// A failure costs one record of its source, which has its turn again.
func TestMixOfFailures(t *testing.T) {
	var open atomic.Int64
	bad := counted(&open, 1, func(loader.Pass, int) []any { return []any{0, errBad, 1, errBad, errBad, 2, loader.Flush, 3} })
	s := stream.Mix(stream.Once, stream.Source[int]{Stream: bad, Weight: 1}, stream.Source[int]{Stream: count(&open, 1000, 4, 1), Weight: 1})
	good := stream.Mix(stream.Once, sourcesOf(&open, 1, []int{4, 4}, 1, 1)...)
	var got []int
	for _, item := range items(read(t, s, pass, 0)) {
		got = append(got, item.Value)
	}
	require.Equal(t, values(t, good, pass, 0), got)
	requireMarks(t, s, pass)

	broken := stream.New(1, func(context.Context, loader.Pass, int, []byte) (stream.Reader[int], error) { return nil, errBad })
	s = stream.Mix(stream.Once, stream.Source[int]{Stream: count(&open, 0, 4, 1), Weight: 1}, stream.Source[int]{Stream: broken, Weight: 0.1})
	r, err := s.Open(ctx, pass, 0, nil)
	require.NoError(t, err)
	failed := 0
	for range 10 {
		if _, ok, err := next(ctx, r); !ok {
			require.ErrorIs(t, err, errBad)
			failed++
		}
	}
	require.Greater(t, failed, 5, "what can't be opened fails for ever")
	require.NoError(t, r.Close())
	require.Zero(t, open.Load())
}

func TestMixMistakes(t *testing.T) {
	var open atomic.Int64
	for _, c := range []struct {
		s    stream.Stream[int]
		want []string
	}{
		{stream.Mix[int](stream.Once), []string{"stream: Mix: sources is empty"}},
		{stream.Mix(stream.Rule(7), sourcesOf(&open, 1, []int{1, 1}, -1, math.NaN())...), []string{"rule is Rule(7)", "Weights[0] is -1", "Weights[1] is NaN"}},
		{stream.Mix(stream.Once, sourcesOf(&open, 1, []int{1}, 0)...), []string{"one above 0"}},
		{stream.MixSteps(stream.Once, nil, sourcesOf(&open, 1, []int{1}, 2)...), []string{"sources[0].Weight is 2", "steps"}},
		{stream.Mix(stream.Once, stream.Source[int]{Stream: count(&open, 0, 1, 1), Weight: 1}, stream.Source[int]{Stream: count(&open, 0, 1, 2), Weight: 1}),
			[]string{"the number of shards of stream 1 is 2, want 1"}},
	} {
		for _, want := range c.want {
			require.ErrorContains(t, c.s.Err(), want)
		}
		_, err := c.s.Open(ctx, pass, 0, nil)
		require.Error(t, err)
	}
}

func TestMixRefusesMarks(t *testing.T) {
	var open atomic.Int64
	s := stream.Mix(stream.Once, sourcesOf(&open, 1, []int{5, 5}, 1, 1)...)
	for _, mark := range []string{
		"{", `{"n":-1}`, `{"n":9223372036854775807}`, `{"n":4,"left":[[2,0]]}`, `{"n":4,"left":[[-1,0]]}`, `{"n":4,"left":[[0,5]]}`,
		`{"n":4,"left":[[0,1],[1,1]]}`, `{"n":1,"sources":[{"source":2,"at":1}]}`, `{"n":1,"sources":[{"source":-1,"at":1}]}`,
		`{"n":1,"sources":[{"source":0,"at":1},{"source":0,"at":1}]}`, `{"n":1,"sources":[{"source":0,"pass":-1,"at":1}]}`,
		`{"n":1,"sources":[{"source":0}]}`, `{"n":1,"sources":[{"source":0,"at":1},{"source":1,"at":77}]}`,
	} {
		_, err := s.Open(ctx, pass, 0, []byte(mark))
		require.Error(t, err, mark)
		require.Zero(t, open.Load(), mark)
	}
}

func ExampleMix() {
	a, b := stream.FromSlice([]string{"a1", "a2", "a3", "a4"}, 1), stream.FromSlice([]string{"b1"}, 1)
	for _, rule := range []stream.Rule{stream.UntilFirstEnds, stream.UntilAllEnded, stream.Once} {
		fmt.Println(rule)
		show(stream.Mix(rule, stream.Source[string]{Stream: a, Weight: 2}, stream.Source[string]{Stream: b, Weight: 1}))
	}
	// Output:
	// UntilFirstEnds
	// shard 0 [b1 a1 a2]
	// UntilAllEnded
	// shard 0 [b1 a1 a2 b1 a3 a4 b1]
	// Once
	// shard 0 [b1 a1 a2 a3 a4]
}

// Easy samples at first, hard ones from the fourth on.
func ExampleMixSteps() {
	easy, hard := stream.FromSlice([]int{1, 2, 3, 4, 5, 6}, 1), stream.FromSlice([]int{100, 200, 300, 400}, 1)
	show(stream.MixSteps(stream.UntilFirstEnds, []stream.Step{
		{From: 0, Weights: []float64{1, 0}},
		{From: 3, Weights: []float64{1, 2}},
	}, stream.Source[int]{Stream: easy}, stream.Source[int]{Stream: hard}))
	// Output:
	// shard 0 [1 2 3 100 200 4 300 400 5]
}

// A change that the run decides on as it goes: a step is appended, exactly there, whatever the
// ranks, slots and workers, and where it is stopped before.
func TestMixStepsAppendedAsTheRunGoes(t *testing.T) {
	steps := []stream.Step{{From: 0, Weights: []float64{3, 1}}, {From: 40, Weights: []float64{1, 3}}}
	mixed := func(steps []stream.Step) loader.Stream {
		s := stream.Fingerprinted(stream.Map(endless(4), nil2(func(n int) int64 { return int64(n) })), 1)
		s = stream.MixSteps(stream.UntilFirstEnds, steps,
			stream.Source[int64]{Stream: s}, stream.Source[int64]{Stream: stream.Map(s, nil2(func(n int64) int64 { return -n }))})
		return encodeNumber(s)
	}
	for _, stop := range []int{4, 5, 6, 11} {
		longer := append(slices.Clone(steps), stream.Step{From: int64(8*stop + 20), Weights: []float64{0, 1}, Appended: true})
		w := newWorld(t, mixed(longer), 1, loader.Options{Steps: 100})
		want := w.steps(t, stop+12)
		w.close(t)
		first := slices.IndexFunc(want[stop:], func(batch []int64) bool { return batch[len(batch)-1] < 0 })
		require.Equal(t, 3, first, "no value of the first source from 20 samples behind on")
		for ranks := 1; ranks <= 4; ranks *= 2 {
			for depth := 1; depth <= 8; depth++ {
				o := loader.Options{Steps: 100, Workers: depth}
				w := newWorldOf(t, mixed(steps), ranks, o, prefetch.Options{Memory: prefetch.Memory{HostSlots: depth}})
				require.Equal(t, want[:stop], w.steps(t, stop))
				state := w.state(t)
				w.close(t)
				w = newWorld(t, mixed(longer), 4/ranks, o)
				w.restore(t, state)
				require.Equal(t, want[stop:stop+5], w.steps(t, 5))
				state = w.state(t)
				w.close(t)

				// Another process declares the same steps as ever: the state has the other.
				known, err := stream.StepsOf(state, steps...)
				require.NoError(t, err)
				require.Equal(t, longer, known)
				w = newWorld(t, mixed(known), ranks, o)
				w.restore(t, state)
				require.Equal(t, want[stop+5:], w.steps(t, 7))
				w.close(t)
			}
		}
	}
	appended := func(weight float64) []stream.Step {
		return []stream.Step{steps[0], {From: 40, Weights: []float64{1, weight}, Appended: true}}
	}
	w := newWorld(t, mixed(appended(3)), 1, loader.Options{Steps: 1000})
	w.steps(t, 150) // there are marks behind the step's beginning
	state := w.state(t)
	w.close(t)
	for _, other := range [][]stream.Step{steps[:1], appended(4)} {
		w = newWorld(t, mixed(other), 1, loader.Options{Steps: 1000})
		err := w[0].Restore(state)
		var wrong *loader.StateError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, "Kept", wrong.Field)
		require.ErrorContains(t, err, "no MixSteps has the appended steps [{40 [1 3]}]: StepsOf tells them")
		w.close(t)
	}
	// A State of before, without what was kept, has marks that know better.
	state.Kept = nil
	w = newWorld(t, mixed(appended(4)), 1, loader.Options{Steps: 1000})
	require.NoError(t, w[0].Restore(state))
	for _, err := range w[0].All(ctx) {
		var mark *stream.MarkError
		require.ErrorAs(t, err, &mark)
		require.ErrorContains(t, err, "the steps that had begun were others")
	}
	w.close(t)
	w = newWorld(t, mixed([]stream.Step{steps[0], {From: 40, Weights: []float64{1, 4}}}), 1, loader.Options{Steps: 1000})
	require.ErrorContains(t, w[0].Restore(state), "Fingerprint")
	w.close(t)

	sources := endlessSources(1, 2)
	for i, steps := range [][]stream.Step{
		{{Weights: []float64{1, 1}, Appended: true}},
		{{Weights: []float64{1, 1}}, {From: 1, Weights: []float64{1, 1}, Appended: true}, {From: 2, Weights: []float64{1, 1}}},
	} {
		require.ErrorContains(t, stream.MixSteps(stream.Once, steps, sources...).Err(), ".Appended", i)
	}
}

// What two mixes of a stream have appended is told apart by the steps that are declared; it
// goes through every operator, and is in the State once.
func TestStepsOf(t *testing.T) {
	first, second := []stream.Step{{Weights: []float64{1, 2}}}, []stream.Step{{Weights: []float64{2, 1}}, {From: 9, Weights: []float64{1, 0}}}
	later := stream.Step{From: 640, Weights: []float64{0.1, 1e-300}, Appended: true}
	last := stream.Step{From: 1 << 40, Weights: []float64{0, 5}, Appended: true}
	mixed := func(steps ...stream.Step) stream.Stream[int] {
		return stream.MixSteps(stream.Once, steps, endlessSources(1, 2)...)
	}
	one, other := mixed(first[0], later), mixed(second[0], second[1], later, last)
	both := stream.Zip(stream.Shuffle(stream.Concat(one, other), 3), stream.Repeat(one, 2), func(_ context.Context, a, _ int) (int64, error) { return int64(a), nil })
	ld, err := loader.NewStream(encodeNumber(both), 1, loader.Options{})
	require.NoError(t, err)
	text, err := json.Marshal(ld.StateAt(loader.Cursor{}))
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), "640,"+`"weights":[0.1,1e-300]}]`), "%s", text)
	var state loader.State
	require.NoError(t, json.Unmarshal(text, &state))
	require.NoError(t, ld.Check(state))
	for _, c := range []struct{ declared, want []stream.Step }{
		{first, []stream.Step{first[0], later}},
		{second, []stream.Step{second[0], second[1], later, last}},
		{second[:1], second[:1]},
	} {
		steps, err := stream.StepsOf(state, c.declared...)
		require.NoError(t, err)
		require.Equal(t, c.want, steps)
	}
	steps, err := stream.StepsOf(loader.State{}, first...)
	require.NoError(t, err)
	require.Equal(t, first, steps)

	// More than was appended is no matter, less is.
	for i, s := range []stream.Stream[int]{stream.Concat(mixed(first[0], later, last), other), stream.Concat(one, mixed(second[0], second[1], later))} {
		ld, err := loader.NewStream(encodeNumber(stream.Map(s, nil2(func(n int) int64 { return int64(n) }))), 1, loader.Options{})
		require.NoError(t, err)
		require.Equal(t, i == 0, ld.Check(state) == nil)
	}
	plain, err := loader.NewStream(encodeNumber(stream.FromSlice([]int64{1}, 1)), 1, loader.Options{})
	require.NoError(t, err)
	require.ErrorContains(t, plain.Check(state), "had decided more")
	require.Empty(t, plain.StateAt(loader.Cursor{}).Kept)

	// Two that can't be told apart.
	ld, err = loader.NewStream(encodeNumber(stream.Map(stream.Concat(one, mixed(first[0], last)), nil2(func(n int) int64 { return int64(n) }))), 1, loader.Options{})
	require.NoError(t, err)
	_, err = stream.StepsOf(ld.StateAt(loader.Cursor{}), first...)
	require.ErrorContains(t, err, "the same declared steps")
	state.Kept = json.RawMessage(`{"to":1}`)
	_, err = stream.StepsOf(state, first...)
	require.ErrorContains(t, err, "stream: the steps that the state has kept")
	require.ErrorContains(t, plain.Check(state), "had decided more")
}
