package npy

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader/source"
)

// magic begins every .npy file.
const magic = "\x93NUMPY"

// mostHeader is the longest header that is read, in bytes. NumPy's own reader refuses more
// than 10,000 unless it is told to trust the file.
const mostHeader = 1 << 20

// Header is what an array's file says of it.
type Header struct {
	// Descr is the type of the elements as NumPy writes it: <f4.
	Descr string
	// DType is that type, whatever its order of bytes.
	DType dtype.Type
	// BigEndian is the order of the bytes of an element.
	BigEndian bool
	// Fortran is set where the first dimension changes fastest.
	Fortran bool
	// Shape has the dimensions, none for a single element.
	Shape []int
	// Offset is where in the file the elements begin, Bytes how many bytes they have.
	Offset, Bytes int64
}

// ReadHeader reads the header of a .npy file, and makes sure that the file has exactly the
// elements that it says. It returns a *source.FormatError if not, or if an array has elements
// that Leat has no type for, and a *source.Error if the file can't be read.
func ReadHeader(ctx context.Context, f source.File, o Options) (Header, error) {
	return file{f, 0, f.Size(), ""}.header(ctx, o)
}

// file is a .npy file, which may be a part of another: an archive's array that is stored.
type file struct {
	source.File
	base, size int64
	entry      string
}

// wrong is an error at an offset from the base.
func (f file) wrong(at int64, want, got string) *source.FormatError {
	return &source.FormatError{Format: "npy", File: f.Name(), Offset: f.base + at, Record: -1, Field: f.entry, Want: want, Got: got}
}

// fixed reads so many bytes at an offset from the base.
func (f file) fixed(ctx context.Context, at, n int64, what string) ([]byte, error) {
	if n > f.size-at {
		return nil, f.wrong(f.size, what, "the end of the file")
	}
	b := make([]byte, n)
	return b, source.ReadFull(ctx, f.File, b, f.base+at)
}

// header reads the magic number, the version, the header's length and the header.
func (f file) header(ctx context.Context, o Options) (h Header, err error) {
	b, err := f.fixed(ctx, 0, 10, "a .npy file of 10 bytes or more")
	if err != nil {
		return h, err
	}
	if string(b[:6]) != magic {
		return h, f.wrong(0, fmt.Sprintf("%q", magic), fmt.Sprintf("%q", b[:6]))
	}
	begin, length := int64(10), int64(binary.LittleEndian.Uint16(b[8:]))
	switch version := [2]byte(b[6:]); version {
	case [2]byte{1, 0}:
	case [2]byte{2, 0}, [2]byte{3, 0}:
		if b, err = f.fixed(ctx, 8, 4, "the header's length"); err != nil {
			return h, err
		}
		begin, length = 12, int64(binary.LittleEndian.Uint32(b))
	default:
		return h, f.wrong(6, "version 1.0, 2.0 or 3.0", fmt.Sprintf("%d.%d", version[0], version[1]))
	}
	if length > mostHeader {
		return h, f.wrong(8, fmt.Sprintf("a header of at most %d bytes", mostHeader), fmt.Sprint(length))
	}
	text, err := f.fixed(ctx, begin, length, fmt.Sprintf("a header of %d bytes", length))
	if err != nil {
		return h, err
	}
	h, err = parse(string(text), o)
	var m *mistake
	if errors.As(err, &m) {
		return h, f.wrong(begin+int64(m.at), m.want, m.got)
	}
	h.Offset = begin + length
	return h, f.complete(&h)
}

// complete makes sure that the file has all elements and nothing else.
func (f file) complete(h *Header) error {
	have := f.size - h.Offset
	size, ok := product(h.Shape, h.DType.Size())
	h.Bytes = size
	what := fmt.Sprintf("the elements of %s%v", h.Descr, h.Shape)
	if !ok {
		return f.wrong(h.Offset, what+", which are no more than fit in memory", fmt.Sprintf("%d bytes", have))
	}
	switch {
	case have < size:
		return f.wrong(f.size, fmt.Sprintf("%d bytes of %s", size, what), fmt.Sprintf("the end of the file behind %d", have))
	case have > size:
		return f.wrong(h.Offset+size, "the end of the file behind "+what, fmt.Sprintf("%d bytes more", have-size))
	}
	return nil
}

// product is the size of an array in bytes. It is not ok if an int64 doesn't hold it.
func product(shape []int, width int) (size int64, ok bool) {
	n, ok := uint64(width), true
	for _, dim := range shape {
		if dim == 0 {
			return 0, true
		}
		high, low := bits.Mul64(n, uint64(dim))
		n, ok = low, ok && high == 0 && low <= math.MaxInt64
	}
	return int64(n), ok
}

// parse reads the header's text.
func parse(text string, o Options) (h Header, err error) {
	values, at, err := (&literal{text: text}).dictionary()
	if err != nil {
		return h, err
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if _, ok := values[key]; !ok {
			return h, &mistake{len(text), fmt.Sprintf("the key %q", key), "the end of the header"}
		}
	}
	if len(values) > 3 {
		return h, &mistake{0, "the keys descr, fortran_order and shape", fmt.Sprintf("%d keys", len(values))}
	}
	var ok bool
	if h.Fortran, ok = values["fortran_order"].(bool); !ok {
		return h, &mistake{at["fortran_order"], "fortran_order: True or False", fmt.Sprint(values["fortran_order"])}
	}
	if h.Shape, err = shape(values["shape"], at["shape"]); err != nil {
		return h, err
	}
	return h, h.elements(values["descr"], at["descr"], o)
}

// mostDims is NumPy's own limit.
const mostDims = 64

func shape(v any, at int) ([]int, error) {
	dims, ok := v.([]any)
	if !ok {
		return nil, &mistake{at, "shape: a tuple", fmt.Sprint(v)}
	}
	if len(dims) > mostDims {
		return nil, &mistake{at, fmt.Sprintf("at most %d dimensions", mostDims), fmt.Sprint(len(dims))}
	}
	shape := make([]int, len(dims))
	for i, dim := range dims {
		n, ok := dim.(int64)
		if !ok || n < 0 || n > math.MaxInt {
			return nil, &mistake{at, fmt.Sprintf("dimension %d of the shape: an integer of 0 to %d", i, math.MaxInt), fmt.Sprint(dim)}
		}
		shape[i] = int(n)
	}
	return shape, nil
}

// types are the element types by what descr says behind the order of bytes.
var types = map[string]dtype.Type{
	"b1": dtype.Bool, "u1": dtype.Uint8, "i1": dtype.Int8, "u2": dtype.Uint16, "i2": dtype.Int16,
	"u4": dtype.Uint32, "i4": dtype.Int32, "u8": dtype.Uint64, "i8": dtype.Int64,
	"f2": dtype.Float16, "f4": dtype.Float32, "f8": dtype.Float64,
}

// refused are the kinds of elements that are not read, and what they are.
var refused = map[byte]string{
	'O': "objects, which are pickled programs", 'U': "text", 'S': "text", 'a': "text",
	'M': "dates", 'm': "spans of time", 'c': "complex numbers", 'f': "floating-point numbers of this width",
	'V': "bytes of which only the width is known: if you know what they are, Options.Void says it",
}

// elements understands descr.
func (h *Header) elements(v any, at int, o Options) error {
	const want = "elements of a bool, an integer or a float of 16, 32 or 64 bits"
	descr, ok := v.(string)
	if !ok {
		got := fmt.Sprint(v)
		if _, list := v.([]any); list {
			got = "a structure, whose fields are arrays of their own when they are saved one by one"
		}
		return &mistake{at, want, got}
	}
	h.Descr = descr
	kind := strings.TrimLeft(descr, "<>|=")
	// "=" is the order of the machine that wrote it, which is little-endian wherever Leat runs.
	h.BigEndian = strings.HasPrefix(descr, ">")
	if len(descr)-len(kind) <= 1 {
		if h.DType = types[kind]; h.DType.Valid() {
			return nil
		}
		if o.Void.Valid() && kind == fmt.Sprintf("V%d", o.Void.Size()) {
			h.DType = o.Void
			return nil
		}
	}
	got := fmt.Sprintf("%q", descr)
	if kind != "" && refused[kind[0]] != "" {
		got += ": " + refused[kind[0]]
	}
	return &mistake{at, want, got}
}
