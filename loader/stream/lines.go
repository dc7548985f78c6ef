package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"strconv"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/mix"
	"github.com/leat-go/leat/loader/internal/permute"
	"github.com/leat-go/leat/loader/source"
)

// LinesOptions tunes Lines. The zero value is ready to use.
type LinesOptions struct {
	// Parts is how many parts each file is cut into, of about as many bytes each, so that one
	// large file makes several shards. A line belongs to the part in which it begins. 0 means 1.
	Parts int
	// Shards is the number of shards, at most that of all parts. Part p, counted over the
	// files in their order, belongs to shard p%Shards. 0 means one for each part.
	Shards int
	// Shuffle reads the parts of each shard in another order in each pass.
	Shuffle bool
	// Read tunes the reading of a file: the longest line among other things.
	Read source.Options
}

// Lines is the lines of text files, without their ends, "\n" or "\r\n"; the last needs none.
// Each has its file, offset and number as its origin. A line that is too long is the
// failure of that record only, and so is nothing else: a file that can't be opened or read
// ends its shard with the error. Retry opens the file again.
//
// A shard that is read has one file open, and a buffer of Read.ReadBytes.
func Lines(files []source.Source, o LinesOptions) Stream[[]byte] {
	l := &lines{files: files, parts: max(1, o.Parts), options: o}
	parts := uint64(math64(len(files), l.parts))
	shards := o.Shards
	if shards == 0 {
		shards = int(parts)
	}
	mistakes := []error{
		check(len(files) > 0, "Lines", "files", "empty", "one or more"),
		check(o.Parts >= 0 && o.Parts <= maxParts, "Lines", "Parts", o.Parts, fmt.Sprintf("0 (files are whole) to %d", maxParts)),
		check(o.Shards >= 0 && (parts == 0 || uint64(o.Shards) <= parts), "Lines", "Shards", o.Shards,
			fmt.Sprintf("0 (one for each part of a file) to %d, the number of parts", parts)),
	}
	for i, f := range files {
		mistakes = append(mistakes, check(f != nil, "Lines", fmt.Sprintf("files[%d]", i), nil, "a Source"))
	}
	if err := errors.Join(mistakes...); err != nil {
		return Stream[[]byte]{shards: max(1, shards), open: l.open, err: err}
	}
	l.shards = shards
	return Stream[[]byte]{shards: shards, open: l.open, fingerprint: l.fingerprint(), draws: 1}
}

// math64 is a product of numbers that are not negative, MaxInt if it is larger.
func math64(a, b int) int {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	const most = 1<<(bits.UintSize-1) - 1
	if hi > 0 || lo > most {
		return most
	}
	return int(lo)
}

const maxParts = 1 << 20

type lines struct {
	files         []source.Source
	parts, shards int
	options       LinesOptions
}

// fingerprint is of the names and of how they are cut. What is in the files would have to be
// asked for.
func (l *lines) fingerprint() uint64 {
	words := []uint64{uint64(l.parts), uint64(l.shards)}
	if l.options.Shuffle {
		words = append(words, 1)
	}
	h := mix.Hash(words...)
	for _, f := range l.files {
		h = argument(h, f.Name())
	}
	return h
}

func (l *lines) open(ctx context.Context, pass loader.Pass, shard int, mark []byte) (Reader[[]byte], error) {
	r := &lineReader{
		of: l, shard: shard,
		parts: int(share(int64(math64(len(l.files), l.parts)), shard, l.shards)),
	}
	if l.options.Shuffle {
		r.order = permute.New(drawKey(pass, shard, 0), uint64(r.parts))
	}
	if mark == nil {
		return r, nil
	}
	var m linesMark
	if err := parse("Lines", mark, &m); err != nil {
		return nil, err
	}
	if err := outside("Lines", "part", int64(m.Part), 0, int64(r.parts)); err != nil {
		return nil, err
	}
	return r, orClose(r, func() error { return r.enter(ctx, m) })
}

// linesMark is a place in a part of a shard's, by its number in the order in which they
// are read. Without Offset it is the part's beginning.
type linesMark struct {
	Part   int    `json:"part"`
	Offset *int64 `json:"offset,omitempty"`
	Record int64  `json:"record,omitempty"`
}

type lineReader struct {
	of           *lines
	shard, parts int
	order        permute.Permutation
	part         int
	file         source.File // nil before the part is opened
	reader       *source.Reader
	offset, end  int64 // of the next line and of the part, in the file
	record       int64 // the next one's number, -1 if it isn't known
	broken       error
	closed       error // what closing files returned
}

// enter goes to a place that was marked.
func (r *lineReader) enter(ctx context.Context, m linesMark) error {
	r.part = m.Part
	if m.Offset == nil || m.Part == r.parts {
		return nil
	}
	if err := r.openPart(ctx); err != nil {
		return err
	}
	if err := outside("Lines", "offset", *m.Offset, r.offset, r.file.Size()); err != nil {
		return err
	}
	if err := r.reader.SeekLine(ctx, *m.Offset); err != nil {
		return err
	}
	r.offset, r.record = r.reader.Offset(), m.Record
	if r.offset != *m.Offset {
		return &MarkError{Operator: "Lines", Err: fmt.Errorf("%s: no line begins at byte %d", r.file.Name(), *m.Offset)}
	}
	return nil
}

// openPart opens the file of the part and goes to its first line.
func (r *lineReader) openPart(ctx context.Context) error {
	number := r.shard + r.part*r.of.shards
	if r.of.options.Shuffle {
		number = r.shard + int(r.order.At(uint64(r.part)))*r.of.shards
	}
	file, err := r.of.files[number/r.of.parts].Open(ctx)
	if err != nil {
		return err
	}
	r.file = file
	if r.reader == nil {
		r.reader = source.NewReader(file, 0, r.of.options.Read)
	}
	r.reader.Reset(file, 0)
	part := number % r.of.parts
	r.end = cut(file.Size(), part+1, r.of.parts)
	r.record = 0
	if part > 0 {
		r.record = -1
	}
	if err := r.reader.SeekLine(ctx, cut(file.Size(), part, r.of.parts)); err != nil {
		r.closePart()
		return err
	}
	r.offset = r.reader.Offset()
	return nil
}

// cut is where part number part of parts begins in a file.
func cut(size int64, part, parts int) int64 {
	hi, lo := bits.Mul64(uint64(size), uint64(part))
	at, _ := bits.Div64(hi, lo, uint64(parts)) // part is at most parts, so it is at most size
	return int64(at)
}

func (r *lineReader) Next(ctx context.Context, item *Item[[]byte]) (ok bool, err error) {
	for r.broken == nil && r.part < r.parts {
		if r.file == nil {
			if err := r.openPart(ctx); err != nil {
				return false, r.fail(ctx, err)
			}
		}
		item.Origin = loader.Origin{File: r.file.Name(), Offset: r.offset, Record: r.record, Line: r.record + 1}
		if r.offset < r.end {
			line, err := r.reader.Line(ctx)
			if err != io.EOF {
				err = r.line(ctx, line, item, err)
				return err == nil, err
			}
		}
		r.closePart()
		r.part++
	}
	return false, r.broken
}

// line makes an item of a line whose origin it has.
func (r *lineReader) line(ctx context.Context, line []byte, item *Item[[]byte], err error) error {
	if _, long := err.(*source.LineError); err != nil && !long {
		return r.fail(ctx, err)
	}
	r.offset = r.reader.Offset()
	if r.record >= 0 {
		r.record++
	}
	if err != nil {
		return located(err, item.Origin)
	}
	item.Value = bytes.Clone(line)
	return nil
}

// fail breaks the reader, unless it was the call that was cancelled.
func (r *lineReader) fail(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		r.broken = err
	}
	return err
}

func (r *lineReader) closePart() {
	if r.file != nil {
		r.closed = errors.Join(r.closed, r.file.Close())
		r.file = nil
	}
}

func (r *lineReader) AppendMark(dst []byte) ([]byte, error) {
	out := append(dst, `{"part":`...)
	out = strconv.AppendInt(out, int64(r.part), 10)
	if r.file != nil {
		out = append(out, `,"offset":`...)
		out = strconv.AppendInt(out, r.offset, 10)
		out = append(out, `,"record":`...)
		out = strconv.AppendInt(out, r.record, 10)
	}
	return append(out, '}'), nil
}

func (r *lineReader) Close() error {
	r.closePart()
	return r.closed
}
