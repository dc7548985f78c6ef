package safetensors

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/bits"
	"slices"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader/source"
)

// A file has the header's length as 64 bits, little-endian, the header as a JSON object that
// spaces may follow, and the elements.
const (
	lengthBytes = 8
	mostHeader  = 100_000_000 // the format's own limit
)

// types are the element types by their names. There are others.
var types = map[string]dtype.Type{
	"BOOL": dtype.Bool, "U8": dtype.Uint8, "I8": dtype.Int8, "U16": dtype.Uint16, "I16": dtype.Int16,
	"U32": dtype.Uint32, "I32": dtype.Int32, "U64": dtype.Uint64, "I64": dtype.Int64,
	"F16": dtype.Float16, "BF16": dtype.BFloat16, "F32": dtype.Float32, "F64": dtype.Float64,
}

// Header is what a file says of its tensors.
type Header struct {
	// Tensors are in the order of the header.
	Tensors []Tensor
	// Metadata is whatever the writer has put there, nil if it is nothing.
	Metadata map[string]string

	data int64  // where the elements begin
	sum  uint32 // of the header's text
}

// Tensor is an entry of a Header.
type Tensor struct {
	Name string
	// Kind is the type of the elements as the format writes it: F32. DType is that type, 0 for
	// those that Leat has none for.
	Kind  string
	DType dtype.Type
	// Shape has the dimensions, none for a single element.
	Shape []int
	// Offset is where in the file the elements begin, Bytes how many bytes they have.
	Offset, Bytes int64
}

// wrong is an error at an offset of the file.
func wrong(f source.File, at int64, field, want, got string) *source.FormatError {
	return &source.FormatError{Format: "safetensors", File: f.Name(), Offset: at, Record: -1, Field: field, Want: want, Got: got}
}

// ReadHeader reads the header of a file and makes sure that the tensors fill the rest of it. The
// error is a *source.FormatError if not, and a *source.Error if the file can't be read.
func ReadHeader(ctx context.Context, f source.File) (h Header, err error) {
	if f.Size() < lengthBytes {
		return h, wrong(f, f.Size(), "", "8 bytes with the header's length", "the end of the file")
	}
	var b [lengthBytes]byte
	if err := source.ReadFull(ctx, f, b[:], 0); err != nil {
		return h, err
	}
	length := binary.LittleEndian.Uint64(b[:])
	switch {
	case length > mostHeader:
		return h, wrong(f, 0, "", fmt.Sprintf("a header of at most %d bytes", mostHeader), fmt.Sprint(length))
	case int64(length) > f.Size()-lengthBytes:
		return h, wrong(f, f.Size(), "", fmt.Sprintf("a header of %d bytes", length), "the end of the file")
	}
	text := make([]byte, length)
	if err := source.ReadFull(ctx, f, text, lengthBytes); err != nil {
		return h, err
	}
	if length == 0 || text[0] != '{' {
		return h, wrong(f, lengthBytes, "", `an object that begins with "{"`, fmt.Sprintf("%q", text[:min(1, length)]))
	}
	h.data, h.sum = lengthBytes+int64(length), crc32.ChecksumIEEE(text)
	if err := h.parse(f, text); err != nil {
		return h, err
	}
	return h, h.filled(f)
}

// parse reads the header's text.
func (h *Header) parse(f source.File, text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err := object(d, func(name string) error {
		if name == "__metadata__" {
			h.Metadata = make(map[string]string)
			return object(d, func(key string) error {
				var value string
				err := d.Decode(&value)
				h.Metadata[key] = value
				return err
			})
		}
		t, err := readTensor(d, name)
		t.Offset += h.data
		h.Tensors = append(h.Tensors, t)
		return err
	})
	at := lengthBytes + d.InputOffset()
	var m *mistake
	switch {
	case errors.As(err, &m):
		return wrong(f, at, m.field, m.want, m.got)
	case err != nil:
		bad := wrong(f, at, "", "a header of JSON, as the format has it", err.Error())
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			bad.Got = "the end of the header"
		}
		bad.Err = err
		return bad
	}
	if rest := bytes.TrimRight(text[d.InputOffset():], " "); len(rest) > 0 {
		return wrong(f, at, "", "spaces behind the header's object", fmt.Sprintf("%q", rest[:min(len(rest), 20)]))
	}
	return nil
}

// mistake is JSON that is not a header's.
type mistake struct{ field, want, got string }

func (m *mistake) Error() string { return fmt.Sprintf("%s: want %s, got %s", m.field, m.want, m.got) }

// object reads an object, for each name of which value reads what follows. Names come once.
func object(d *json.Decoder, value func(name string) error) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	if token != json.Delim('{') {
		got := fmt.Sprint(token)
		if text, ok := token.(string); ok {
			got = fmt.Sprintf("%q", text)
		}
		return &mistake{"", "an object", got}
	}
	seen := make(map[string]bool)
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		if seen[name] {
			return &mistake{name, "each name once", fmt.Sprintf("%q again", name)}
		}
		seen[name] = true
		if err := value(name); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// readTensor reads what stands behind a tensor's name. The Offset is one behind the header.
func readTensor(d *json.Decoder, name string) (t Tensor, err error) {
	t.Name = name
	var shape, offsets []uint64
	err = object(d, func(key string) error {
		switch key {
		case "dtype":
			return d.Decode(&t.Kind)
		case "shape":
			return d.Decode(&shape)
		case "data_offsets":
			return d.Decode(&offsets)
		}
		return &mistake{name, "dtype, shape and data_offsets", fmt.Sprintf("%q", key)}
	})
	if err != nil {
		return t, err
	}
	if len(offsets) != 2 || offsets[0] > offsets[1] || offsets[1] > math.MaxInt64/2 {
		return t, &mistake{name, "data_offsets: a beginning and an end", fmt.Sprint(offsets)}
	}
	if t.Kind == "" || shape == nil {
		return t, &mistake{name, "dtype, shape and data_offsets", "less"}
	}
	t.DType, t.Offset, t.Bytes = types[t.Kind], int64(offsets[0]), int64(offsets[1]-offsets[0])
	n := uint64(t.DType.Size()) // 0 for other types, which may have several elements in a byte
	for _, dim := range shape {
		high, low := bits.Mul64(n, dim)
		if high != 0 || dim > math.MaxInt {
			return t, &mistake{name, "a shape of no more elements than there can be", fmt.Sprint(shape)}
		}
		n = low
		t.Shape = append(t.Shape, int(dim))
	}
	if t.DType.Valid() && n != uint64(t.Bytes) {
		return t, &mistake{name, fmt.Sprintf("%d bytes for %s%v", n, t.Kind, shape), fmt.Sprint(t.Bytes)}
	}
	return t, nil
}

// filled makes sure that the tensors lie one behind the other from the header to the end.
func (h *Header) filled(f source.File) error {
	sorted := slices.SortedFunc(slices.Values(h.Tensors), func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Bytes, b.Bytes))
	})
	at := h.data
	for _, t := range sorted {
		if t.Offset != at {
			return wrong(f, min(at, f.Size()), t.Name, fmt.Sprintf("its first byte at %d, where the tensor before it ends", at-h.data), fmt.Sprint(t.Offset-h.data))
		}
		at += t.Bytes
	}
	switch {
	case at > f.Size():
		return wrong(f, f.Size(), sorted[len(sorted)-1].Name, fmt.Sprintf("%d bytes of elements", at-h.data), fmt.Sprintf("the end of the file behind %d", f.Size()-h.data))
	case at < f.Size():
		return wrong(f, at, "", "the end of the file behind the last tensor", fmt.Sprintf("%d bytes more", f.Size()-at))
	}
	return nil
}
