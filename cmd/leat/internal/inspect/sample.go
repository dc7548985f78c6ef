package inspect

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/loader"
)

// A reader reads samples one by one, for one goroutine.
type reader struct {
	data    loader.Dataset
	fields  []loader.Field
	scratch *loader.Scratch
	outer   loader.Row
	row     *loader.Row
	numbers []float64
}

func newReader(data loader.Dataset, fields []loader.Field) (*reader, error) {
	scratch, err := loader.NewScratch(fields)
	if err != nil {
		return nil, err
	}
	return &reader{data: data, fields: fields, scratch: scratch}, nil
}

// read reads a sample, whose values are borrowed until the next one. A decoder that panics has
// found a sample that can't be read.
func (r *reader) read(ctx context.Context, index int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("reading it panics: %v", p)
		}
	}()
	r.row = r.scratch.Begin(&r.outer)
	if err := r.data.Read(ctx, index, r.row); err != nil {
		return err
	}
	return r.scratch.Written()
}

// values are the numbers of a field, as many as the sample has.
func (r *reader) values(f loader.Field) []float64 {
	r.numbers = r.numbers[:0]
	switch f.DType {
	case dtype.Bool:
		for _, b := range loader.Value[bool](r.row, f.Name) {
			var v float64
			if b {
				v = 1
			}
			r.numbers = append(r.numbers, v)
		}
	case dtype.Float16:
		for _, bits := range loader.Value[uint16](r.row, f.Name) {
			r.numbers = append(r.numbers, float64(kernels.FromFloat16(bits)))
		}
	case dtype.BFloat16:
		for _, bits := range loader.Value[uint16](r.row, f.Name) {
			r.numbers = append(r.numbers, float64(kernels.FromBFloat16(bits)))
		}
	case dtype.Uint8:
		r.numbers = widen(r.numbers, loader.Value[uint8](r.row, f.Name))
	case dtype.Int8:
		r.numbers = widen(r.numbers, loader.Value[int8](r.row, f.Name))
	case dtype.Uint16:
		r.numbers = widen(r.numbers, loader.Value[uint16](r.row, f.Name))
	case dtype.Int16:
		r.numbers = widen(r.numbers, loader.Value[int16](r.row, f.Name))
	case dtype.Uint32:
		r.numbers = widen(r.numbers, loader.Value[uint32](r.row, f.Name))
	case dtype.Int32:
		r.numbers = widen(r.numbers, loader.Value[int32](r.row, f.Name))
	case dtype.Uint64:
		r.numbers = widen(r.numbers, loader.Value[uint64](r.row, f.Name))
	case dtype.Int64:
		r.numbers = widen(r.numbers, loader.Value[int64](r.row, f.Name))
	case dtype.Float32:
		r.numbers = widen(r.numbers, loader.Value[float32](r.row, f.Name))
	case dtype.Float64:
		r.numbers = widen(r.numbers, loader.Value[float64](r.row, f.Name))
	}
	return r.numbers
}

func widen[T uint8 | int8 | uint16 | int16 | uint32 | int32 | uint64 | int64 | float32 | float64](to []float64, from []T) []float64 {
	for _, v := range from {
		to = append(to, float64(v))
	}
	return to
}

// isText reports whether a field is one of bytes of any number, which text is in.
func isText(f loader.Field) bool {
	return f.DType == dtype.Uint8 && f.Ragged != nil && len(f.Shape) == 1
}

// integer is the only number of a field of whole numbers.
func (r *reader) integer(f loader.Field) (n int64, ok bool) {
	if len(f.Shape) > 0 {
		return 0, false
	}
	switch f.DType {
	case dtype.Bool, dtype.Uint8, dtype.Int8, dtype.Int16, dtype.Int32, dtype.Uint16, dtype.Uint32:
		return int64(r.values(f)[0]), true
	case dtype.Int64:
		return loader.Value[int64](r.row, f.Name)[0], true
	case dtype.Uint64:
		n = int64(loader.Value[uint64](r.row, f.Name)[0])
		return n, n >= 0
	}
	return 0, false
}

// mostShown is how many characters of a value are shown, and how many numbers.
const (
	mostShown   = 64
	mostNumbers = 10
)

// text is a field's value in one line. names are what its numbers stand for.
func (r *reader) text(f loader.Field, names []string) string {
	if isText(f) {
		return quoted(loader.Value[uint8](r.row, f.Name))
	}
	if n, ok := r.integer(f); ok {
		if n >= 0 && n < int64(len(names)) {
			return fmt.Sprintf("%d (%s)", n, names[n])
		}
		return strconv.FormatInt(n, 10)
	}
	all := r.values(f)
	var b strings.Builder
	for i, v := range all {
		if i == mostNumbers {
			fmt.Fprintf(&b, " … %d in all", len(all))
			break
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(number(v))
	}
	return b.String()
}

// number is a number as people write it.
func number(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 5, 64)
}

// quoted is the beginning of a text, or of bytes that are none. Nothing in it moves the cursor
// of a terminal or changes its colours.
func quoted(b []byte) string {
	text, cut := string(b), ""
	if len(text) > mostShown {
		text = text[:mostShown]
		for !utf8.ValidString(text) && len(text) > mostShown-utf8.UTFMax {
			text = text[:len(text)-1]
		}
		cut = fmt.Sprintf(" … %d bytes", len(b))
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(c rune) bool { return unicode.IsControl(c) && !unicode.IsSpace(c) }) {
		return fmt.Sprintf("% .16x", b[:min(len(b), 16)]) + fmt.Sprintf(" … %d bytes", len(b))
	}
	return strconv.Quote(text) + cut
}
