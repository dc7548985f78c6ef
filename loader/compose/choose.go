package compose

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/leat-go/leat/loader"
)

// Subset has the samples of ds at indices, in that order; an index may occur several
// times. It copies indices. The error names the first index that ds does not have.
func Subset(ds loader.Dataset, indices []int) (loader.Dataset, error) {
	p, err := newPart("Subset: ds", ds)
	if err != nil {
		return nil, err
	}
	l := newList(p.length, len(indices))
	for at, index := range indices {
		if index < 0 || index >= p.length {
			return nil, mistake(fmt.Sprintf("Subset: indices[%d]", at), index, fmt.Sprintf("0 to %d, an index of ds", p.length-1))
		}
		l.add(index)
	}
	return subset(kindSubset, p, l), nil
}

func subset(k kind, p part, l *list) *mapping { return chosen(k, p, l.len(), l, l.hash()) }

// Take has the first n samples of ds, or all of them if there are fewer.
func Take(ds loader.Dataset, n int) (loader.Dataset, error) {
	p, err := newPart("Take: ds", ds)
	if err := errors.Join(err, atLeast(0, "Take: n", n)); err != nil {
		return nil, err
	}
	return window(p, 0, min(n, p.length)), nil
}

// Skip has the samples of ds behind the first n: none if there are no more.
func Skip(ds loader.Dataset, n int) (loader.Dataset, error) {
	p, err := newPart("Skip: ds", ds)
	if err := errors.Join(err, atLeast(0, "Skip: n", n)); err != nil {
		return nil, err
	}
	return window(p, min(n, p.length), p.length), nil
}

// window is the samples [from, to) of a part.
func window(p part, from, to int) *mapping {
	return chosen(kindRange, p, to-from, offset(from), uint64(from), uint64(to))
}

type offset int

func (o offset) choose(_ *loader.Row, pass uint64, index int) (part, at int, partPass uint64) {
	return 0, int(o) + index, pass
}

// Repeat has all samples of ds, times times one after the other. Each time is a pass of
// its own: what is shuffled or drawn in ds comes in another order.
func Repeat(ds loader.Dataset, times int) (loader.Dataset, error) {
	p, err := newPart("Repeat: ds", ds)
	if err := errors.Join(err, atLeast(1, "Repeat: times", times)); err != nil {
		return nil, err
	}
	if p.length > maxLen/times {
		return nil, mistake("Repeat: times", times, fmt.Sprintf("at most %d samples, ds has %d", int64(maxLen), p.length))
	}
	return chosen(kindRepeat, p, p.length*times, &repetition{times: uint64(times), length: p.length}, uint64(times)), nil
}

type repetition struct {
	times  uint64
	length int
}

func (r *repetition) choose(_ *loader.Row, pass uint64, index int) (part, at int, partPass uint64) {
	time := index / r.length
	return 0, index - time*r.length, pass*r.times + uint64(time)
}

// Concat has the samples of all datasets, one dataset after the other. They must have the
// same fields in the same order.
func Concat(datasets ...loader.Dataset) (loader.Dataset, error) {
	parts, err := newParts("Concat: datasets", datasets)
	if err == nil {
		err = alike("Concat: datasets", parts)
	}
	if err != nil {
		return nil, err
	}
	ends, end := make(chain, len(parts)), 0
	for i, p := range parts {
		if p.length > maxLen-end {
			return nil, mistake(fmt.Sprintf("Concat: datasets[%d]", i), fmt.Sprintf("a dataset of %d samples", p.length),
				fmt.Sprintf("at most %d samples, the datasets before it have %d", int64(maxLen), end))
		}
		end += p.length
		ends[i] = end
	}
	return &mapping{parts: parts, length: end, chooser: ends, fingerprint: fingerprint(kindConcat, parts)}, nil
}

// chain is where each part ends.
type chain []int

func (c chain) choose(_ *loader.Row, pass uint64, index int) (part, at int, partPass uint64) {
	part = sort.Search(len(c), func(i int) bool { return index < c[i] })
	if part == 0 {
		return 0, index, pass
	}
	return part, index - c[part-1], pass
}

// Select has n samples: sample i is that of ds at the index that at returns. The epoch
// counts the passes over the selection from 0: it is the loader's epoch, unless a Repeat
// or a Mix around it makes several passes in an epoch. at must be a pure function, since
// data is the same on every rank and in every run only then, and may be called by several
// goroutines at once. An index that ds does not have fails the sample with an *IndexError.
// The fingerprint covers n, and cannot cover at.
func Select(ds loader.Dataset, n int, at func(epoch, i int) int) (loader.Dataset, error) {
	p, err := newPart("Select: ds", ds)
	if at == nil {
		err = errors.Join(err, mistake("Select: at", "nil", "a function"))
	}
	if err := errors.Join(err, atLeast(0, "Select: n", n), atMost(maxLen, "Select: n", n)); err != nil {
		return nil, err
	}
	return chosenByPass(kindSelect, p, n, selection(at), uint64(n)), nil
}

type selection func(epoch, i int) int

func (s selection) choose(_ *loader.Row, pass uint64, index int) (part, at int, partPass uint64) {
	return 0, s(int(pass&math.MaxInt), index), pass
}

// atLeast and atMost are an error if n is not in bounds.
func atLeast[T int | time.Duration](least T, parameter string, n T) error {
	if n >= least {
		return nil
	}
	return mistake(parameter, n, fmt.Sprintf("%v or more", least))
}

func atMost(most int, parameter string, n int) error {
	if n <= most {
		return nil
	}
	return mistake(parameter, n, fmt.Sprintf("%d or less", int64(most)))
}
