package loader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/leat-go/leat/loader/internal/mix"
)

// Exclusion is what is left out of training, from now on: samples that turned out to be
// bad, and steps that are not to be made again. Nothing else changes: no other sample has
// another place, other random numbers or another batch.
//
// In the place of an excluded sample another one is read, chosen as Substitute chooses one.
// It is not listed in Filled.Substituted and does not count for MaxSubstituted, since
// nothing has failed; Loader.Which tells it. An excluded step is jumped over on all ranks,
// and its epoch has so many steps fewer.
//
// Of a Stream an excluded sample is left out as by Skip, without being encoded or counted: the
// next one of its own shard takes the place, and all of that shard behind it come earlier. The
// samples of an excluded step are read and dropped, so nothing behind it changes.
//
// To leave out more, append an Exclusion to Options.Exclude and change none before it: then
// a State that was saved with those before is accepted, and no other one is.
type Exclusion struct {
	// Samples are indices of the loader's dataset. Where that is a composition which has
	// other samples at an index in each epoch, Leaves are what you want.
	Samples []int
	// Leaves are samples wherever they turn up in a composition. Loader.Which tells them.
	Leaves []Leaf
	// Files excludes all samples whose Origin has one of these as its File. At least one
	// dataset must be a Locator, and the samples of a Stream be Located.
	Files []string
	// Origins are samples of a Stream whose Origin is exactly one of these: as Loader.Trace,
	// Skipped or an error tells it.
	Origins []Origin
	// Steps are jumped over: all that begin in one of the spans. Rows of another step which
	// reaches into a span, because batches have another size than when the span was made,
	// are filled as those of excluded samples are.
	Steps []Span
}

// exclusions are all of Options.Exclude, made ready to be asked. nil excludes nothing.
type exclusions struct {
	samples map[int]struct{}
	leaves  map[Leaf]struct{}
	files   map[string]struct{}
	origins map[Origin]struct{}
	steps   []Span   // in order and apart from each other
	digests []uint64 // of the first 0, 1 and so on of Options.Exclude
}

func newExclusions() *exclusions {
	return &exclusions{
		samples: make(map[int]struct{}), leaves: make(map[Leaf]struct{}), files: make(map[string]struct{}),
		origins: make(map[Origin]struct{}),
		digests: []uint64{0},
	}
}

// exclude makes the loader leave out what Options.Exclude says.
func (l *Loader) exclude() error {
	if len(l.options.Exclude) == 0 {
		return nil
	}
	x := newExclusions()
	var wrong mistakes
	for i, e := range l.options.Exclude {
		wrong.add(l.checkExclusion(fmt.Sprintf("Exclude[%d]", i), e))
		x.add(e, l.split.samples)
	}
	if err := wrong.err(); err != nil {
		return err
	}
	wrong.check(int64(len(x.samples)) < l.split.samples, "Exclude", "all samples", fmt.Sprintf("fewer than all %d", l.split.samples))
	l.excluded, l.split.jumped = x, x.steps
	wrong.add(l.emptied())
	return wrong.err()
}

// checkExclusion reports all that is wrong with one exclusion.
func (l *Loader) checkExclusion(option string, e Exclusion) error {
	var wrong mistakes
	for _, sample := range e.Samples {
		wrong.check(sample >= 0 && int64(sample) < l.split.samples, option+".Samples", sample, fmt.Sprintf("0 to %d", l.split.samples-1))
	}
	for _, leaf := range e.Leaves {
		if leaf.Source < 0 || leaf.Source >= len(l.leaves) {
			wrong.check(false, option+".Leaves", leaf, fmt.Sprintf("a Source of 0 to %d", len(l.leaves)-1))
			continue
		}
		n := l.leaves[leaf.Source].Len()
		wrong.check(leaf.Index >= 0 && leaf.Index < n, option+".Leaves", leaf, fmt.Sprintf("an Index of 0 to %d", n-1))
	}
	wrong.check(len(e.Origins) == 0, option+".Origins", e.Origins, "none: they are for a Stream, and a Dataset's samples have an index")
	located := slices.ContainsFunc(l.leaves, func(ds Dataset) bool { _, ok := ds.(Locator); return ok })
	wrong.check(located || len(e.Files) == 0, option+".Files", e.Files, "none, since no dataset is a Locator")
	wrong.check(!slices.Contains(e.Files, ""), option+".Files", "an empty name", "names of files")
	for _, s := range e.Steps {
		if err := l.checkSpan(s); err != nil {
			wrong.check(false, option+".Steps", s, wanted(err))
		}
	}
	return wrong.err()
}

// wanted is what a *StateError wants.
func wanted(err error) string {
	var e *StateError
	errors.As(err, &e)
	return fmt.Sprint(e.Want)
}

// emptied is an error if an epoch has no steps left.
func (l *Loader) emptied() error {
	last := l.options.Epochs - 1
	if last < 0 {
		last = maxEpoch
	}
	var wrong mistakes
	for _, s := range l.excluded.steps {
		for _, epoch := range [...]int{s.From.Epoch, min(s.From.Epoch+1, s.To.Epoch), s.To.Epoch} {
			if epoch <= last && l.emptyEpoch(epoch) {
				wrong.check(false, "Exclude", s, fmt.Sprintf("a step left in epoch %d: Seek goes on behind an epoch", epoch))
				break
			}
		}
	}
	return wrong.err()
}

// emptyEpoch reports whether it is known that an epoch has no step.
func (l *Loader) emptyEpoch(epoch int) bool {
	if l.stream != nil {
		return l.split.rest(Cursor{Epoch: epoch}) == 0
	}
	return l.split.left(Cursor{Epoch: epoch}) == 0
}

// add excludes what e says; its samples are of so many.
func (x *exclusions) add(e Exclusion, samples int64) {
	leaves := sortBy(slices.Clone(e.Leaves), func(a, b Leaf) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Index, b.Index))
	})
	own := slices.Compact(slices.Sorted(slices.Values(e.Samples)))
	files := slices.Compact(slices.Sorted(slices.Values(e.Files)))
	origins := slices.Compact(sortBy(slices.Clone(e.Origins), func(a, b Origin) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Record, b.Record))
	}))
	steps := merged(e.Steps, samples)
	x.digests = append(x.digests, digest(x.digests[len(x.digests)-1], own, slices.Compact(leaves), files, origins, steps))

	for _, sample := range own {
		x.samples[sample] = struct{}{}
	}
	for _, leaf := range leaves {
		x.leaves[leaf] = struct{}{}
	}
	for _, file := range files {
		x.files[file] = struct{}{}
	}
	for _, origin := range origins {
		x.origins[origin] = struct{}{}
	}
	x.steps = merged(append(steps, x.steps...), samples)
}

// merged are spans in order and apart from each other, with the end of an epoch of so many
// samples as the beginning of the next. Empty ones are left out.
func merged(spans []Span, samples int64) (all []Span) {
	place := func(at Cursor) Cursor {
		if at.Position == samples {
			return Cursor{Epoch: at.Epoch + 1}
		}
		return Cursor{Epoch: at.Epoch, Position: at.Position}
	}
	for _, s := range sortBy(slices.Clone(spans), func(a, b Span) int { return a.From.compare(b.From) }) {
		s = Span{place(s.From), place(s.To)}
		last := len(all) - 1
		switch {
		case s.From.compare(s.To) >= 0:
		case last >= 0 && s.From.compare(all[last].To) <= 0:
			if all[last].To.compare(s.To) < 0 {
				all[last].To = s.To
			}
		default:
			all = append(all, s)
		}
	}
	return all
}

// digest is a hash of an exclusion behind others, never 0. It is part of a State, and must
// stay the same.
func digest(others uint64, samples []int, leaves []Leaf, files []string, origins []Origin, steps []Span) uint64 {
	h := mix.Hash(others, uint64(len(samples)), uint64(len(leaves)), uint64(len(files)), uint64(len(steps)))
	for _, sample := range samples {
		h = mix.Hash(h, uint64(sample))
	}
	for _, leaf := range leaves {
		h = mix.Hash(h, uint64(leaf.Source), uint64(leaf.Index))
	}
	name := func(file string) {
		h = mix.Hash(h, uint64(len(file)))
		for _, c := range []byte(file) {
			h = mix.Hash(h, uint64(c))
		}
	}
	for _, file := range files {
		name(file)
	}
	if len(origins) > 0 {
		h = mix.Hash(h, uint64(len(origins)))
	}
	for _, origin := range origins {
		name(origin.File)
		h = mix.Hash(h, uint64(origin.Offset), uint64(origin.Record))
	}
	for _, s := range steps {
		h = mix.Hash(h, uint64(s.From.Epoch), uint64(s.From.Position), uint64(s.To.Epoch), uint64(s.To.Position))
	}
	return max(h, 1)
}

// digest is that of all, 0 if there are none.
func (x *exclusions) digest() uint64 {
	if x == nil {
		return 0
	}
	return x.digests[len(x.digests)-1]
}

// extends reports whether a digest is that of the first of these exclusions, of none of
// them, or of all.
func (x *exclusions) extends(digest uint64) bool {
	return digest == 0 || x != nil && slices.Contains(x.digests, digest)
}

// leftOut reports whether an epoch is to be without a sample.
func (l *Loader) leftOut(epoch, index int) bool {
	x := l.excluded
	if _, found := x.samples[index]; found {
		return true
	}
	if len(x.leaves) == 0 && len(x.files) == 0 {
		return false
	}
	leaf := l.tree.leaf(epoch, index)
	if _, found := x.leaves[leaf]; found {
		return true
	}
	if ds, ok := l.leaves[leaf.Source].(Locator); ok && len(x.files) > 0 {
		_, found := x.files[ds.Origin(leaf.Index).File]
		return found
	}
	return false
}

// jumped reports whether a position of an epoch, or the one that a padding row repeats, is
// in an excluded step.
func (l *Loader) jumped(epoch int, position int64) bool {
	steps := l.excluded.steps
	if len(steps) == 0 {
		return false
	}
	at := Cursor{Epoch: epoch, Position: position % l.split.samples}
	behind, _ := slices.BinarySearchFunc(steps, at, func(s Span, at Cursor) int {
		if s.From.compare(at) <= 0 {
			return -1
		}
		return 1
	})
	return behind > 0 && at.compare(steps[behind-1].To) < 0
}

// readOther reads the sample of a row, or another one in the place of an excluded one.
func (w *worker) readOther(ctx context.Context, b *batch, row int) error {
	l, index := w.run.loader, &w.indices[row-w.claim.lo]
	position := b.filled.Position + int64(row)
	w.candidates = candidates{loader: l, epoch: b.filled.Epoch, position: position} // if standIn panics
	var excluded, ok bool
	*index, w.candidates, excluded, ok = l.standIn(b.filled.Epoch, position, *index)
	if !ok {
		return errAllExcluded
	}
	if excluded { // a report on a Read that hangs names it
		w.standIn.Store(int64(*index))
		defer w.standIn.Store(-1)
	}
	return w.dataset.Read(ctx, *index, &w.row)
}

// standIn returns the sample that is read at a position: index, which is there in the
// epoch's order, or another one in the place of an excluded one; and those behind it, that
// can be read if it fails. ok is false if none was found.
func (l *Loader) standIn(epoch int, position int64, index int) (read int, behind candidates, excluded, ok bool) {
	behind = candidates{loader: l, epoch: epoch, position: position}
	if !l.jumped(epoch, position) && !l.leftOut(epoch, index) {
		return index, behind, false, true
	}
	if read, ok = behind.next(); !ok {
		read = index
	}
	return read, behind, true, ok
}
