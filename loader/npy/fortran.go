package npy

import (
	"context"

	"github.com/leat-go/leat/loader/source"
)

// How much is turned into rows at a time: as many elements as the processor's cache has, of so
// many samples that a read is long enough for a disk.
const (
	tileElements = 1 << 18
	tileSamples  = 1 << 13
)

// rows are the elements of an array in Fortran order, row-major. In the file all samples have
// their first element one behind the other, then their second, whose indices count up from the
// second dimension on.
func (f file) rows(ctx context.Context, h Header) ([]byte, error) {
	t := turning{file: f, header: h, width: h.DType.Size(), samples: h.Shape[0], out: make([]byte, h.Bytes)}
	t.row = len(t.out) / t.width / t.samples
	some := min(tileSamples, t.samples)
	t.buffer = make([]byte, some*min(tileElements/some, t.row)*t.width)
	for from := 0; from < t.samples; from += tileSamples {
		n := min(tileSamples, t.samples-from)
		most := tileElements / some
		for first := 0; first < t.row; first += most {
			if err := t.tile(ctx, from, n, first, min(most, t.row-first)); err != nil {
				return nil, err
			}
		}
	}
	return t.out, nil
}

type turning struct {
	file
	header  Header
	width   int // of an element in bytes
	samples int
	row     int // elements of a sample
	out     []byte
	buffer  []byte
}

// tile turns the elements first to first+columns-1 of n samples.
func (t *turning) tile(ctx context.Context, from, n, first, columns int) error {
	at := func(column int) int64 {
		return t.base + t.header.Offset + (int64(column)*int64(t.samples)+int64(from))*int64(t.width)
	}
	if n == t.samples { // then the columns are one behind the other
		if err := source.ReadFull(ctx, t.File, t.buffer[:columns*n*t.width], at(first)); err != nil {
			return err
		}
	} else {
		for c := range columns {
			if err := source.ReadFull(ctx, t.File, t.buffer[c*n*t.width:(c+1)*n*t.width], at(first+c)); err != nil {
				return err
			}
		}
	}
	for c := range columns {
		to := (from*t.row + t.place(first+c)) * t.width
		for s := range n {
			copy(t.out[to:to+t.width], t.buffer[(c*n+s)*t.width:])
			to += t.row * t.width
		}
	}
	return nil
}

// place is the number in a row, row-major, of the element of that number in Fortran order.
func (t *turning) place(element int) (place int) {
	shape, stride := t.header.Shape[1:], t.row
	for _, dim := range shape { // the first of them counts fastest
		stride /= dim
		place += element % dim * stride
		element /= dim
	}
	return place
}
