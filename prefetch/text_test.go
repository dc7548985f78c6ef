package prefetch_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// text is samples of ragged fields, in plain slices: of sample i and field f the elements
// values[i][f], which are 1 or more. Field 0 says which sample it is.
type text struct {
	fields []loader.Field
	values [][][]byte
}

func (s *text) Len() int               { return len(s.values) }
func (s *text) Fields() []loader.Field { return s.fields }

func (s *text) Read(_ context.Context, index int, row *loader.Row) error {
	for i, f := range s.fields {
		value := s.values[index][i]
		if f.DType == dtype.Uint8 {
			if err := loader.Write(row, f.Name, value...); err != nil {
				return err
			}
			continue
		}
		copy(row.Bytes(f.Name), value)
		if f.Ragged != nil {
			if err := row.SetLen(f.Name, len(value)/elementBytes(f)); err != nil {
				return err
			}
		}
	}
	return nil
}

// elementBytes are the bytes of one element along a ragged field's first dimension.
func elementBytes(f loader.Field) int {
	n := f.DType.Size()
	for _, dim := range f.Shape[1:] {
		n *= dim
	}
	return n
}

// raggedFields are one of each kind: padded, with all that is added, packed, and of
// elements of several numbers; with fields of one size in front, between and behind.
func raggedFields(maximum, multiple int) []loader.Field {
	return []loader.Field{
		{Name: "index", DType: dtype.Int64},
		{Name: "tokens", DType: dtype.Uint8, Shape: []int{maximum}, Ragged: &loader.Ragged{Multiple: multiple, Pad: 7, Length: "lengths", Mask: "mask"}},
		{Name: "label", DType: dtype.Uint8, Shape: []int{3}},
		{Name: "packed", DType: dtype.Uint8, Shape: []int{maximum}, Ragged: &loader.Ragged{Offsets: "offsets"}},
		{Name: "boxes", DType: dtype.Uint16, Shape: []int{maximum / 2, 2, 1}, Ragged: &loader.Ragged{}},
		{Name: "weight", DType: dtype.Uint8},
	}
}

// newText makes n samples, a share of which is empty.
func newText(n int, fields []loader.Field, seed uint64, empty float64) *text {
	s, r := &text{fields: fields}, rand.New(rand.NewPCG(seed, 1))
	for i := range n {
		values := [][]byte{binary.LittleEndian.AppendUint64(nil, uint64(i))}
		for _, f := range fields[1:] {
			bytes := f.DType.Size()
			switch {
			case f.Ragged != nil:
				bytes = r.IntN(f.Shape[0]+1) * elementBytes(f)
				if r.Float64() < empty {
					bytes = 0
				}
			case len(f.Shape) > 0:
				bytes = f.Shape[0] * elementBytes(f)
			}
			value := make([]byte, bytes)
			for k := range value {
				value[k] = byte(1 + r.IntN(255))
			}
			values = append(values, value)
		}
		s.values = append(s.values, values)
	}
	return s
}

func drawText(t *rapid.T) *text {
	maximum := rapid.SampledFrom([]int{0, 1, 2, 9, 40}).Draw(t, "maximum")
	multiple := rapid.SampledFrom([]int{0, 1, 4, 16, math.MaxInt}).Draw(t, "multiple")
	empty := rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t, "empty")
	return newText(rapid.IntRange(1, 40).Draw(t, "samples"), raggedFields(maximum, multiple), rapid.Uint64().Draw(t, "values"), empty)
}

// A value is what a field of a batch is to be.
type value struct {
	shape []int
	bytes []byte
}

// batch is what samples make together, by the names of fields.
func (s *text) batch(samples []int64) map[string]value {
	all := make(map[string]value)
	for i, f := range s.fields {
		v := value{shape: []int{len(samples)}}
		longest := 0
		for _, sample := range samples {
			if f.Ragged != nil {
				longest = max(longest, len(s.values[sample][i])/elementBytes(f))
			}
		}
		for f.Ragged != nil && longest%max(f.Ragged.Multiple, 1) != 0 && longest < f.Shape[0] {
			longest++
		}
		total, offsets, lengths, mask := 0, make([]byte, 4), []byte{}, []byte{}
		for _, sample := range samples {
			elements := s.values[sample][i]
			v.bytes = append(v.bytes, elements...)
			if f.Ragged == nil {
				continue
			}
			n := len(elements) / elementBytes(f)
			total += n
			offsets = binary.LittleEndian.AppendUint32(offsets, uint32(total))
			lengths = binary.LittleEndian.AppendUint32(lengths, uint32(n))
			mask = append(mask, append(bytes.Repeat([]byte{1}, n), make([]byte, longest-n)...)...)
			if f.Ragged.Offsets == "" {
				v.bytes = append(v.bytes, bytes.Repeat([]byte{byte(f.Ragged.Pad)}, (longest-n)*elementBytes(f))...)
			}
		}
		switch {
		case f.Ragged == nil:
			v.shape = append(v.shape, f.Shape...)
		case f.Ragged.Offsets != "":
			v.shape = append([]int{total}, f.Shape[1:]...)
			all[f.Ragged.Offsets] = value{[]int{len(samples) + 1}, offsets}
		default:
			v.shape = append(append(v.shape, longest), f.Shape[1:]...)
			if name := f.Ragged.Mask; name != "" {
				all[name] = value{[]int{len(samples), longest}, mask}
			}
		}
		if f.Ragged != nil && f.Ragged.Length != "" {
			all[f.Ragged.Length] = value{[]int{len(samples)}, lengths}
		}
		all[f.Name] = v
	}
	return all
}

// check compares a batch with what the samples that it names make. All of its fields are
// compared.
func (s *text) check(t require.TestingT, got map[string]value) {
	want := s.batch(dtype.As[int64](slices.Clone(got["index"].bytes)))
	require.Len(t, got, len(want))
	for name, v := range want {
		require.Equal(t, v.shape, got[name].shape, "the shape of %q", name)
		require.Equal(t, fmt.Sprint(v.bytes), fmt.Sprint(got[name].bytes), "%q", name)
	}
}
