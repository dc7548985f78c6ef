package loader

import "iter"

// Sample is one row of a step, as it is known without reading.
type Sample struct {
	// Step counts the steps of the span, from 0. Epoch and Batch are the step's numbers in
	// Filled.
	Step, Epoch, Batch int
	// Rank has the sample in the row Row of its batch.
	Rank, Row int
	// Position is the sample's place in the epoch's order, with padding counting on.
	Position int64
	// Padding is set if the row only fills up the batch, under Pad.
	Padding bool
	// Index is the sample's index in the dataset. If it is read in the place of an excluded
	// sample, that one is Excluded, else -1. If all that were drawn in its place are
	// excluded too, and it fails therefore, Index is -1.
	Index, Excluded int
	// Leaf names the sample below all compositions, and Origin is its place there if the
	// dataset is a Locator.
	Leaf   Leaf
	Origin Origin
	// Shard is the shard of a Stream that the sample is of, and Pass its pass; see Trace.
	// Index, Excluded and Leaf have -1 then. Both are 0 of a Dataset.
	Shard, Pass int
}

// Which tells what the steps of a span are made of, over all ranks: step by step, rank by
// rank, row by row. No data is read, because the order is a function of the seed, the
// epoch and the position. So it can't know which samples failed and were substituted:
// that is in Filled.Substituted. Candidates tells by which they would be. Trace is for a
// Stream.
//
// The error is a *StateError for a span outside the data, and an *OptionError for samples
// without random access. What Part and Origin of the dataset panic with goes through.
func (l *Loader) Which(s Span) (iter.Seq[Sample], error) {
	if err := l.random("Which"); err != nil {
		return nil, err
	}
	if err := l.checkSpan(s); err != nil {
		return nil, err
	}
	return func(yield func(Sample) bool) {
		at := s.From
		for step := 0; ; {
			split, from, ok := l.split.step(at)
			at.Position = from
			if !ok {
				at = Cursor{Epoch: at.Epoch + 1}
			}
			if at.compare(s.To) >= 0 {
				return
			}
			if !ok {
				continue
			}
			if !l.whichStep(at, split, step, yield) {
				return
			}
			at.Position = split.part(from).after
			step++
		}
	}, nil
}

// whichStep yields the samples of the step that begins at a place.
func (l *Loader) whichStep(at Cursor, split split, step int, yield func(Sample) bool) bool {
	order := l.order(at.Epoch)
	s := Sample{Step: step, Epoch: at.Epoch, Batch: l.split.number(at)}
	for rank := range split.ranks {
		split.rank = rank
		part := split.part(at.Position)
		for row := range part.rows {
			s.Rank, s.Row, s.Position = int(rank), row, part.position+int64(row)
			s.Padding = row >= part.valid
			l.name(&s, order.At(s.Position))
			if !yield(s) {
				return false
			}
		}
	}
	return true
}

// name fills in which sample it is, where the epoch's order has index.
func (l *Loader) name(s *Sample, index int) {
	s.Index, s.Excluded = index, -1
	if l.excluded != nil {
		read, _, excluded, ok := l.standIn(s.Epoch, s.Position, index)
		if excluded {
			s.Index, s.Excluded = read, index
		}
		if !ok {
			s.Index, s.Leaf, s.Origin = -1, Leaf{-1, -1}, Origin{}
			return
		}
	}
	s.Leaf, s.Origin = l.located(s.Epoch, s.Index)
}

// located is the sample below all compositions, and where it comes from.
func (l *Loader) located(epoch, index int) (leaf Leaf, origin Origin) {
	leaf = l.tree.leaf(epoch, index)
	if ds, ok := l.leaves[leaf.Source].(Locator); ok {
		origin = ds.Origin(leaf.Index)
	}
	return leaf, origin
}

// origin is where a sample that has failed comes from. What the user's code panics with then
// would hide the failure.
func (l *Loader) origin(epoch, index int) (origin Origin) {
	defer func() { _ = recover() }()
	_, origin = l.located(epoch, index)
	return origin
}
