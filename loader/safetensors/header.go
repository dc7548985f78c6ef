package safetensors

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
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

// tensor is an entry of the header.
type tensor struct {
	name       string
	kind       string // of its elements
	shape      []int
	begin, end int64 // behind the header
}

// header is what a file says of its tensors.
type header struct {
	text    []byte
	tensors []tensor
	data    int64 // where the elements begin
}

// wrong is an error at an offset of the file.
func wrong(f source.File, at int64, field, want, got string) *source.FormatError {
	return &source.FormatError{Format: "safetensors", File: f.Name(), Offset: at, Record: -1, Field: field, Want: want, Got: got}
}

// readHeader reads the header of a file and makes sure that the tensors fill it.
func readHeader(ctx context.Context, f source.File) (h header, err error) {
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
	h.text, h.data = make([]byte, length), lengthBytes+int64(length)
	if err := source.ReadFull(ctx, f, h.text, lengthBytes); err != nil {
		return h, err
	}
	if length == 0 || h.text[0] != '{' {
		return h, wrong(f, lengthBytes, "", `an object that begins with "{"`, fmt.Sprintf("%q", h.text[:min(1, length)]))
	}
	if err := h.parse(f); err != nil {
		return h, err
	}
	return h, h.filled(f)
}

// parse reads the header's text.
func (h *header) parse(f source.File) error {
	d := json.NewDecoder(bytes.NewReader(h.text))
	d.UseNumber()
	err := object(d, func(name string) error {
		if name == "__metadata__" {
			return object(d, func(string) error {
				var text string
				return d.Decode(&text)
			})
		}
		t, err := readTensor(d, name)
		h.tensors = append(h.tensors, t)
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
	if rest := bytes.TrimRight(h.text[d.InputOffset():], " "); len(rest) > 0 {
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

// readTensor reads what stands behind a tensor's name.
func readTensor(d *json.Decoder, name string) (t tensor, err error) {
	t.name = name
	var shape, offsets []uint64
	err = object(d, func(key string) error {
		switch key {
		case "dtype":
			return d.Decode(&t.kind)
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
	if len(offsets) != 2 || offsets[0] > offsets[1] || offsets[1] > math.MaxInt64 {
		return t, &mistake{name, "data_offsets: a beginning and an end", fmt.Sprint(offsets)}
	}
	t.begin, t.end = int64(offsets[0]), int64(offsets[1])
	if t.kind == "" || shape == nil {
		return t, &mistake{name, "dtype, shape and data_offsets", "less"}
	}
	n := uint64(1)
	if known := types[t.kind]; known.Valid() {
		n = uint64(known.Size())
	} else {
		n = 0 // it may have several elements in a byte
	}
	for _, dim := range shape {
		high, low := bits.Mul64(n, dim)
		if high != 0 || dim > math.MaxInt {
			return t, &mistake{name, "a shape of no more elements than there can be", fmt.Sprint(shape)}
		}
		n = low
		t.shape = append(t.shape, int(dim))
	}
	if types[t.kind].Valid() && n != offsets[1]-offsets[0] {
		return t, &mistake{name, fmt.Sprintf("%d bytes for %s%v", n, t.kind, shape), fmt.Sprint(offsets[1] - offsets[0])}
	}
	return t, nil
}

// filled makes sure that the tensors lie one behind the other from the header to the end.
func (h *header) filled(f source.File) error {
	sorted := slices.SortedFunc(slices.Values(h.tensors), func(a, b tensor) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end))
	})
	at := int64(0)
	for _, t := range sorted {
		if t.begin != at {
			return wrong(f, h.data+min(at, f.Size()), t.name, fmt.Sprintf("its first byte at %d, where the tensor before it ends", at), fmt.Sprint(t.begin))
		}
		at = t.end
	}
	switch have := f.Size() - h.data; {
	case at > have:
		return wrong(f, f.Size(), sorted[len(sorted)-1].name, fmt.Sprintf("%d bytes of elements", at), fmt.Sprintf("the end of the file behind %d", have))
	case at < have:
		return wrong(f, h.data+at, "", "the end of the file behind the last tensor", fmt.Sprintf("%d bytes more", have-at))
	}
	return nil
}
