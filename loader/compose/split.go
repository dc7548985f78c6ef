package compose

import (
	"errors"
	"fmt"
	"math"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/mix"
)

// Split cuts ds into parts, one for each fraction: for training and validation for
// example. To which part a sample goes depends on the seed, its index and the fractions
// alone. So it stays there when ds grows at its end, and if the first fraction is raised
// the first part keeps all it has. The price is that sizes are near their fractions but not
// exact: of 10,000 samples a half has 5,000 ± 100 in 95 of 100 cases. See SplitN for exact
// sizes.
//
// Each fraction is above 0, and their sum at most 1; what is left over is in no part.
// Samples keep their order within a part. A part without samples is an error. A part takes
// four bytes a sample.
func Split(ds loader.Dataset, seed uint64, fractions ...float64) ([]loader.Dataset, error) {
	p, err := newPart("Split: ds", ds)
	bounds, invalid := cumulative(fractions)
	if err := errors.Join(err, invalid); err != nil {
		return nil, err
	}
	return split("Split", p, fractions, bounds, func(i int) uint64 {
		return mix.Hash(seed, uint64(kindSplit), uint64(i))
	})
}

// SplitBy is Split where samples that belong together, such as all images of one patient,
// go to the same part: those for which key returns the same. It is asked once a sample.
func SplitBy(ds loader.Dataset, seed uint64, key func(i int) string, fractions ...float64) ([]loader.Dataset, error) {
	p, err := newPart("SplitBy: ds", ds)
	bounds, invalid := cumulative(fractions)
	if key == nil {
		invalid = errors.Join(invalid, mistake("SplitBy: key", "nil", "a function"))
	}
	if err := errors.Join(err, invalid); err != nil {
		return nil, err
	}
	return split("SplitBy", p, fractions, bounds, func(i int) uint64 {
		return mix.Hash(seed, uint64(kindSplit), hashString(key(i)))
	})
}

// cumulative is where each part ends on the line from 0 to 2⁶⁴-1.
func cumulative(fractions []float64) (bounds []uint64, err error) {
	const rounding = 1e-9 // of the sum of decimal fractions
	if len(fractions) == 0 {
		return nil, mistake("Split: fractions", "empty", "at least one")
	}
	var errs []error
	sum := 0.0
	for i, f := range fractions {
		if !(f > 0 && f <= 1) {
			errs = append(errs, mistake(fmt.Sprintf("Split: fractions[%d]", i), f, "above 0, to 1"))
			continue
		}
		sum += f
		bound := uint64(math.MaxUint64)
		if sum < 1-rounding {
			bound = uint64(sum * (1 << 63) * 2)
		}
		bounds = append(bounds, bound)
	}
	if len(errs) == 0 && sum > 1+rounding {
		errs = append(errs, mistake("Split: fractions", fractions, fmt.Sprintf("a sum of at most 1, it is %v", sum)))
	}
	return bounds, errors.Join(errs...)
}

// split puts each sample into the part where its place on the line is.
func split(function string, p part, fractions []float64, bounds []uint64, place func(i int) uint64) ([]loader.Dataset, error) {
	lists := make([]*list, len(bounds))
	for i, f := range fractions {
		lists[i] = newList(p.length, int(f*float64(p.length)))
	}
	for index := range p.length {
		at := place(index)
		for i, bound := range bounds {
			if at <= bound {
				lists[i].add(index)
				break
			}
		}
	}
	parts := make([]loader.Dataset, len(bounds))
	var errs []error
	for i, l := range lists {
		if l.len() == 0 {
			errs = append(errs, mistake(fmt.Sprintf("%s: fractions[%d]", function, i), fractions[i],
				fmt.Sprintf("a part that has a sample: of the %d of ds it has none", p.length)))
		}
		parts[i] = subset(kindSplit, p, l)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return parts, nil
}

// SplitN cuts ds into parts of exactly counts samples, chosen at random by the seed. It
// takes no memory. Unlike with Split, all parts change when ds has one sample more. Samples
// are in a random order within a part, the same in every epoch; those that are left over
// are in no part.
func SplitN(ds loader.Dataset, seed uint64, counts ...int) ([]loader.Dataset, error) {
	p, err := newPart("SplitN: ds", ds)
	errs := []error{err}
	if len(counts) == 0 {
		errs = append(errs, mistake("SplitN: counts", "empty", "at least one"))
	}
	left := p.length
	for i, n := range counts {
		if n < 1 || n > left {
			errs = append(errs, mistake(fmt.Sprintf("SplitN: counts[%d]", i), n, fmt.Sprintf("1 to %d, the samples that are left of ds", left)))
			continue
		}
		left -= n
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	all := &permuted{order: newShuffled(mix.Hash(seed, uint64(kindSplitN)), p.length)}
	from := 0
	parts := make([]loader.Dataset, len(counts))
	for i, n := range counts {
		parts[i] = chosen(kindSplitN, p, n, &stretch{all, from}, seed, uint64(from), uint64(n))
		from += n
	}
	return parts, nil
}

// stretch is a part of a random order that is the same in every pass.
type stretch struct {
	all  *permuted
	from int
}

func (s *stretch) choose(row *loader.Row, pass uint64, index int) (part, at int, partPass uint64) {
	_, at, _ = s.all.choose(row, 0, s.from+index)
	return 0, at, pass
}
