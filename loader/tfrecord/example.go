package tfrecord

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/convert"
	"github.com/leat-go/leat/loader/source"
)

// Kind is the type of a feature.
type Kind int

// The kinds that there are.
const (
	// None is a feature without a list.
	None Kind = iota
	Bytes
	Float
	Int64
)

// String is the name of the message.
func (k Kind) String() string {
	switch k {
	case Bytes:
		return "BytesList"
	case Float:
		return "FloatList"
	case Int64:
		return "Int64List"
	}
	return "no list"
}

// Example is a tf.train.Example: named features, each a list of byte strings, of float32 or of
// int64. The zero value has none. It is for one goroutine.
type Example struct {
	features []feature
	floats   []float32
	ints     []int64
}

// feature is one, its list not yet read.
type feature struct {
	key  []byte
	kind Kind
	list message
}

// Parse reads a message, which the Example borrows until the next Parse. Lists are read when they
// are asked for. The error is a *source.FormatError; it has no file, which Records.Examples adds.
func (e *Example) Parse(record []byte) error {
	e.features = e.features[:0]
	for m := message(record); len(m) > 0; {
		field, kind, _, data, err := m.next()
		if err == nil && field == 1 && kind == bytes {
			err = e.parseFeatures(data)
		}
		if err != nil {
			e.features = e.features[:0]
			return failure("", "a tf.train.Example", err.Error(), err)
		}
	}
	return nil
}

// mostFeatures is how many a message may have: they are looked up one by one.
const mostFeatures = 1 << 12

// parseFeatures reads a Features message: a map, which is a repeated message of key and value.
func (e *Example) parseFeatures(m message) error {
	for len(m) > 0 {
		field, kind, _, entry, err := m.next()
		if err != nil {
			return err
		}
		if field != 1 || kind != bytes {
			continue
		}
		f, err := parseEntry(entry)
		if err != nil {
			return err
		}
		// The order of a map says nothing, and of two entries the last counts.
		if i := e.find(f.key); i >= 0 {
			e.features[i] = f
		} else if e.features = append(e.features, f); len(e.features) > mostFeatures {
			return fmt.Errorf("more than %d features", mostFeatures)
		}
	}
	return nil
}

func parseEntry(m message) (f feature, err error) {
	for len(m) > 0 {
		field, kind, _, data, err := m.next()
		switch {
		case err != nil:
			return f, err
		case field == 1 && kind == bytes:
			f.key = data
		case field == 2 && kind == bytes:
			if f.kind, f.list, err = parseFeature(data); err != nil {
				return f, err
			}
		}
	}
	return f, nil
}

// parseFeature reads which of the three lists there is: of several the last counts.
func parseFeature(m message) (k Kind, list message, err error) {
	for len(m) > 0 {
		field, kind, _, data, err := m.next()
		if err != nil {
			return None, nil, err
		}
		if kind == bytes && field >= uint64(Bytes) && field <= uint64(Int64) {
			k, list = Kind(field), data
		}
	}
	return k, list, nil
}

// find is the number of a feature, or -1.
func (e *Example) find(key []byte) int {
	return slices.IndexFunc(e.features, func(f feature) bool { return string(f.key) == string(key) })
}

// Names are those of the features, sorted.
func (e *Example) Names() []string {
	var names []string
	for _, f := range e.features {
		names = append(names, string(f.key))
	}
	slices.Sort(names)
	return names
}

// Kind is that of a feature, None if there is no such feature.
func (e *Example) Kind(name string) Kind {
	for i := range e.features {
		if string(e.features[i].key) == name {
			return e.features[i].kind
		}
	}
	return None
}

// list is that of a feature, which must be of a kind.
func (e *Example) list(name string, want Kind) (message, error) {
	for i := range e.features {
		f := &e.features[i]
		if string(f.key) != name {
			continue
		}
		if f.kind != want {
			return nil, failure(name, want.String(), f.kind.String(), nil)
		}
		return f.list, nil
	}
	return nil, failure(name, "a feature of that name", "features "+strings.Join(e.Names(), ", "), nil)
}

// AppendBytes appends the byte strings of a feature to dst. They borrow the record.
func (e *Example) AppendBytes(dst [][]byte, name string) ([][]byte, error) {
	m, err := e.list(name, Bytes)
	if err != nil {
		return dst, err
	}
	for len(m) > 0 {
		field, kind, _, data, err := m.next()
		if err != nil {
			return dst, failure(name, "a list", err.Error(), err)
		}
		if field == 1 && kind == bytes {
			dst = append(dst, data)
		}
	}
	return dst, nil
}

// Bytes is the only byte string of a feature. It borrows the record.
func (e *Example) Bytes(name string) ([]byte, error) {
	var room [1][]byte
	all, err := e.AppendBytes(room[:0], name)
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, failure(name, "one byte string", fmt.Sprint(len(all)), nil)
	}
	return all[0], nil
}

// AppendInts appends the numbers of a feature to dst.
func (e *Example) AppendInts(dst []int64, name string) ([]int64, error) {
	m, err := e.list(name, Int64)
	if err != nil {
		return dst, err
	}
	for len(m) > 0 {
		field, kind, number, packed, err := m.next()
		switch {
		case err != nil:
		case field == 1 && kind == varint:
			dst = append(dst, int64(number))
		case field == 1 && kind == bytes: // all in one, as newer programs write them
			for m := message(packed); len(m) > 0; {
				number, ok := m.varint()
				if !ok {
					err = errWire
					break
				}
				dst = append(dst, int64(number))
			}
		}
		if err != nil {
			return dst, failure(name, "a list", err.Error(), err)
		}
	}
	return dst, nil
}

// AppendFloats appends the numbers of a feature to dst.
func (e *Example) AppendFloats(dst []float32, name string) ([]float32, error) {
	m, err := e.list(name, Float)
	if err != nil {
		return dst, err
	}
	for len(m) > 0 {
		field, kind, _, data, err := m.next()
		if err == nil && field == 1 && len(data)%4 != 0 {
			err = errWire
		}
		if err != nil {
			return dst, failure(name, "a list", err.Error(), err)
		}
		if field != 1 || kind != fixed32 && kind != bytes {
			continue
		}
		for ; len(data) > 0; data = data[4:] {
			dst = append(dst, math.Float32frombits(binary.LittleEndian.Uint32(data)))
		}
	}
	return dst, nil
}

// Write writes the feature of that name to the field of the row. Whole numbers must keep their
// value in the field's type; float32 go to any floating-point type of 4 bytes or more; a byte
// string goes to uint8. A ragged field takes as many as there are. The error is a
// *source.FormatError, a *loader.SizeError or a *loader.FieldError.
func (e *Example) Write(row *loader.Row, name string) (err error) {
	switch e.Kind(name) {
	case Int64:
		if e.ints, err = e.AppendInts(e.ints[:0], name); err == nil {
			err = convert.Write(row, name, dtype.Int64, dtype.Bytes(e.ints))
		}
	case Float:
		if e.floats, err = e.AppendFloats(e.floats[:0], name); err == nil {
			err = convert.Write(row, name, dtype.Float32, dtype.Bytes(e.floats))
		}
	default:
		var b []byte
		if b, err = e.Bytes(name); err == nil {
			err = loader.Write(row, name, b...)
		}
	}
	if unfit, ok := err.(*convert.Error); ok {
		return failure(name, unfit.Want, unfit.Got, nil)
	}
	return err
}

func failure(field, want, got string, err error) error {
	return &source.FormatError{Format: "tfrecord", Offset: -1, Record: -1, Field: field, Want: want, Got: got, Err: err}
}
