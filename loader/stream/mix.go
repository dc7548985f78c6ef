package stream

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/mix"
	"github.com/leat-go/leat/loader/internal/quota"
)

// Rule says when a shard of a Mix ends, and what becomes of a source that has ended before.
type Rule int

const (
	// UntilFirstEnds ends the shard where a source has no more to give.
	UntilFirstEnds = Rule(quota.UntilFirstEnds)
	// UntilAllEnded ends the shard where the last of the sources has no more to give for the
	// first time. Until then one that has ended begins another pass, in which what shuffles
	// does it anew. So each value comes at least once.
	UntilAllEnded = Rule(quota.UntilAllEnded)
	// Once leaves out a source that has ended, and the others go on in their proportions. So
	// each value comes exactly once.
	Once = Rule(quota.Once)
)

// String is the rule's name.
func (r Rule) String() string { return quota.Rule(r).String() }

// Source is a stream in a Mix.
type Source[T any] struct {
	Stream Stream[T]
	// Weight is proportional to the source's share. It is 0 in MixSteps, which has the weights
	// in its steps.
	Weight float64
}

// Step is the weights of the sources of a MixSteps from a value on.
type Step struct {
	// From is that value's number in the whole stream, counted anew in each epoch: value n of
	// shard i of S is number n·S+i. It is 0 in the first step, and grows.
	From int64
	// Weights has one for each source. One may be 0, but not all.
	Weights []float64
	// Appended is for a step that a run has decided on as it went: a State that was saved
	// before its place is accepted. It stays set from then on.
	Appended bool
}

// Mix is values of several streams in proportion to their weights: at every moment, and not
// only on average. After n values of a shard a source of the share w of K sources has given n·w
// of them, give or take less than 1 + w·K; of few sources, less than one. Those of a source
// are spread evenly over the shards, so that a source of little weight comes before about 1/w
// values of the whole stream. Which source is next is the same in every pass.
//
// A source is opened when its first value is due. One whose whole pass gives nothing is left
// out, except under UntilFirstEnds. One of weight 0 is not read, and no rule waits for it.
func Mix[T any](rule Rule, sources ...Source[T]) Stream[T] {
	weights := make([]float64, len(sources))
	for i, s := range sources {
		weights[i] = s.Weight
	}
	return mixOf("Mix: weights", rule, sources, []quota.Step{{Weights: weights}}, 1, 0)
}

// MixFew is Mix of many sources, of which at most open have an open reader in a shard: for a
// thousand of them, each with a buffer and a file, or for large buffers of theirs. Where one
// more is due, the one that was not read for longest is closed, and is opened again at its mark
// when it has its turn. That reads again what its operators hold back, and a Cache below is not
// filled. So it is for sources most of which have their turn rarely: open is to be as large as
// memory allows. A reader that has no marks stays open. A source.Pool bounds the files alone,
// and costs less.
func MixFew[T any](rule Rule, open int, sources ...Source[T]) Stream[T] {
	weights := make([]float64, len(sources))
	for i, s := range sources {
		weights[i] = s.Weight
	}
	out := mixOf("MixFew: weights", rule, sources, []quota.Step{{Weights: weights}}, 1, open)
	out.err = errors.Join(out.err, check(open >= 1, "MixFew", "open", open, "1 or more"))
	return out
}

// MixSteps is Mix with weights that change at stated values, exactly there. A source whose
// weight is 0 from some step on is not read any more. If those that have a weight end while
// others have one in a later step only, these come then, one after the other.
//
// A run may decide on a change as it goes: append a step, with Appended set, that begins behind
// what was delivered, and go on from its State. Its later States have the step, and StepsOf
// reads it from there; a State is refused where a step that it has is missing, or is another.
func MixSteps[T any](rule Rule, steps []Step, sources ...Source[T]) Stream[T] {
	of := make([]quota.Step, len(steps))
	for i, s := range steps {
		of[i] = quota.Step{From: s.From, Weights: slices.Clone(s.Weights)}
	}
	declared := slices.IndexFunc(steps, func(s Step) bool { return s.Appended })
	if declared < 0 {
		declared = len(steps)
	}
	out := mixOf("MixSteps: steps", rule, sources, of, declared, 0)
	for i, s := range steps {
		out.err = errors.Join(out.err, check(s.Appended == (i >= declared) && (i > 0 || !s.Appended), "MixSteps", fmt.Sprintf("steps[%d].Appended", i), s.Appended,
			"false in the first step, and true behind one that is appended"))
	}
	for i, s := range sources {
		out.err = errors.Join(out.err, check(s.Weight == 0, "MixSteps", fmt.Sprintf("sources[%d].Weight", i), s.Weight,
			"0: the weights are in the steps"))
	}
	return out
}

// mixOf makes a Mix by steps, of which the first are declared: part of the fingerprint. How many
// sources are open, all if it is 0, is none.
func mixOf[T any](name string, rule Rule, sources []Source[T], steps []quota.Step, declared, open int) Stream[T] {
	m := &mixture[T]{rule: rule, steps: steps, declared: declared, most: open, hashes: make([]uint64, len(steps))}
	for i := 1; i < len(steps); i++ {
		m.hashes[i] = mix.Hash(append(stepWords(steps[i]), m.hashes[i-1])...)
	}
	for _, s := range sources {
		m.streams = append(m.streams, s.Stream)
	}
	err := errors.Join(
		check(quota.Rule(rule).Valid(), "Mix", "rule", rule, quota.Rules),
		check(len(sources) > 0, "Mix", "sources", "empty", "one or more"))
	if len(sources) > 0 {
		err = errors.Join(err, quota.Check("stream", name, len(sources), steps))
	} else {
		m.streams = []Stream[T]{{shards: 1, open: m.open}} // so that the mistake is the only one
	}
	out := together("Mix", m.streams, m.open, err).as("Mix", m.words()...)
	if declared < len(steps) {
		out.appended = put(out.appended, newAppended(steps, declared))
	}
	return out
}

// mixture is what all shards of a Mix have in common.
type mixture[T any] struct {
	rule     Rule
	streams  []Stream[T]
	steps    []quota.Step
	declared int      // so many of them are not appended
	hashes   []uint64 // of the steps behind the first, up to each
	most     int      // sources that are open at a time; 0 for all
}

// words are the arguments, for a fingerprint.
func (m *mixture[T]) words() []uint64 {
	words := []uint64{uint64(m.rule)}
	for _, s := range m.steps[:m.declared] {
		words = append(words, stepWords(s)...)
	}
	return words
}

// begun is a hash of the steps behind the first that have begun in a shard within n choices,
// 0 if there are none.
func (m *mixture[T]) begun(n int64, shard int) uint64 {
	if n == 0 {
		return 0
	}
	return m.hashes[m.step(n-1, shard)]
}

func stepWords(s quota.Step) []uint64 {
	words := []uint64{uint64(s.From)}
	for _, w := range s.Weights {
		words = append(words, math.Float64bits(w))
	}
	return words
}

// lastStep is the last step in which a source has a weight, -1 if it never has.
func (m *mixture[T]) lastStep(source int) int {
	for i := len(m.steps) - 1; i >= 0; i-- {
		if m.steps[i].Weights[source] > 0 {
			return i
		}
	}
	return -1
}

// step is the one that choice n of a shard is in.
func (m *mixture[T]) step(n int64, shard int) int {
	shards := int64(m.streams[0].shards)
	i := 0
	for i+1 < len(m.steps) && (m.steps[i+1].From-int64(shard)+shards-1)/shards <= n {
		i++
	}
	return i
}

func (m *mixture[T]) open(ctx context.Context, pass loader.Pass, shard int, mark []byte) (Reader[T], error) {
	r := &mixReader[T]{of: m, ctx: ctx, pass: pass, shard: shard, choice: -1}
	r.sources = make([]mixSource[T], len(m.streams))
	for i := range r.sources {
		r.sources[i].limit = quota.Most
	}
	if mark == nil {
		r.plan()
		return r, nil
	}
	return r, orClose(r, func() error { return r.restore(mark) })
}
