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
	// Index is the sample's index in the dataset.
	Index int
	// Leaf names the sample below all compositions, and Origin is its place there if the
	// dataset is a Locator.
	Leaf   Leaf
	Origin Origin
}

// Which tells what the steps of a span are made of, over all ranks: step by step, rank by
// rank, row by row. No data is read, because the order is a function of the seed, the
// epoch and the position. So it can't know which samples failed and were substituted:
// that is in Filled.Substituted. Candidates tells by which they would be.
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
			s.Index = order.At(s.Position)
			s.Leaf, s.Origin = l.source(s.Epoch, s.Index)
			if !yield(s) {
				return false
			}
		}
	}
	return true
}

// source is where a sample of an epoch comes from.
func (l *Loader) source(epoch, index int) (Leaf, Origin) {
	leaf := l.tree.leaf(epoch, index)
	if ds, ok := l.leaves[leaf.Source].(Locator); ok {
		return leaf, ds.Origin(leaf.Index)
	}
	return leaf, Origin{}
}
