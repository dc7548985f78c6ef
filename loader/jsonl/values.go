package jsonl

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/parse"
	"github.com/leat-go/leat/loader/source"
)

// values goes through a text that is valid JSON.
type values struct {
	text []byte
	at   int
}

// wrong is the error for the value at the place reached.
func (v *values) wrong(field, want string) error {
	begin := v.at
	v.skip()
	return &source.FormatError{Format: "jsonl", Offset: int64(begin), Field: field, Want: want, Got: parse.Shown(v.text[begin:v.at])}
}

func (v *values) space() {
	for v.at < len(v.text) && (v.text[v.at] == ' ' || v.text[v.at] == '\t' || v.text[v.at] == '\r' || v.text[v.at] == '\n') {
		v.at++
	}
}

// more goes to the next member of an object or an array. It reports false, and passes over the
// end, if there is none.
func (v *values) more(end byte) bool {
	v.space()
	if v.text[v.at] == ',' {
		v.at++
		v.space()
	}
	if v.text[v.at] != end {
		return true
	}
	v.at++
	return false
}

// string passes over a string, and returns what stands between its quotes.
func (v *values) string() []byte {
	v.at++
	begin := v.at
	for v.text[v.at] != '"' {
		if v.text[v.at] == '\\' {
			v.at++
		}
		v.at++
	}
	v.at++
	return v.text[begin : v.at-1]
}

// scalar passes over a number, true, false or null.
func (v *values) scalar() []byte {
	begin := v.at
	for v.at < len(v.text) && strings.IndexByte(",]} \t\r\n", v.text[v.at]) < 0 {
		v.at++
	}
	return v.text[begin:v.at]
}

// skip passes over a value. Brackets in strings are no brackets.
func (v *values) skip() {
	for deep := 0; v.at < len(v.text); {
		switch v.text[v.at] {
		case '"':
			v.string()
		case '[', '{':
			deep++
			v.at++
		case ']', '}':
			deep--
			v.at++
		case ',', ':', ' ', '\t', '\r', '\n':
			v.at++
			continue
		default:
			v.scalar()
		}
		if deep <= 0 {
			return
		}
	}
}

// write writes a value to its field.
func (v *values) write(f *loader.Field, row *loader.Row) error {
	to := row.Bytes(f.Name)
	if v.text[v.at] == '"' && textual(f) {
		return v.writeText(f, row, to)
	}
	n, _, err := v.elements(f, 0, to)
	if err != nil || f.Ragged == nil {
		return err
	}
	return row.SetLen(f.Name, n)
}

// writeText writes the bytes of a string.
func (v *values) writeText(f *loader.Field, row *loader.Row, to []byte) error {
	begin := v.at
	s := v.string()
	if bytes.IndexByte(s, '\\') >= 0 || !utf8.Valid(s) {
		s = unescaped(s)
	}
	if len(s) > len(to) {
		v.at = begin
		return v.wrong(f.Name, fmt.Sprintf("a string of at most %d bytes", len(to)))
	}
	copy(to, s)
	return row.SetLen(f.Name, len(s))
}

// elements writes a value of the field's shape from a dimension on to the beginning of to. It
// returns how many there are along that dimension, and the rest of to.
func (v *values) elements(f *loader.Field, dim int, to []byte) (n int, rest []byte, err error) {
	if dim == len(f.Shape) {
		rest, err = v.element(f, to)
		return 1, rest, err
	}
	begin, most := v.at, f.Shape[dim]
	ragged := f.Ragged != nil && dim == 0
	want := func() error {
		v.at = begin
		if ragged {
			return v.wrong(f.Name, fmt.Sprintf("an array of at most %d elements", most))
		}
		return v.wrong(f.Name, fmt.Sprintf("an array of %d elements", most))
	}
	if v.text[v.at] != '[' {
		return 0, nil, want()
	}
	for v.at++; v.more(']'); n++ {
		if n == most {
			return 0, nil, want()
		}
		if _, to, err = v.elements(f, dim+1, to); err != nil {
			return 0, nil, err
		}
	}
	if n < most && !ragged {
		return 0, nil, want()
	}
	return n, to, nil
}

// element writes a number or a bool.
func (v *values) element(f *loader.Field, to []byte) (rest []byte, err error) {
	begin, width := v.at, f.DType.Size()
	if c := v.text[v.at]; c == '"' || c == '[' || c == '{' {
		return nil, v.wrong(f.Name, "a number, true or false")
	}
	if want := parse.Element(to[:width], f.DType, v.scalar()); want != "" {
		v.at = begin
		return nil, v.wrong(f.Name, want)
	}
	return to[width:], nil
}
