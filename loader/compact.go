package loader

import (
	"encoding/binary"

	"github.com/leat-go/leat/dtype"
)

// The types of the fields that are added for a ragged one.
const (
	lengthType = dtype.Int32
	maskType   = dtype.Uint8
)

// A worker can't know how long a batch's rows will be: that depends on its longest sample,
// which another one reads. So workers write each row where it would lie if all were as long
// as they may be, and who is done with the last row moves them together. That touches the
// bytes in use and no others: a batch that is copied in 60 µs takes about as long to
// compact, on one of the workers while the others read the next batches.

// compact brings the ragged fields of a batch of that many rows into the form in which it is
// delivered, and fills the fields that are added for them. lengths has the samples' lengths:
// for each row one of every ragged field. It writes into extents, by field, what
// Filled.Extent tells, and returns how many bytes pad rows to the length of others.
func (l *Layout) compact(mem []byte, rows int, lengths []int32, extents []int) (padding int64) {
	each := len(l.ragged)
	for i, field := range l.ragged {
		f := &l.fields[field]
		of := lengthsOf{lengths[:rows*each], i, each}
		if f.form == packed {
			extents[field] = f.pack(mem, of)
		} else {
			extents[field] = f.pad(mem, of)
			for row := range rows {
				padding += int64(extents[field]-of.at(row)) * f.element
			}
		}
	}
	for i := l.written; i < len(l.fields); i++ {
		f := &l.fields[i]
		of := lengthsOf{lengths[:rows*each], l.fields[f.Of].ragged, each}
		switch f.form {
		case padded:
			extents[i] = extents[f.Of]
			f.fillMask(mem, of, extents[i])
		case offsets:
			f.fillOffsets(mem, of)
		default:
			f.fillLengths(mem, of)
		}
	}
	return padding
}

// lengthsOf are the lengths of one ragged field in those of all.
type lengthsOf struct {
	all         []int32
	first, each int
}

func (l lengthsOf) rows() int      { return len(l.all) / l.each }
func (l lengthsOf) at(row int) int { return int(l.all[row*l.each+l.first]) }

func (l lengthsOf) longest() (n int) {
	for row := range l.rows() {
		n = max(n, l.at(row))
	}
	return n
}

// pad moves the rows together, to the length that it returns, and fills up what each lacks.
// They move towards the front, so none is overwritten before it has moved.
func (f *FieldLayout) pad(mem []byte, lengths lengthsOf) (extent int) {
	extent = f.rounded(lengths.longest())
	element, _ := elementOf(f.DType, f.Ragged.Pad)
	bytes := int64(extent) * f.element
	for row := range lengths.rows() {
		from, to := f.Offset+int64(row)*f.RowBytes, f.Offset+int64(row)*bytes
		n := int64(lengths.at(row)) * f.element
		copy(mem[to:to+n], mem[from:from+n])
		fill(mem[to+n:to+bytes], element, f.DType.Size())
	}
	return extent
}

// pack moves the samples together, and returns how long they are in all.
func (f *FieldLayout) pack(mem []byte, lengths lengthsOf) (total int) {
	for row := range lengths.rows() {
		from, to := f.Offset+int64(row)*f.RowBytes, f.Offset+int64(total)*f.element
		n := int64(lengths.at(row)) * f.element
		copy(mem[to:to+n], mem[from:from+n])
		total += lengths.at(row)
	}
	return total
}

func (f *FieldLayout) fillMask(mem []byte, lengths lengthsOf, extent int) {
	for row := range lengths.rows() {
		at, n := f.Offset+int64(row)*int64(extent), int64(lengths.at(row))
		fill(mem[at:at+n], 1, 1)
		clear(mem[at+n : at+int64(extent)])
	}
}

func (f *FieldLayout) fillLengths(mem []byte, lengths lengthsOf) {
	for row := range lengths.rows() {
		binary.LittleEndian.PutUint32(mem[f.Offset+4*int64(row):], uint32(lengths.at(row)))
	}
}

func (f *FieldLayout) fillOffsets(mem []byte, lengths lengthsOf) {
	total := 0
	for row := range lengths.rows() {
		binary.LittleEndian.PutUint32(mem[f.Offset+4*int64(row):], uint32(total))
		total += lengths.at(row)
	}
	binary.LittleEndian.PutUint32(mem[f.Offset+4*int64(lengths.rows()):], uint32(total))
}

// fill fills b with an element of that many bytes, which divide b.
func fill(b []byte, element uint64, size int) {
	if element == 0 || len(b) == 0 {
		clear(b)
		return
	}
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], element)
	for n := copy(b, word[:size]); n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}
