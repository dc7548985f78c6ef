package csv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/given"
	"github.com/leat-go/leat/loader/internal/parse"
	"github.com/leat-go/leat/loader/lines"
	"github.com/leat-go/leat/loader/source"
)

// Options tunes Open. The zero value is for files with commas and a header.
type Options struct {
	// Comma stands between cells. 0 means ','.
	Comma byte
	// NoHeader says that the first row is data: columns are called by their numbers, "0" and
	// on.
	NoHeader bool
	// Index, InMemory and Mapped are those of lines.Options, MaxLine is for rows.
	Index    string
	InMemory bool
	MaxLine  int
	Mapped   bool
}

// Column is a field and the cells that it is made of.
type Column struct {
	// Field has as many elements as it takes cells: one if it has no dimensions. A ragged field
	// of uint8 and one dimension takes the text of one cell. Fields of float16 and bfloat16 are
	// refused, since nobody writes them as text.
	loader.Field
	// From is the column of the first of the cells; the others are to the right of it. Empty
	// means the one that is called as the field is.
	From string
	// Categories are texts that stand for 0, 1, 2 and so on in a field of integers. A cell
	// that is none of them is an error.
	Categories []string
	// Empty is what an empty cell is read as, such as "0" or "NaN". An empty Empty makes it an
	// error.
	Empty string
}

// Dataset is the rows of some files.
type Dataset = lines.Dataset

// Open opens files, all of which have the same header. A cell that can't be read as its field's
// type is the failure of its sample, a *source.FormatError with the file, the row and the
// column; so is an empty one, unless Column.Empty says what it is.
//
// The error is that of lines.Open: a file that has a row which is none, or a header without one
// of the columns, is a *source.FormatError.
func Open(ctx context.Context, files []source.Source, columns []Column, o Options) (*Dataset, error) {
	o, err := o.withDefaults(files, columns)
	if err != nil {
		return nil, err
	}
	t := &table{comma: o.Comma, columns: columns}
	if err := t.heads(ctx, files, o); err != nil {
		return nil, err
	}
	var fields []loader.Field
	for _, c := range columns {
		fields = append(fields, c.Field)
	}
	kind := fmt.Sprintf("csv %q header=%v", o.Comma, !o.NoHeader)
	return lines.Open(ctx, files, fields, t.encode, lines.Options{
		Index: o.Index, InMemory: o.InMemory, MaxLine: o.MaxLine, Mapped: o.Mapped,
		Split: lines.Split{Kind: kind, Scan: func(ctx context.Context, f source.File, most int, record func(int64, []byte) error) error {
			return scan(ctx, newRows(f, o.Comma, most), !o.NoHeader, record)
		}},
	})
}

func (o Options) withDefaults(files []source.Source, columns []Column) (Options, error) {
	var wrong []error
	check := func(ok bool, option string, value any, want string) {
		if !ok {
			wrong = append(wrong, &loader.OptionError{Package: "csv", Option: option, Value: value, Want: want})
		}
	}
	check(len(columns) > 0, "columns", "empty", "one or more")
	for i := range columns {
		c := &columns[i]
		check(parse.Readable(c.DType), fmt.Sprintf("columns[%d] (%s)", i, c.Name), c.DType, "a type that is written as text")
		check(c.Ragged == nil || c.textual(), fmt.Sprintf("columns[%d] (%s)", i, c.Name), c.Field, "one length, or uint8 of one dimension for text")
		check(len(c.Categories) == 0 || c.DType != dtype.Bool && c.DType != dtype.Float32 && c.DType != dtype.Float64 && c.Ragged == nil,
			fmt.Sprintf("columns[%d] (%s)", i, c.Name), c.Field, "integers for Categories")
	}
	o, err := o.filled()
	return o, errors.Join(append(wrong, given.Files("csv", files), err)...)
}

// filled is the options that say how a file is read, with their defaults.
func (o Options) filled() (Options, error) {
	var wrong []error
	if bytes.IndexByte([]byte("\"\r\n"), o.Comma) >= 0 {
		wrong = append(wrong, &loader.OptionError{Package: "csv", Option: "Comma", Value: strconv.QuoteRune(rune(o.Comma)), Want: "a character that can stand between cells"})
	}
	if o.MaxLine < 0 || o.MaxLine > mostMaxLine {
		wrong = append(wrong, &loader.OptionError{Package: "csv", Option: "MaxLine", Value: o.MaxLine, Want: fmt.Sprintf("0 (%d) to %d", defaultMaxLine, mostMaxLine)})
	}
	if o.Comma == 0 {
		o.Comma = ','
	}
	if o.MaxLine == 0 {
		o.MaxLine = defaultMaxLine
	}
	return o, errors.Join(wrong...)
}

// As in package lines.
const (
	defaultMaxLine = 16 << 20
	mostMaxLine    = 1 << 30
)

// textual reports whether a field takes the text of its cell.
func (c *Column) textual() bool {
	return c.Ragged != nil && c.DType == dtype.Uint8 && len(c.Shape) == 1
}

// cells is how many the field takes.
func (c *Column) cells() int {
	n := 1
	if c.Ragged == nil {
		for _, dim := range c.Shape {
			n *= dim
		}
	}
	return n
}

// scan is the rows behind the header, for an index.
func scan(ctx context.Context, r *rows, header bool, record func(offset int64, text []byte) error) error {
	for {
		offset, text, err := r.next(ctx)
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if header {
			header, r.count = false, 0
			continue
		}
		if err := record(offset, text); err != nil {
			return err
		}
	}
}

// table makes samples of rows.
type table struct {
	comma   byte
	columns []Column
	names   []string
	targets [][]target // for each cell of a row
	scratch loader.Local[[]byte]
}

// target is a place in a sample that a cell is for.
type target struct{ column, element int }

// heads reads the header of each file, or counts the cells of its first row, and finds the
// columns.
func (t *table) heads(ctx context.Context, files []source.Source, o Options) error {
	for i, s := range files {
		names, err := head(ctx, s, o)
		if err != nil {
			return err
		}
		if i > 0 {
			if !slices.Equal(names, t.names) {
				return headError(s, fmt.Sprintf("the columns %q, as in the first file", t.names), fmt.Sprintf("%q", names))
			}
			continue
		}
		if err := t.find(s, names); err != nil {
			return err
		}
	}
	return nil
}

func headError(s source.Source, want, got string) error {
	return &source.FormatError{Format: "csv", File: s.Name(), Offset: 0, Record: -1, Field: "header", Want: want, Got: got}
}

// Header is the names of a file's columns: those of its first row, or their numbers with
// Options.NoHeader. The error is that of Open.
func Header(ctx context.Context, s source.Source, o Options) ([]string, error) {
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	return head(ctx, s, o)
}

func head(ctx context.Context, s source.Source, o Options) (names []string, err error) {
	f, err := s.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	_, text, err := newRows(f, o.Comma, o.MaxLine).next(ctx)
	if err == io.EOF {
		return nil, headError(s, "a row", "an empty file")
	}
	if err != nil {
		return nil, err
	}
	row := cells{text: text, comma: o.Comma}
	for cell, ok := row.next(); ok; cell, ok = row.next() {
		name := string(cell)
		if o.NoHeader {
			name = strconv.Itoa(len(names))
		}
		names = append(names, name)
	}
	return names, nil
}

// find says for each cell which elements it is for.
func (t *table) find(s source.Source, names []string) error {
	t.names, t.targets = names, make([][]target, len(names))
	for i := range t.columns {
		c := &t.columns[i]
		from := c.From
		if from == "" {
			from = c.Name
		}
		at, n := slices.Index(names, from), c.cells()
		switch {
		case at < 0:
			return headError(s, fmt.Sprintf("a column %q", from), fmt.Sprintf("%q", names))
		case slices.Contains(names[at+1:], from):
			return headError(s, fmt.Sprintf("one column %q", from), "several")
		case n > len(names)-at:
			return headError(s, fmt.Sprintf("%d columns from %q on", n, from), fmt.Sprint(len(names)-at))
		}
		for e := range n {
			t.targets[at+e] = append(t.targets[at+e], target{i, e})
		}
	}
	return nil
}

// encode writes a row's cells to a sample.
func (t *table) encode(_ context.Context, text []byte, row *loader.Row) error {
	for i := range t.columns {
		if t.columns[i].cells() == 0 {
			row.Bytes(t.columns[i].Name)
		}
	}
	scratch := t.scratch.Of(row)
	r := cells{text: text, comma: t.comma, scratch: *scratch}
	n := 0
	for cell, ok := r.next(); ok; cell, ok = r.next() {
		if n < len(t.targets) {
			for _, to := range t.targets[n] {
				if err := t.columns[to.column].write(row, to.element, cell); err != nil {
					return err
				}
			}
		}
		n++
	}
	*scratch = r.scratch
	if n != len(t.targets) {
		return &source.FormatError{Format: "csv", Offset: -1, Want: fmt.Sprintf("%d cells, as in the first row", len(t.targets)), Got: fmt.Sprint(n)}
	}
	return nil
}

// write writes a cell to an element of the field, or to all of it if it is text.
func (c *Column) write(row *loader.Row, element int, cell []byte) error {
	to := row.Bytes(c.Name)
	if c.textual() {
		if len(cell) > len(to) {
			return c.wrong(fmt.Sprintf("a text of at most %d bytes", len(to)), cell)
		}
		copy(to, cell)
		return row.SetLen(c.Name, len(cell))
	}
	width := c.DType.Size()
	to = to[element*width:][:width]
	if len(c.Categories) > 0 {
		return c.category(to, cell)
	}
	number := bytes.Trim(cell, " \t")
	if len(number) == 0 {
		number = []byte(c.Empty)
	}
	if want := parse.Element(to, c.DType, number); want != "" {
		return c.wrong(want, cell)
	}
	return nil
}

func (c *Column) category(to, cell []byte) error {
	for i := range c.Categories {
		if string(cell) != c.Categories[i] {
			continue
		}
		var digits [20]byte
		if want := parse.Element(to, c.DType, strconv.AppendInt(digits[:0], int64(i), 10)); want != "" {
			return c.wrong(want+" for the number of a category", cell)
		}
		return nil
	}
	if len(cell) == 0 && c.Empty != "" {
		return c.category(to, []byte(c.Empty))
	}
	return c.wrong(fmt.Sprintf("one of the %d categories", len(c.Categories)), cell)
}

func (c *Column) wrong(want string, cell []byte) error {
	return &source.FormatError{Format: "csv", Offset: -1, Field: c.Name, Want: want, Got: parse.Shown(cell)}
}
