package loader

import (
	"fmt"
	"slices"
	"sync/atomic"
)

// Divide cuts the batches of a Loader into n parts of equal size, for the n devices of one
// program that make each step together: part i has the rows from i·b on, of b = BatchSize/n.
// So a step is made of the same samples for any n, the parts are the ranks of a program
// with n times as many, and a State of one of them is that of all, and of l. The workers are
// divided too, evenly, with at least one for each part. MaxSubstituted holds for each part
// by itself.
//
// The error joins an *OptionError for every mistake: n is to divide the batch size, and
// with more than one part Last is not Keep, because the parts make equally many steps. Of
// an Iterable each part ranges over all samples; a source that gives them once, a Stream
// and a Replay can't be divided.
func (l *Loader) Divide(n int) ([]*Loader, error) {
	if n == 1 {
		return []*Loader{l}, nil
	}
	if err := l.checkDivision(n); err != nil {
		return nil, err
	}
	fields := make([]Field, 0, len(l.layout.fields))
	for _, f := range l.layout.Written() {
		fields = append(fields, f.Field)
	}
	layout, err := NewLayout(fields, l.layout.batch/n)
	if err != nil {
		return nil, err
	}
	parts := make([]*Loader, n)
	for i := range parts {
		parts[i] = l.part(i, n, layout)
	}
	return parts, nil
}

// checkDivision reports every reason why l can't be divided into n parts.
func (l *Loader) checkDivision(n int) error {
	var wrong mistakes
	wrong.check(n >= 1 && n <= maxBatch/l.options.Shard.Count, "n", n, fmt.Sprintf("1 to %d", maxBatch/l.options.Shard.Count))
	if wrong.err() == nil {
		first := l.layout.batch
		if len(l.split.sizes) > 0 {
			first = l.split.sizes[0].BatchSize
		}
		wrong.check(first%n == 0, "batchSize", first, fmt.Sprintf("a multiple of %d, the number of parts", n))
		for i, s := range l.options.BatchSizes {
			wrong.check(s.BatchSize%n == 0, fmt.Sprintf("BatchSizes[%d].BatchSize", i), s.BatchSize, fmt.Sprintf("a multiple of %d, the number of parts", n))
		}
	}
	wrong.check(l.options.Last != Keep, "Last", l.options.Last, "Drop, Exact or, for a Dataset, Pad with several parts, which must make equally many steps")
	wrong.add(l.several("Divide"))
	return wrong.err()
}

// several is an *OptionError of method if several pipelines cannot read the samples side by side.
func (l *Loader) several(method string) error {
	option := method + ": ld"
	const want = "a Dataset, or an Iterable that begins again each time it is ranged over"
	switch {
	case l.once != nil:
		return &OptionError{Option: option, Value: "a source that gives its samples once", Want: want}
	case l.stream != nil:
		return &OptionError{Option: option, Value: "a Stream", Want: want}
	case l.replay != nil:
		return &OptionError{Option: option, Value: "a Replay", Want: want}
	case l.deal != nil:
		return &OptionError{Option: option, Value: "a Loader that Deal has made", Want: want}
	}
	return nil
}

// part is part i of n. All but its place in the batch, and what reads it, is l's.
func (l *Loader) part(i, n int, layout *Layout) *Loader {
	p := *l
	p.layout = layout
	p.split.batch /= int64(n)
	p.split.rank = l.split.rank*int64(n) + int64(i)
	p.split.ranks *= int64(n)
	p.split.sizes = divided(l.split.sizes, n)
	p.options.BatchSizes = divided(l.options.BatchSizes, n)
	p.options.Shard = Shard{Index: int(p.split.rank), Count: int(p.split.ranks)}
	p.shareStaff(i, n)
	return &p
}

func divided(sizes []SizeFrom, n int) []SizeFrom {
	sizes = slices.Clone(sizes)
	for i := range sizes {
		sizes[i].BatchSize /= n
	}
	return sizes
}

// shareStaff leaves to l part i of its workers, of n.
func (l *Loader) shareStaff(i, n int) {
	l.staff, l.tuned = l.staff.share(i, n), new(atomic.Pointer[tuner])
	if l.options.Workers != Auto {
		l.options.Workers = l.staff.most
	}
}

// share is the part that i of n get of a number of workers, 1 at least.
func share(workers, i, n int) int {
	part := workers / n
	if i < workers%n {
		part++
	}
	return max(part, 1)
}
