package fuzz

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// A reference says what must come next of a loader that began at a cursor. It is a
// plain reading of the documentation, in slices and sums; only the order of the
// samples is the loader's own, by its public Order.
type reference struct {
	data    data
	options options
	order   func(epoch int, position int64) int
	began   loader.Cursor
	at      loader.Cursor
	words   *words
	standIn map[[2]int64]int // by epoch and position; -1 where none was found
}

func newReference(d data, ld *loader.Loader, batchSize int, at loader.Cursor, w *words) *reference {
	r := &reference{data: d, options: options{batchSize, ld.Options()}, began: at, at: at, words: w, standIn: make(map[[2]int64]int)}
	r.order = func(epoch int, position int64) int {
		if d.Iterable {
			return int(position)
		}
		index := ld.Order(epoch).At(position % int64(d.Samples))
		for _, e := range r.options.Exclude {
			if slices.Contains(e.Samples, index) {
				return r.inPlaceOf(index, epoch, position)
			}
		}
		return index
	}
	return r
}

// inPlaceOf is the sample that is read at a position whose own is excluded. It depends on
// the seed, the epoch, the position and what is excluded: any other loader with these says
// the same.
func (r *reference) inPlaceOf(index, epoch int, position int64) int {
	other := loader.FromFunc(r.data.Samples, []loader.Field{{Name: "x", DType: dtype.Uint8}},
		func(context.Context, int, *loader.Row) error { return nil })
	ld, err := loader.New(other, 1, loader.Options{Seed: r.options.Seed, Shuffle: r.options.Shuffle, Exclude: r.options.Exclude})
	if err != nil {
		panic(err)
	}
	at := loader.Cursor{Epoch: epoch, Position: position}
	samples, err := ld.Which(loader.Span{From: at, To: loader.Cursor{Epoch: epoch, Position: position + 1}})
	if err != nil {
		panic(err)
	}
	for s := range samples {
		if s.Excluded != index || slices.Contains(r.options.Exclude[0].Samples, s.Index) {
			panic(fmt.Sprintf("%+v in the place of %d", s, index))
		}
		return s.Index
	}
	panic("no sample")
}

// size is the batch size of a step that begins at a position of the epoch.
func (r *reference) size(position int64) int64 {
	size := r.options.BatchSize
	for _, s := range r.options.BatchSizes {
		if int64(r.at.Epoch)*int64(r.data.Samples)+position >= s.Sample {
			size = s.BatchSize
		}
	}
	return int64(size)
}

// global is how many samples all ranks take in a step that begins at a position.
func (r *reference) global(position int64) int64 {
	return r.size(position) * int64(max(1, r.options.Shard.Count))
}

// number is that of the step which has a position, of those from the epoch's beginning on.
func (r *reference) number(position int64) (n int) {
	for at := r.global(0); at <= position; at += r.global(at) {
		n++
	}
	return n
}

// expected is a batch.
type expected struct {
	epoch, batch int
	position     int64
	indices      []int // one a row, padding included
	valid        int
	after        loader.Cursor
	last         bool  // of its epoch, as far as that can be known
	broken       []int // rows that need a substitute
}

// failure is an error that the data gives rise to. Negative is unknown.
type failure struct {
	position int64
	index    int
	trouble  trouble
	stage    string
}

// outcome is what may come: a batch, or an end, or else one of the failures. Where
// there is a batch or an end, the failures may come in its place.
type outcome struct {
	batch    *expected
	epochEnd bool
	dataEnd  bool
	failures []failure
}

func (o outcome) String() string {
	s := ""
	switch {
	case o.batch != nil:
		s = fmt.Sprintf("batch %d of epoch %d at %d: samples %v, %d valid", o.batch.batch, o.batch.epoch, o.batch.position, o.batch.indices, o.batch.valid)
	case o.epochEnd:
		s = "the epoch's end"
	case o.dataEnd:
		s = "the data's end"
	}
	for _, f := range o.failures {
		if s != "" {
			s += ", or "
		}
		s += fmt.Sprintf("a failure at %d (%s)", f.position, f.trouble.Kind)
	}
	return s
}

// normalized is a place, or the beginning of the next epoch if it is the end of one.
func normalized(ld *loader.Loader, at loader.Cursor) loader.Cursor {
	to := ld.StateAt(at).Cursor()
	if to.Epoch == at.Epoch {
		to.Substituted = at.Substituted // which a state of several ranks leaves out
	}
	return to
}

// pastTheEnd reports whether a place is behind the last of a stated number of epochs.
func pastTheEnd(o options, at loader.Cursor) bool {
	return o.Epochs > 0 && (at.Epoch > o.Epochs || at.Epoch == o.Epochs && at.Position > 0)
}

// nowhere is what is wrong with the answer to a request for such a place.
func nowhere(err error, at loader.Cursor) error {
	var refused *loader.StateError
	if errors.As(err, &refused) {
		return nil
	}
	return fmt.Errorf("%+v is behind the last epoch, the answer is %v", at, err)
}

// next is what comes at the place where the reference is.
func (r *reference) next() outcome {
	n, global := r.data.length(r.at.Epoch), r.global(r.at.Position)
	left := n - r.at.Position
	drop := r.options.Last == loader.Drop
	if r.options.Epochs > 0 && r.at.Epoch >= r.options.Epochs {
		return outcome{dataEnd: true}
	}
	if !r.data.Iterable {
		if left <= 0 || drop && left < global {
			return outcome{epochEnd: true}
		}
		return r.complete(r.batch(n))
	}
	if f, ok := r.broken(n); ok {
		if f.position < r.began.Position && r.at.Epoch == r.began.Epoch {
			return outcome{failures: []failure{f}} // in what is passed over
		}
		if f.position < r.at.Position+global {
			return outcome{failures: []failure{r.lowest(r.batch(min(n, f.position)), f)}}
		}
	}
	late, isLate := r.late(n)
	end := outcome{epochEnd: true}
	if isLate {
		end = outcome{failures: []failure{late}}
	}
	switch {
	case left < 0:
		return outcome{failures: []failure{{position: n, index: -1, stage: loader.StageIterate}}}
	case left == 0:
		return end
	case drop && left < global:
		dropped := r.batch(n)
		if n < global {
			end = outcome{failures: []failure{{position: n, index: -1, stage: loader.StageIterate}}}
		}
		end.failures = append(end.failures, r.failures(dropped)...)
		return end
	}
	o := r.complete(r.batch(n))
	if isLate && left < global {
		o.failures = append(o.failures, late)
	}
	return o
}

// batch is this rank's part of the global batch that begins at the place, in an
// epoch of n samples.
func (r *reference) batch(n int64) *expected {
	size, ranks := r.size(r.at.Position), int64(max(1, r.options.Shard.Count))
	e := &expected{
		epoch: r.at.Epoch, batch: r.number(r.at.Position),
		position: r.at.Position + int64(r.options.Shard.Index)*size,
		after:    loader.Cursor{Epoch: r.at.Epoch, Position: min(r.at.Position+size*ranks, n)},
	}
	rows := min(max(n-e.position, 0), size)
	e.valid = int(rows)
	if r.options.Last == loader.Pad {
		rows = size
	}
	for row := range rows {
		index := r.order(r.at.Epoch, e.position+row)
		e.indices = append(e.indices, index)
		if r.data.broken(index, r.at.Epoch) {
			e.broken = append(e.broken, int(row))
		}
	}
	if r.options.MaxSubstituted > 0 {
		e.after.Substituted = r.at.Substituted + len(e.broken)
	}
	rest := n - e.after.Position
	e.last = !r.data.Iterable && (rest == 0 || r.options.Last == loader.Drop && rest < r.global(e.after.Position))
	return e
}

// failures are those of a batch's rows, the first first.
func (r *reference) failures(e *expected) (all []failure) {
	stage := loader.StageRead
	if r.data.Iterable {
		stage = loader.StageEncode
	}
	for _, row := range e.broken {
		index := e.indices[row]
		t, _ := r.data.at(index, e.epoch)
		all = append(all, failure{position: e.position + int64(row), index: index, trouble: t, stage: stage})
	}
	return all
}

// lowest is the first failure of a batch's rows, or else f.
func (r *reference) lowest(e *expected, f failure) failure {
	if all := r.failures(e); len(all) > 0 && all[0].position < f.position {
		return all[0]
	}
	return f
}

// complete is what becomes of a batch of which every sample is there.
func (r *reference) complete(e *expected) outcome {
	failures := r.failures(e)
	switch {
	case len(failures) == 0:
		return outcome{batch: e}
	case r.options.OnError != loader.Substitute:
		return outcome{failures: failures[:1]}
	}
	// A goroutine that is at its end can't read another sample.
	for i, f := range failures {
		if f.trouble.Kind == goexits {
			return outcome{failures: failures[:i+1]}
		}
	}
	limit := r.options.MaxSubstituted
	if limit > 0 && r.at.Substituted+len(failures) > limit {
		// Who finds no substitute at all may be told of before.
		return outcome{failures: failures}
	}
	return outcome{batch: e, failures: failures}
}

// broken is where the iterator breaks off in an epoch of n samples.
func (r *reference) broken(n int64) (failure, bool) {
	at := func(t trouble, position int64) (failure, bool) {
		return failure{position: position, index: int(position), trouble: t, stage: loader.StageIterate}, true
	}
	if t, ok := find(r.data.Iterator, 0, r.at.Epoch); ok && t.Kind == failsEarly {
		return at(t, 0)
	}
	for i := range n + 1 {
		t, ok := find(r.data.Iterator, int(i), r.at.Epoch)
		if ok && t.breaks() && t.Kind != yieldsOn && t.Kind != panicsLate && t.Kind != goexitsLate && t.Kind != failsEarly && (i < n || t.Kind != yieldsNil) {
			return at(t, i)
		}
	}
	return failure{}, false
}

// late is what the iterator does wrong when it has come to its end.
func (r *reference) late(n int64) (failure, bool) {
	for _, t := range r.data.Iterator {
		if (t.Epoch < 0 || t.Epoch == r.at.Epoch) && (t.Kind == panicsLate || t.Kind == goexitsLate) {
			return failure{position: n, index: -1, trouble: t, stage: loader.StageIterate}, true
		}
	}
	return failure{}, false
}

// advance notes that an outcome has come.
func (r *reference) advance(o outcome) {
	switch {
	case o.batch != nil:
		r.at = o.batch.after
	case o.epochEnd:
		r.at = loader.Cursor{Epoch: r.at.Epoch + 1}
	}
}

// substitutes puts the stand-ins of a batch where they belong, and checks that they
// are the same as ever.
func (r *reference) substitutes(e *expected, all []loader.Substitution) error {
	if len(all) != len(e.broken) {
		return fmt.Errorf("%d substitutes, want %d", len(all), len(e.broken))
	}
	for i, s := range all {
		row := e.broken[i]
		key := [2]int64{int64(e.epoch), e.position + int64(row)}
		if s.Row != row || s.Position != key[1] || s.Sample != e.indices[row] || s.Attempts < 1 || s.Err == nil {
			return fmt.Errorf("substitution %+v, want row %d, position %d, sample %d", s, row, key[1], e.indices[row])
		}
		if s.Substitute < 0 || s.Substitute >= r.data.Samples || r.data.broken(s.Substitute, e.epoch) {
			return fmt.Errorf("the substitute %d can't be read", s.Substitute)
		}
		if before, ok := r.standIn[key]; ok && before != s.Substitute {
			return fmt.Errorf("the substitute of position %d is %d, before it was %d", key[1], s.Substitute, before)
		}
		r.standIn[key] = s.Substitute
		e.indices[row] = s.Substitute
	}
	return nil
}

// fits reports whether err, a failure of a run, is one of those that may come.
func (r *reference) fits(err error, o outcome) error {
	var e *loader.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("not a *loader.Error: %w", err)
	}
	for _, f := range o.failures {
		if e.Position == f.position && e.Epoch == r.at.Epoch && e.Stage == f.stage {
			if late, ok := r.late(0); ok && late.trouble.Kind == goexitsLate && f.stage == loader.StageIterate {
				return nil // which covers a panic
			}
			return f.in(e)
		}
	}
	return fmt.Errorf("a failure at position %d of epoch %d, stage %s: %w", e.Position, e.Epoch, e.Stage, err)
}

// in reports what is wrong with an error that stands for the failure.
func (f failure) in(e *loader.Error) error {
	if f.index >= 0 && e.Sample != f.index {
		return fmt.Errorf("the failure is of sample %d, want %d: %w", e.Sample, f.index, e)
	}
	var panicked *loader.PanicError
	switch f.trouble.Kind {
	case fails, yieldsTwice:
		if !errors.Is(e, errUser) {
			return fmt.Errorf("the user's error is lost: %w", e)
		}
	case panics, failsEarly, panicsLate:
		if !errors.Is(e, errUser) || !errors.As(e.Err, &panicked) {
			return fmt.Errorf("the user's panic is lost: %w", e)
		}
	}
	return nil
}

// late is a failure of an iterator that came too late for Next.
func late(d data, err error) bool {
	var failed *loader.Error
	var panicked *loader.PanicError
	if errors.As(err, &panicked) && errors.Is(err, errUser) {
		return true
	}
	for _, t := range d.Iterator {
		if t.Kind == yieldsOn || t.Kind == panicsLate || t.Kind == goexitsLate || t.Kind == goexits {
			return errors.As(err, &failed) && failed.Stage == loader.StageIterate
		}
	}
	return false
}
