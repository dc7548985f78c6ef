package compose

import (
	"errors"
	"fmt"
	"math"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/mix"
	"github.com/leat-go/leat/loader/internal/quota"
)

// Rule says when an epoch of a Mix ends, and what becomes of a source that has no more
// samples before.
type Rule int

const (
	// UntilFirstEnds ends the epoch in front of the first sample that a source would
	// have to give for the second time.
	UntilFirstEnds = Rule(quota.UntilFirstEnds)
	// UntilAllEnded ends the epoch when all samples of all sources have been in it: a
	// source that has no more begins another pass, in another order.
	UntilAllEnded = Rule(quota.UntilAllEnded)
	// Once has each sample exactly once: a source that has no more is left out, and the
	// others go on in their proportions.
	Once = Rule(quota.Once)
)

// String is the rule's name.
func (r Rule) String() string { return quota.Rule(r).String() }

// Source is a dataset in a Mix.
type Source struct {
	// Dataset has one sample at least.
	Dataset loader.Dataset
	// Weight is proportional to the source's share of the samples. It is 0 in MixSteps,
	// which has the weights in its steps.
	Weight float64
	// InOrder keeps the order of the dataset. Without it every pass over the source is
	// shuffled, in an order of its own.
	InOrder bool
}

// Step is the weights of the sources of a MixSteps from a sample of the epoch on.
type Step struct {
	// From is that sample's number in the epoch. It is 0 in the first step, and grows.
	From int64
	// Weights has one for each source. One may be 0, but not all.
	Weights []float64
}

// Mix has samples of several sources, which must have the same fields, in proportion to
// their weights: at every moment, and not only on average. After n samples a source of the
// share w of K sources has given n·w, give or take less than 1 + w·K. A source of little
// weight has its first sample before 1/w samples. Which source a sample is of is the same
// in every epoch; which sample of it follows from the seed and the epoch, and from how
// often the source has been gone through.
//
// The length follows from the rule, and is worked out before the first sample. It is an
// error if it is beyond all use, because a source with many samples has little weight.
func Mix(seed uint64, rule Rule, sources ...Source) (loader.Dataset, error) {
	weights := make([]float64, len(sources))
	for i, s := range sources {
		weights[i] = s.Weight
	}
	return mixed("Mix: weights", seed, rule, sources, []quota.Step{{Weights: weights}})
}

// MixSteps is Mix with weights that change at stated samples: exactly there, in every epoch.
// A step that no epoch reaches, because the rule ends it before, is an error. Under
// Options.Shuffle a loader permutes all samples of the epoch, and nothing is left of the
// steps.
func MixSteps(seed uint64, rule Rule, steps []Step, sources ...Source) (loader.Dataset, error) {
	var errs []error
	for i, s := range sources {
		if s.Weight != 0 {
			errs = append(errs, mistake(fmt.Sprintf("MixSteps: sources[%d].Weight", i), s.Weight, "0: the weights are in the steps"))
		}
	}
	of := make([]quota.Step, len(steps))
	for i, s := range steps {
		of[i] = quota.Step(s)
	}
	ds, err := mixed("MixSteps: steps", seed, rule, sources, of)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	return ds, nil
}

func mixed(name string, seed uint64, rule Rule, sources []Source, steps []quota.Step) (loader.Dataset, error) {
	parts, err := sourceParts(sources)
	if !quota.Rule(rule).Valid() {
		err = errors.Join(err, mistake("Mix: rule", rule, quota.Rules))
	}
	if err := errors.Join(err, quota.Check("compose", name, len(sources), steps)); err != nil {
		return nil, err
	}
	m := &mixture{}
	n, err := m.plan(rule, parts, steps)
	if err != nil {
		return nil, err
	}
	for i, s := range steps {
		if s.From >= int64(n) {
			return nil, mistake(fmt.Sprintf("%s[%d].From", name, i), s.From, fmt.Sprintf("less than %d: an epoch has no more samples", n))
		}
	}
	counts := m.schedule.Cursor()
	counts.Move(int64(n))
	for i, s := range sources {
		from := mixSource{length: int64(parts[i].length)}
		from.passes = uint64(max(1, (counts.Turns(i)+from.length-1)/from.length))
		if !s.InOrder {
			from.order = newShuffled(mix.Hash(seed, uint64(kindMix), uint64(i)), parts[i].length)
		}
		m.sources = append(m.sources, from)
	}
	return &mapping{
		parts: parts, length: n, chooser: m, changing: true,
		fingerprint: fingerprint(kindMix, parts, mixParameters(seed, rule, sources, steps)...),
	}, nil
}

// sourceParts describes the sources, which must be alike and not empty.
func sourceParts(sources []Source) ([]part, error) {
	all := make([]loader.Dataset, len(sources))
	for i, s := range sources {
		all[i] = s.Dataset
	}
	parts, err := newParts("Mix: sources", all)
	if err != nil {
		return nil, err
	}
	errs := []error{alike("Mix: sources", parts)}
	for i, p := range parts {
		if p.length == 0 {
			errs = append(errs, mistake(fmt.Sprintf("Mix: sources[%d]", i), "a dataset of 0 samples", "one sample at least"))
		}
	}
	return parts, errors.Join(errs...)
}

func mixParameters(seed uint64, rule Rule, sources []Source, steps []quota.Step) []uint64 {
	of := []uint64{seed, uint64(rule)}
	for i, s := range sources {
		if s.InOrder {
			of = append(of, uint64(i))
		}
	}
	for _, step := range steps {
		of = append(of, uint64(step.From))
		for _, w := range step.Weights {
			of = append(of, math.Float64bits(w))
		}
	}
	return of
}

// mixture is which sample of which source is at which place.
type mixture struct {
	schedule *quota.Schedule
	sources  []mixSource
	places   places[mixPlace]
}

// mixPlace is where a goroutine reads.
type mixPlace struct {
	cursor *quota.Cursor
	runs   runs // of the sources' orders
}

type mixSource struct {
	length int64
	passes uint64    // in an epoch
	order  *shuffled // of each pass, nil if the source's own
}

// plan makes the schedule, and returns the length of an epoch.
func (m *mixture) plan(rule Rule, parts []part, steps []quota.Step) (int, error) {
	lengths := make([]int64, len(parts))
	for i, p := range parts {
		lengths[i] = int64(p.length)
	}
	if rule == Once {
		return m.planOnce(lengths, steps)
	}
	m.schedule = quota.New(steps, quota.Lane{}, nil)
	n := int64(0)
	if rule == UntilFirstEnds {
		n = maxLen + 1
	}
	for i, length := range lengths {
		if rule == UntilFirstEnds {
			if end, ok := m.schedule.Position(i, length); ok {
				n = min(n, end)
			}
			continue
		}
		last, ok := m.schedule.Position(i, length-1)
		if !ok || last >= maxLen {
			return 0, mistake(fmt.Sprintf("Mix: sources[%d]", i), fmt.Sprintf("a dataset of %d samples whose weight is too small", length),
				fmt.Sprintf("all of them among the first %d samples of the epoch", int64(maxLen)))
		}
		n = max(n, last+1)
	}
	if n > maxLen {
		return 0, mistake("Mix: rule", rule, fmt.Sprintf("a source that ends among the first %d samples of the epoch", int64(maxLen)))
	}
	return int(n), nil
}

func (m *mixture) planOnce(lengths []int64, steps []quota.Step) (int, error) {
	sum := int64(0)
	for i, length := range lengths {
		if length > maxLen-sum {
			return 0, mistake(fmt.Sprintf("Mix: sources[%d]", i), fmt.Sprintf("a dataset of %d samples", length),
				fmt.Sprintf("at most %d samples, those before it have %d", int64(maxLen), sum))
		}
		sum += length
	}
	m.schedule = quota.New(steps, quota.Lane{}, lengths)
	if end := m.schedule.Len(); end < sum {
		return 0, mistake("Mix: rule", Once, fmt.Sprintf(
			"weights by which each sample comes once: after %d of %d samples only sources of weight 0 are left", end, sum))
	}
	return int(sum), nil
}

func (m *mixture) choose(row *loader.Row, pass uint64, index int) (part, at int, partPass uint64) {
	place := m.places.of(row)
	if place.cursor == nil {
		place.cursor = m.schedule.Cursor()
	}
	part, turn := m.turn(place.cursor, int64(index))
	s := &m.sources[part]
	time := int64(0)
	if turn >= s.length { // a division takes as long as all else here
		time = turn / s.length
	}
	at, partPass = int(turn-time*s.length), pass*s.passes+uint64(time)
	if s.order != nil {
		at = s.order.at(partPass, at, place.runs.of(part, len(m.sources)))
	}
	m.places.done(row, place)
	return part, at, partPass
}

// turn is the source of a sample, and how many of its samples come before.
func (m *mixture) turn(c *quota.Cursor, n int64) (source int, turn int64) {
	if at := c.At(); n != at {
		// To go on choice by choice is faster than to work out a place, if that is near.
		if near := int64(16 + 16*len(m.sources)); n < at || n > at+near {
			c.Move(n)
		}
		for c.At() < n {
			c.Next()
		}
	}
	source, turn, _ = c.Next()
	return source, turn
}
