package csv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/leat-go/leat/loader/internal/parse"
	"github.com/leat-go/leat/loader/internal/unpack"
	"github.com/leat-go/leat/loader/source"
)

// byteOrderMark begins the files of some programs. It is no part of the first cell.
const byteOrderMark = "\xef\xbb\xbf"

// rows goes through the rows of a file.
type rows struct {
	file  source.File
	lines *source.Reader
	comma byte
	most  int
	count int64 // of those before
	whole []byte
}

func newRows(f source.File, comma byte, most int) *rows {
	return &rows{file: f, lines: source.NewReader(f, 0, source.Options{MaxLine: most}), comma: comma, most: most}
}

// next is the next row that is not empty, without its end, and where it begins. The row is
// borrowed until the next call. Behind the last the error is io.EOF.
func (r *rows) next(ctx context.Context) (offset int64, text []byte, err error) {
	for {
		offset = r.lines.Offset()
		text, err := r.lines.Line(ctx)
		if err != nil {
			return offset, nil, r.failed(offset, err)
		}
		if kind := unpack.Sniff(text); offset == 0 && kind != unpack.Plain {
			return offset, nil, r.wrong(0, "text", fmt.Sprintf("a %s file, which has no rows by number: decompress it", kind))
		}
		if offset == 0 && bytes.HasPrefix(text, []byte(byteOrderMark)) {
			offset, text = int64(len(byteOrderMark)), text[len(byteOrderMark):]
		}
		if len(text) == 0 {
			continue
		}
		var s state
		if bad := s.take(text, r.comma); bad >= 0 {
			return offset, nil, r.wrong(offset+int64(bad), wantQuote, parse.Shown(text[bad:min(bad+10, len(text))]))
		}
		if s == quoted {
			text, err = r.goOn(ctx, offset, s)
		}
		r.count++
		return offset, text, err
	}
}

const wantQuote = "quotes around a whole cell, and doubled in it"

// goOn reads on to the end of a row whose first line ends inside of quotes.
func (r *rows) goOn(ctx context.Context, begin int64, s state) ([]byte, error) {
	for s == quoted {
		at := r.lines.Offset()
		line, err := r.lines.Line(ctx)
		var long *source.LineError
		switch {
		case err == io.EOF:
			return nil, r.wrong(begin, "a row whose quotes are closed", "the end of the file")
		case errors.As(err, &long) || err == nil && at+int64(len(line))-begin > int64(r.most):
			return nil, r.wrong(begin, fmt.Sprintf("a row of at most the %d bytes of MaxLine, whose quotes are closed", r.most), "more")
		case err != nil:
			return nil, err
		}
		if bad := s.take(line, r.comma); bad >= 0 {
			return nil, r.wrong(at+int64(bad), wantQuote, parse.Shown(line[bad:min(bad+10, len(line))]))
		}
		if s != quoted { // line ends within a cell belong to it, so all is read again as it is
			n := int(at - begin + int64(len(line)))
			if cap(r.whole) < n {
				r.whole = make([]byte, n)
			}
			r.whole = r.whole[:n]
			return r.whole, source.ReadFull(ctx, r.file, r.whole, begin)
		}
	}
	return nil, nil
}

func (r *rows) failed(offset int64, err error) error {
	var long *source.LineError
	if errors.As(err, &long) {
		return r.wrong(offset, fmt.Sprintf("a row of at most the %d bytes of MaxLine", r.most), "more")
	}
	return err
}

func (r *rows) wrong(at int64, want, got string) error {
	return &source.FormatError{Format: "csv", File: r.file.Name(), Offset: at, Record: r.count, Want: want, Got: got}
}

// state is where in a row one stands.
type state int

const (
	fresh  state = iota // at the beginning of a cell
	plain               // in a cell without quotes
	quoted              // in one with quotes
	closed              // behind a quote in such a cell: its end, or the first of two
)

// take goes through a piece of a row. It returns the byte at which that is none, or -1.
func (s *state) take(text []byte, comma byte) int {
	if *s == fresh && bytes.IndexByte(text, '"') < 0 { // as most are
		return -1
	}
	for i, c := range text {
		switch {
		case *s == quoted:
			if c == '"' {
				*s = closed
			}
		case c == comma:
			*s = fresh
		case c == '"' && *s == fresh, c == '"' && *s == closed:
			*s = quoted
		case c == '"' || *s == closed:
			return i
		default:
			*s = plain
		}
	}
	return -1
}

// cells goes through the cells of a row that take has accepted.
type cells struct {
	text    []byte // what is left
	comma   byte
	done    bool
	scratch []byte
}

// next is the next cell, without quotes. It is borrowed until the next call.
func (c *cells) next() (cell []byte, ok bool) {
	if c.done {
		return nil, false
	}
	if len(c.text) > 0 && c.text[0] == '"' {
		return c.quotedCell(), true
	}
	n := bytes.IndexByte(c.text, c.comma)
	if n < 0 {
		c.done = true
		return c.text, true
	}
	cell, c.text = c.text[:n], c.text[n+1:]
	return cell, true
}

func (c *cells) quotedCell() []byte {
	rest, doubled := c.text[1:], false
	for i := 0; i < len(rest); i++ {
		if rest[i] != '"' {
			continue
		}
		if i+1 < len(rest) && rest[i+1] == '"' {
			doubled = true
			i++
			continue
		}
		cell := rest[:i]
		if i+1 < len(rest) {
			c.text = rest[i+2:] // behind the comma
		} else {
			c.done = true
		}
		if doubled {
			cell = c.single(cell)
		}
		return cell
	}
	c.done = true // a row that was not accepted
	return rest
}

// single takes one of each two quotes away.
func (c *cells) single(cell []byte) []byte {
	c.scratch = c.scratch[:0]
	for len(cell) > 0 {
		n := bytes.IndexByte(cell, '"') + 1
		if n == 0 {
			return append(c.scratch, cell...)
		}
		c.scratch = append(c.scratch, cell[:n]...)
		cell = cell[n+1:]
	}
	return c.scratch
}
