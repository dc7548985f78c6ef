package mds

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/convert"
	"github.com/leat-go/leat/loader/source"
)

// Sample is a sample as it is stored.
type Sample struct {
	// Origin is where it lies: the shard, the offset, and its number there.
	Origin loader.Origin

	columns []Column
	bytes   []byte
	values  [][]byte
	dims    []int // scratch
}

// cut finds the columns in the sample's bytes.
func (s *Sample) cut() error {
	sizes, variable := s.bytes, 0
	for i := range s.columns {
		if s.columns[i].size < 0 {
			variable++
		}
	}
	if len(sizes) < 4*variable {
		return s.failure("", fmt.Sprintf("the sizes of %d columns", variable), fmt.Sprintf("%d bytes", len(sizes)), nil)
	}
	s.values = s.values[:0]
	rest := s.bytes[4*variable:]
	for i := range s.columns {
		c := &s.columns[i]
		size := int64(c.size)
		if size < 0 {
			size, sizes = int64(binary.LittleEndian.Uint32(sizes)), sizes[4:]
		}
		if size > int64(len(rest)) {
			return s.failure(c.Name, fmt.Sprintf("%d bytes", size), fmt.Sprintf("%d to the end of the sample", len(rest)), nil)
		}
		s.values, rest = append(s.values, rest[:size:size]), rest[size:]
	}
	if len(rest) > 0 {
		return s.failure("", "the end of the sample", fmt.Sprintf("%d bytes more", len(rest)), nil)
	}
	return nil
}

// find is the number of a column.
func (s *Sample) find(name string) (int, error) {
	for i := range s.columns {
		if s.columns[i].Name == name {
			if s.columns[i].kind == asPickle {
				return 0, s.failure(name, "an encoding that holds data alone", "a pickle, which is a program", nil)
			}
			return i, nil
		}
	}
	var names []string
	for i := range s.columns {
		names = append(names, s.columns[i].Name)
	}
	return 0, s.failure(name, "a column of that name", "columns "+strings.Join(names, ", "), nil)
}

// Get is the bytes of a column as they are stored: text, a JPEG file, a little-endian number. They
// are as long valid as the Sample. A column that there is not, and a pickle, are a
// *source.FormatError.
func (s *Sample) Get(column string) ([]byte, error) {
	i, err := s.find(column)
	if err != nil {
		return nil, err
	}
	return s.values[i], nil
}

// Write writes a column to the field of its name. Whole numbers must keep their value in the
// field's type; arrays must have its shape, or of a ragged field all dimensions but the first;
// text and what else are bytes go to uint8. The error is a *source.FormatError, a
// *loader.SizeError or a *loader.FieldError.
func (s *Sample) Write(row *loader.Row, column string) error {
	i, err := s.find(column)
	if err != nil {
		return err
	}
	c, data := &s.columns[i], s.values[i]
	switch c.kind {
	case asScalar, asArray:
		t, dims, elements, ok := c.values(data, s.dims[:0])
		if !ok {
			return s.failure(column, "an array in the encoding "+c.Encoding, fmt.Sprintf("% .16x", data), nil)
		}
		if c.shape == nil {
			s.dims = dims
		}
		if at, ok := row.Layout().Lookup(column); ok {
			if f := &row.Layout().Fields()[at]; !sameShape(f, dims) {
				return s.failure(column, f.Field.String(), describe(t, dims), nil)
			}
		}
		err = convert.Write(row, column, t, elements)
	case asInt:
		n, wrong := strconv.ParseInt(string(data), 10, 64)
		if wrong != nil {
			return s.failure(column, "a whole number of 64 bits", fmt.Sprintf("%.40q", data), wrong)
		}
		err = convert.Write(row, column, dtype.Int64, dtype.Bytes([]int64{n}))
	case asFloat:
		x, wrong := strconv.ParseFloat(string(data), 64)
		if wrong != nil {
			return s.failure(column, "a number", fmt.Sprintf("%.40q", data), wrong)
		}
		err = convert.Write(row, column, dtype.Float64, dtype.Bytes([]float64{x}))
	default:
		err = loader.Write(row, column, data...)
	}
	if unfit, ok := err.(*convert.Error); ok {
		return s.failure(column, unfit.Want, unfit.Got, nil)
	}
	return err
}

func (s *Sample) failure(field, want, got string, err error) error {
	return &source.FormatError{
		Format: "mds", File: s.Origin.File, Offset: s.Origin.Offset, Record: s.Origin.Record,
		Field: field, Want: want, Got: got, Err: err,
	}
}
