// Package quota takes turns among sources so that each has had its share of the choices at
// every moment, and not only on average. The n-th choice is a pure function of n: a Cursor
// goes from one to the next, and begins at any.
//
// Source i with the share w of the choices is due for its m-th turn at the time (m+φ)·1/w,
// and the next choice is the source that is due first; of several the one of the lowest
// number. As many choices as units of time have passed are made, but for rounding. So after
// n choices source i has had
//
//	n·w turns, give or take less than 1 + w·K
//
// of K sources. That is what holds for any shares. The phase φ is below 1 and another for
// each source, spread evenly, so that the roundings of many sources cancel: a thousand with
// shares like 1/i² stay within 1 + w·√K, in the first three million choices. A source of
// share 10⁻⁶ has its first turn in the first million choices, and one more in each.
//
// Several lanes share the sources, as the shards of a stream do: choice n of lane l is
// number n·lanes + l of all. The phases of a source in the lanes are spread evenly too, so
// that the turns over all lanes together are as near to their quota as those of one lane.
//
// The shares may change at a stated choice. A turn that is half due then stays half due.
package quota

import (
	"errors"
	"fmt"
	"math"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/mix"
	"github.com/leat-go/leat/loader/internal/permute"
)

// Most is the largest number of choices and of turns.
const Most = 1 << 62

// Step is the weights of the sources from a choice on, over all lanes.
type Step struct {
	// From is the number of the first choice to which they apply. It is 0 in the first
	// step, and grows.
	From int64
	// Weights are proportional to the shares. One may be 0, but not all.
	Weights []float64
}

// Lane is one of several that share the choices. The zero value is the only one.
type Lane struct {
	// Number is the lane's, from 0. Of is how many there are; 0 means 1.
	Number, Of int
}

// Schedule is who has which turn. It does not change, and may be shared.
type Schedule struct {
	phases []phase
	limits []int64 // of each source's turns
	stuck  bool    // whether all sources of a phase end before it does,
	end    int64   // by this choice
}

// Check reports every mistake in the steps for a number of sources, each an
// *loader.OptionError for the package and with the name that it is given.
func Check(pkg, name string, sources int, steps []Step) error {
	var errs []error
	wrong := func(option string, value any, want string) {
		errs = append(errs, &loader.OptionError{Package: pkg, Option: name + option, Value: value, Want: want})
	}
	if len(steps) == 0 {
		wrong("", "empty", "at least one step")
	}
	for i, s := range steps {
		step := fmt.Sprintf("[%d]", i)
		if i == 0 && s.From != 0 {
			wrong(step+".From", s.From, "0 in the first step")
		}
		if i > 0 && (s.From <= steps[i-1].From || s.From > Most) {
			wrong(step+".From", s.From, fmt.Sprintf("more than the %d of the step before, to %d", steps[i-1].From, int64(Most)))
		}
		if len(s.Weights) != sources {
			wrong(step+".Weights", fmt.Sprintf("%d weights", len(s.Weights)), fmt.Sprintf("%d, one for each source", sources))
		}
		sum := 0.0
		for j, w := range s.Weights {
			if !(w >= 0) || math.IsInf(w, 1) {
				wrong(fmt.Sprintf("%s.Weights[%d]", step, j), w, "0 or more, and finite")
			}
			sum += max(w, 0)
		}
		if sum == 0 && len(s.Weights) > 0 {
			wrong(step+".Weights", s.Weights, "one above 0")
		}
		if math.IsInf(sum, 1) && len(errs) == 0 {
			wrong(step+".Weights", s.Weights, "a finite sum")
		}
	}
	return errors.Join(errs...)
}

// New makes the schedule of a lane. The steps must pass Check. limits is how many turns
// each source has, at most Most; then it is left out. nil means no limits.
func New(steps []Step, lane Lane, limits []int64) *Schedule {
	sources, of := len(steps[0].Weights), int64(max(lane.Of, 1))
	s := &Schedule{limits: limits}
	if limits == nil {
		s.limits = make([]int64, sources)
		for i := range s.limits {
			s.limits[i] = Most
		}
	}
	first := phase{begun: make([]int64, sources), due: make([]float64, sources)}
	first.set(shares(steps[0].Weights))
	for i := range first.due {
		first.due[i] = spread(i, lane.Number, of)
	}
	s.phases = append(s.phases, first)
	for _, step := range steps[1:] {
		from := (step.From - int64(lane.Number) + of - 1) / of
		last := &s.phases[len(s.phases)-1]
		if from == last.from {
			last.set(shares(step.Weights)) // the step before has no choice in this lane
			continue
		}
		s.phases = append(s.phases, s.next(from, shares(step.Weights)))
	}
	return s
}

// spread is the phase of a source in a lane: evenly over the lanes, and evenly over the
// sources in each of them.
func spread(source, lane int, lanes int64) float64 {
	const golden = 0x9e3779b97f4a7c15 // multiples of the golden ratio are spread evenly
	within := float64(uint64(source+1)*golden>>11) / (1 << 53)
	p := permute.New(mix.Hash(uint64(source)), uint64(lanes))
	return (float64(p.At(uint64(lane))) + within) / float64(lanes)
}

func shares(weights []float64) []float64 {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	shares := make([]float64, len(weights))
	for i, w := range weights {
		shares[i] = w / sum
	}
	return shares
}

// next is the phase that follows the last one at a choice.
func (s *Schedule) next(from int64, shares []float64) phase {
	c := s.Cursor()
	c.Move(from)
	if c.n < from && !s.stuck {
		s.stuck, s.end = true, c.n
	}
	last := &s.phases[len(s.phases)-1]
	p := phase{from: from, begun: make([]int64, len(shares)), due: make([]float64, len(shares))}
	p.set(shares)
	for i := range shares {
		p.begun[i] = last.begun[i] + c.sources[i].turns
		// What is left until the source is due, in its turns. The conversion keeps a
		// processor from rounding once instead of twice.
		left := float64(c.sources[i].turns) + last.due[i] - float64(last.shares[i]*c.time)
		p.due[i] = min(max(left, 0), 1)
	}
	return p
}
