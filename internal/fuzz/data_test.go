package fuzz

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"pgregory.net/rapid"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// data is a dataset or an iterable that misbehaves.
type data struct {
	Samples  int // of epoch 0
	Odd      int // how many fewer an iterable has in odd epochs
	Width    int
	Empty    bool   // with a field of no bytes
	Ragged   string // with a field whose samples differ in length: "padded" or "packed"
	Iterable bool
	Form     string    // of an iterable: "", FromSeqFunc, or FromSeq, which gives its samples once
	Closers  bool      // an iterable's samples are io.Closers
	Composed string    // what a dataset is wrapped in, one of compositions
	Troubles []trouble // of samples
	Iterator []trouble // of an iterable's iterator
}

func (d data) String() string {
	what := "dataset"
	if d.Composed != "" {
		what += " (" + d.Composed + ")"
	}
	if d.Iterable {
		what = "iterable"
		if d.Form != "" {
			what += " by " + d.Form
		}
		if d.Closers {
			what += " of closers"
		}
	}
	s := fmt.Sprintf("%s of %d samples", what, d.Samples)
	if d.Iterable && d.Odd > 0 {
		s += fmt.Sprintf(" (%d in odd epochs)", d.Samples-d.Odd)
	}
	s += fmt.Sprintf(", width %d", d.Width)
	if d.Empty {
		s += ", an empty field"
	}
	if d.Ragged != "" {
		s += ", a ragged field, " + d.Ragged
	}
	for _, t := range d.Troubles {
		s += "; sample " + t.String()
	}
	for _, t := range d.Iterator {
		s += "; iterator at " + t.String()
	}
	return s
}

func drawData(t *rapid.T, sampleKinds, iteratorKinds []kind) data {
	sampleKinds, iteratorKinds = left(sampleKinds), left(iteratorKinds)
	d := data{
		Samples:  rapid.SampledFrom([]int{1, 2, 3, 5, 8, 13, 40, 100}).Draw(t, "samples"),
		Width:    rapid.SampledFrom([]int{1, 3, 64, 255}).Draw(t, "width"),
		Empty:    rapid.Bool().Draw(t, "empty"),
		Ragged:   rapid.SampledFrom([]string{"", "padded", "packed"}).Draw(t, "ragged"),
		Iterable: rapid.Bool().Draw(t, "iterable"),
	}
	trouble := rapid.IntRange(0, 3).Draw(t, "trouble") // most programs have none
	if len(sampleKinds) > 0 && trouble >= 2 {
		d.Troubles = drawTroubles(t, "troubles", d.Samples, 3, sampleKinds...)
	}
	if !d.Iterable {
		d.Composed = rapid.SampledFrom(compositions).Draw(t, "composed")
	}
	if d.Iterable {
		d.Closers = rapid.Bool().Draw(t, "closers")
		if rapid.Bool().Draw(t, "function") {
			d.Form = "FromSeqFunc"
			iteratorKinds = slices.DeleteFunc(slices.Clone(iteratorKinds), func(k kind) bool { return k == yieldsNil }) // it has no samples that are none
		}
		d.Odd = rapid.IntRange(0, d.Samples-1).Draw(t, "odd")
		if len(iteratorKinds) > 0 && trouble%2 == 1 {
			d.Iterator = drawTroubles(t, "iterator", d.Samples+1, 2, iteratorKinds...)
		}
	}
	return d
}

// length is the number of samples in an epoch.
func (d data) length(epoch int) int64 {
	if d.Iterable && epoch%2 == 1 {
		return int64(d.Samples - d.Odd)
	}
	return int64(d.Samples)
}

// at is the trouble with a sample.
func (d data) at(index, epoch int) (trouble, bool) { return find(d.Troubles, index, epoch) }

func find(all []trouble, at, epoch int) (trouble, bool) {
	for _, t := range all {
		if t.At == at && (t.Epoch < 0 || t.Epoch == epoch) {
			return t, true
		}
	}
	return trouble{}, false
}

// broken is whether a sample can't be read.
func (d data) broken(index, epoch int) bool {
	t, ok := d.at(index, epoch)
	return ok && t.breaks()
}

// longest is the longest that one call of the user's code takes after its context
// has ended.
func (d data) longest() (long time.Duration) {
	for _, t := range append(append([]trouble(nil), d.Troubles...), d.Iterator...) {
		if t.Kind == ignores {
			long = max(long, t.For)
		}
	}
	return long
}

// slow is whether any of the user's code takes time.
func (d data) slow() bool {
	for _, t := range append(append([]trouble(nil), d.Troubles...), d.Iterator...) {
		if !t.breaks() {
			return true
		}
	}
	return false
}

const (
	idField, positionField, epochField, randomField, bytesField = 0, 1, 2, 3, 4
)

func (d data) fields() []loader.Field {
	f := []loader.Field{
		{Name: "id", DType: dtype.Int64},
		{Name: "position", DType: dtype.Int64},
		{Name: "epoch", DType: dtype.Int32},
		{Name: "random", DType: dtype.Uint64},
		{Name: "bytes", DType: dtype.Uint8, Shape: []int{d.Width}},
	}
	if d.Empty {
		f = append(f, loader.Field{Name: "none", DType: dtype.Float32, Shape: []int{0, 3}})
	}
	if d.Ragged != "" {
		f = append(f, d.ragged())
	}
	return f
}

// unknown stands for a sample that is not told, only that it can be read.
const unknown = -1

// fill is what field "bytes" of a sample holds.
func fill(b []byte, index, epoch int) {
	for i := range b {
		b[i] = byte((index*7 + epoch*31 + i*13 + 1) % 251)
	}
}

// source is data at work, with what it sees of its caller.
type source struct {
	data
	workers int
	inside  atomic.Int32 // goroutines in samples' code
	over    atomic.Bool  // no call may come any more
	open    atomic.Int32 // samples that were yielded, and are neither encoded nor closed
	mu      sync.Mutex
	seen    error             // the first rule that the caller broke
	once    bool              // no sample may be read again
	reads   map[[2]int64]bool // by epoch and position, since what was read ahead was last given up
}

// readOnce notes a read of what nobody has given up.
func (s *source) readOnce(epoch int, position int64) {
	s.mu.Lock()
	again := s.once && s.reads[[2]int64{int64(epoch), position}]
	if s.reads == nil {
		s.reads = make(map[[2]int64]bool)
	}
	s.reads[[2]int64{int64(epoch), position}] = true
	s.mu.Unlock()
	if again {
		s.accuse("position %d of epoch %d is read again, though the pipeline had read it ahead", position, epoch)
	}
}

// forget notes that what was read ahead is given up. From here on, or not yet, what is
// read may be read only once.
func (s *source) forget(once bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.once = once
	clear(s.reads)
}

// left requires that every sample was encoded or closed.
func (s *source) left() error {
	if n := s.open.Load(); n != 0 && !s.yieldsOn(-1) {
		return fmt.Errorf("%d samples are neither encoded nor closed", n)
	}
	return nil
}

func (s *source) accuse(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = fmt.Errorf(format, args...)
	}
}

func (s *source) accusation() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

// indexed and iterated are the two forms of a source.
type indexed struct{ *source }
type iterated struct{ *source }

// loader makes the loader of a source.
func (s *source) loader(o options) (*loader.Loader, error) {
	switch {
	case s.Form == "FromSeqFunc":
		return loader.NewIterable(loader.FromSeqFunc(s.Fields(), func(ctx context.Context, pass loader.Pass) iter.Seq2[loader.Encoder, error] {
			return iterated{s}.Samples(ctx, pass.Epoch)
		}, encode), o.BatchSize, o.Options)
	case s.Form == "FromSeq":
		return loader.NewIterable(loader.FromSeq(s.Fields(), iterated{s}.Samples(context.Background(), 0), encode), o.BatchSize, o.Options)
	case s.Iterable:
		return loader.NewIterable(iterated{s}, o.BatchSize, o.Options)
	}
	ds, err := composed(indexed{s}, s.Composed)
	if err != nil {
		return nil, err
	}
	return loader.New(ds, o.BatchSize, o.Options)
}

func encode(ctx context.Context, e loader.Encoder, row *loader.Row) error { return e.Encode(ctx, row) }

func (s *source) Fields() []loader.Field { return s.data.fields() }

func (s indexed) Len() int { return s.data.Samples }

func (s indexed) Read(ctx context.Context, index int, row *loader.Row) error {
	if index < 0 || index >= s.data.Samples {
		s.accuse("sample %d of %d is read", index, s.data.Samples)
	}
	return s.write(ctx, index, row)
}

// write is a sample's code.
func (s *source) write(ctx context.Context, index int, row *loader.Row) error {
	if n := s.inside.Add(1); s.workers > 0 && int(n) > s.workers {
		s.accuse("%d goroutines read at once, of %d workers", n, s.workers)
	}
	defer s.inside.Add(-1)
	if s.over.Load() {
		s.accuse("sample %d is read after Close", index)
	}
	s.readOnce(row.Epoch(), row.Position())
	skip := -1
	if t, ok := s.at(index, row.Epoch()); ok {
		var err error
		if skip, err = t.meet(ctx); err != nil {
			return err
		}
	}
	if skip != idField {
		loader.Column[int64](row, "id")[0] = int64(index)
	}
	if skip != positionField {
		loader.Column[int64](row, "position")[0] = row.Position()
	}
	if skip != epochField {
		loader.Column[int32](row, "epoch")[0] = int32(row.Epoch())
	}
	if skip != randomField {
		loader.Column[uint64](row, "random")[0] = row.Rand().Uint64()
	}
	if skip != bytesField {
		fill(row.Bytes("bytes"), index, row.Epoch())
	}
	return s.writeRagged(index, row)
}

// element is a sample of an iterable.
type element struct {
	s     *source
	index int
	ended *atomic.Bool // encoded or closed
}

func (e element) Encode(ctx context.Context, row *loader.Row) error {
	e.end("encoded")
	return e.s.write(ctx, e.index, row)
}

func (e element) end(how string) {
	if e.ended.Swap(true) {
		e.s.accuse("sample %d is %s, and has been encoded or closed before", e.index, how)
	}
	if e.s.Closers {
		e.s.open.Add(-1)
	}
}

// closer is an element that is to be closed where it is not encoded.
type closer struct{ element }

func (c closer) Close() error {
	c.end("closed")
	return nil
}

// element makes a sample.
func (s *source) element(index int) loader.Encoder {
	e := element{s, index, new(atomic.Bool)}
	if s.Closers {
		s.open.Add(1)
		return closer{e}
	}
	return e
}

func (s iterated) Samples(ctx context.Context, epoch int) iter.Seq2[loader.Encoder, error] {
	if s.over.Load() {
		s.accuse("Samples of epoch %d is called after Close", epoch)
	}
	if t, ok := find(s.Iterator, 0, epoch); ok && t.Kind == failsEarly {
		panic(t.err())
	}
	ranged := false
	return func(yield func(loader.Encoder, error) bool) {
		if ranged {
			s.accuse("the iterator of epoch %d is ranged over twice", epoch)
		}
		ranged = true
		for _, t := range s.Iterator {
			if t.Epoch >= 0 && t.Epoch != epoch {
				continue
			}
			switch t.Kind {
			case panicsLate:
				defer panic(t.err())
			case goexitsLate:
				defer runtime.Goexit()
			}
		}
		for i := range int(s.length(epoch)) + 1 {
			t, bad := find(s.Iterator, i, epoch)
			if bad && t.Kind == yieldsNil && i < int(s.length(epoch)) {
				if !yield(nil, nil) {
					return
				}
				continue
			}
			if bad && !s.troubled(ctx, t, yield) {
				return
			}
			if i == int(s.length(epoch)) {
				return
			}
			if !yield(s.element(i), nil) {
				if s.yieldsOn(epoch) {
					yield(s.element(i+1), nil)
				}
				return
			}
		}
	}
}

// troubled does what an iterator does in trouble t and reports whether it goes on.
func (s *source) troubled(ctx context.Context, t trouble, yield func(loader.Encoder, error) bool) bool {
	switch t.Kind {
	case fails:
		yield(nil, t.err())
		return false
	case yieldsTwice:
		return yield(nil, t.err())
	case panics:
		panic(t.err())
	case goexits:
		runtime.Goexit()
	case ignores:
		time.Sleep(t.For)
	case sleeps:
		select {
		case <-time.After(t.For):
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// yieldsOn is whether the iterator does so in an epoch, or in any if that is -1.
func (s *source) yieldsOn(epoch int) bool {
	for _, t := range s.Iterator {
		if t.Kind == yieldsOn && (epoch < 0 || t.Epoch < 0 || t.Epoch == epoch) {
			return true
		}
	}
	return false
}

// A contents is what a batch holds in memory: bytes of a field by its name.
type contents func(field string) []byte

// compare reports the first row of a batch that isn't the sample of that index.
func (d data) compare(c contents, e *expected, words *words) error {
	rows := len(e.indices)
	for _, f := range d.fields() {
		if f.Ragged != nil {
			continue
		}
		size := f.DType.Size()
		for _, dim := range f.Shape {
			size *= dim
		}
		if is := len(c(f.Name)); is != rows*size {
			return fmt.Errorf("field %s has %d bytes, want %d rows of %d", f.Name, is, rows, size)
		}
	}
	want := make([]byte, d.Width)
	told := make([]int, rows) // the samples, those too that the reference does not know
	for row, index := range e.indices {
		position := e.position + int64(row)
		if index == unknown {
			index = int(int64(binary.LittleEndian.Uint64(c("id")[8*row:])))
			if index < 0 || index >= d.Samples || d.broken(index, e.epoch) {
				return fmt.Errorf("row %d is sample %#x, which can't be read", row, index)
			}
		}
		if is := int64(binary.LittleEndian.Uint64(c("id")[8*row:])); is != int64(index) {
			return fmt.Errorf("row %d is sample %#x, want %d", row, is, index)
		}
		if is := int64(binary.LittleEndian.Uint64(c("position")[8*row:])); is != position {
			return fmt.Errorf("row %d says position %#x, want %d", row, is, position)
		}
		if is := int32(binary.LittleEndian.Uint32(c("epoch")[4*row:])); is != int32(e.epoch) {
			return fmt.Errorf("row %d says epoch %#x, want %d", row, is, e.epoch)
		}
		fill(want, index, e.epoch)
		if is := c("bytes")[row*d.Width:][:d.Width]; !bytes.Equal(is, want) {
			return fmt.Errorf("row %d: sample %d holds %x, want %x", row, index, is, want)
		}
		if err := words.same(e.epoch, position, binary.LittleEndian.Uint64(c("random")[8*row:])); err != nil {
			return fmt.Errorf("row %d: %w", row, err)
		}
		told[row] = index
	}
	return d.compareRagged(c, told, e.epoch)
}

// words are the random words of a seed's positions: whoever reads a position gets
// the same one. The zero value is ready to use.
type words struct {
	mu  sync.Mutex
	all map[[2]int64]uint64
}

func (w *words) same(epoch int, position int64, word uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = make(map[[2]int64]uint64)
	}
	key := [2]int64{int64(epoch), position}
	if is, ok := w.all[key]; ok && is != word {
		return fmt.Errorf("random word %#x, before it was %#x", word, is)
	}
	w.all[key] = word
	return nil
}
