package parquet

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/leat-go/leat/dtype"
)

// isList reports whether values are lists of others.
func isList(a arrow.Array) bool {
	_, ok := a.(array.ListLike)
	return ok
}

// flatten finds the elements of the lists from up to to: the array that they are in, and where there.
// It appends the dimensions to dims. It is not ok if lists of one level differ in length, or any value
// is null.
func flatten(a arrow.Array, from, to int, dims []int) (leaf arrow.Array, first, last int, out []int, ok bool) {
	for {
		if e, is := a.(array.ExtensionArray); is {
			a = e.Storage()
			continue
		}
		dims = append(dims, to-from)
		if n := len(dims); n > 1 {
			lists := 1
			for _, d := range dims[:n-1] {
				lists *= d
			}
			if dims[n-1] = 0; lists > 0 {
				if (to-from)%lists != 0 {
					return nil, 0, 0, dims, false
				}
				dims[n-1] = (to - from) / lists
			}
		}
		for i := from; i < to && a.NullN() > 0; i++ {
			if a.IsNull(i) {
				return nil, 0, 0, dims, false
			}
		}
		lists, is := a.(array.ListLike)
		if !is {
			return a, from, to, dims, true
		}
		if from == to {
			// No list, so no elements: as many dimensions as there would be.
			a, from, to = lists.ListValues(), 0, 0
			continue
		}
		begin, end := lists.ValueOffsets(from)
		length := end - begin
		for i := from + 1; i < to; i++ {
			b, e := lists.ValueOffsets(i)
			if b != end || e-b != length {
				return nil, 0, 0, dims, false
			}
			end = e
		}
		values := lists.ListValues()
		if begin < 0 || end < begin || end > int64(values.Len()) {
			return nil, 0, 0, dims, false
		}
		a, from, to = values, int(begin), int(end)
	}
}

// widths are the types of numbers that lie one behind the other.
var widths = map[arrow.Type]dtype.Type{
	arrow.UINT8: dtype.Uint8, arrow.INT8: dtype.Int8, arrow.UINT16: dtype.Uint16, arrow.INT16: dtype.Int16,
	arrow.UINT32: dtype.Uint32, arrow.INT32: dtype.Int32, arrow.UINT64: dtype.Uint64, arrow.INT64: dtype.Int64,
	arrow.FLOAT16: dtype.Float16, arrow.FLOAT32: dtype.Float32, arrow.FLOAT64: dtype.Float64,
	arrow.DATE32: dtype.Int32, arrow.DATE64: dtype.Int64, arrow.TIME32: dtype.Int32, arrow.TIME64: dtype.Int64,
	arrow.TIMESTAMP: dtype.Int64, arrow.DURATION: dtype.Int64,
}

// numbers are the bytes of the elements from up to to. It is not ok if they are no numbers.
func numbers(a arrow.Array, from, to int) (t dtype.Type, data []byte, ok bool) {
	if b, is := a.(*array.Boolean); is {
		data = make([]byte, to-from) // they are bits there
		for i := range data {
			if b.Value(from + i) {
				data[i] = 1
			}
		}
		return dtype.Bool, data, true
	}
	if t, ok = widths[a.DataType().ID()]; !ok {
		return dtype.Invalid, nil, false
	}
	d := a.Data()
	if from == to {
		return t, nil, true
	}
	from, to = from+d.Offset(), to+d.Offset()
	return t, d.Buffers()[1].Bytes()[from*t.Size() : to*t.Size()], true
}
