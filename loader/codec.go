package loader

import (
	"encoding/binary"
	"fmt"
)

// Codec turns a sample of some fields into bytes and back, for datasets that keep samples:
// the lengths of ragged fields, 4 bytes each, and behind them the bytes of each field that
// count, in the order of the fields and without gaps. It does not change, and may be shared.
type Codec struct {
	layout *Layout
	most   int
}

// NewCodec makes a Codec for samples of the fields. The error is that of NewLayout.
func NewCodec(fields []Field) (*Codec, error) {
	layout, err := NewLayout(fields, 1)
	if err != nil {
		return nil, err
	}
	c := &Codec{layout: layout, most: 4 * len(layout.ragged)}
	for _, f := range layout.Written() {
		c.most += int(f.RowBytes) // less than the layout's size, which fits an int
	}
	return c, nil
}

// Most is the largest number of bytes of a sample; without ragged fields each has as many.
func (c *Codec) Most() int { return c.most }

// Append appends the sample in a row to dst. The row has all fields of the Codec, written,
// and perhaps others.
func (c *Codec) Append(dst []byte, row *Row) []byte {
	for _, field := range c.layout.ragged {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(row.lengths[c.ragged(row, field)]))
	}
	for i := range c.layout.Written() {
		dst = append(dst, row.used(row.field(c.layout.fields[i].Name))...)
	}
	return dst
}

// Load writes a sample that Append has made to a row that has all fields of the Codec. It
// returns an error, and leaves the row unwritten, if b is none.
func (c *Codec) Load(row *Row, b []byte) error {
	lengths := b[:min(4*len(c.layout.ragged), len(b))]
	want := int64(len(lengths))
	for i := range c.layout.Written() {
		want += c.layout.fields[i].RowBytes
	}
	for at, field := range c.layout.ragged {
		f := &c.layout.fields[field]
		if len(lengths) < 4*(at+1) {
			return c.damaged(b)
		}
		n := binary.LittleEndian.Uint32(lengths[4*at:])
		if int64(n) > int64(f.Shape[0]) {
			return c.damaged(b)
		}
		want -= f.RowBytes - int64(n)*f.element
	}
	if want != int64(len(b)) {
		return c.damaged(b)
	}
	for at, field := range c.layout.ragged {
		row.lengths[c.ragged(row, field)] = int32(binary.LittleEndian.Uint32(lengths[4*at:]))
	}
	b = b[len(lengths):]
	for i := range c.layout.Written() {
		field := row.field(c.layout.fields[i].Name)
		row.asked.add(field)
		b = b[copy(row.used(field), b):]
	}
	return nil
}

func (c *Codec) damaged(b []byte) error {
	return fmt.Errorf("loader: %d bytes that are no sample of %s", len(b), listed(c.layout.names()))
}

// ragged is the number of a ragged field among those of a row.
func (c *Codec) ragged(row *Row, field int) int {
	return row.layout.fields[row.field(c.layout.fields[field].Name)].ragged
}

// field is the number of the field of that name, which there must be.
func (r *Row) field(name string) int {
	i := r.find(name)
	if i < 0 {
		panic(&FieldError{Name: name, Fields: r.layout.names()})
	}
	return i
}
