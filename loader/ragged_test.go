package loader_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// sentence is a sample of ragged fields: for each the bytes that it writes.
type sentence [][]byte

// sentences are n samples of ragged and other fields, in plain slices. Field "index" says
// which sample it is.
type sentences struct {
	fields  []loader.Field
	samples []sentence
	fails   func(i int) bool
}

func (s *sentences) Len() int               { return len(s.samples) }
func (s *sentences) Fields() []loader.Field { return s.fields }

func (s *sentences) Read(_ context.Context, index int, row *loader.Row) error {
	if s.fails != nil && s.fails(index) {
		return errors.New("bad")
	}
	return s.write(index, row)
}

// write writes one half of the samples by Write and lends memory for the others.
func (s *sentences) write(index int, row *loader.Row) error {
	for i, f := range s.fields {
		value := s.samples[index][i]
		if f.Ragged == nil || index%2 == 0 && f.DType == dtype.Uint8 {
			if f.DType == dtype.Uint8 {
				if err := loader.Write(row, f.Name, value...); err != nil {
					return err
				}
			} else {
				copy(row.Bytes(f.Name), value)
			}
		}
		if f.Ragged == nil {
			continue
		}
		n := lengthOf(f, s.samples[index][i])
		if n > 0 || index%3 == 0 {
			copy(row.Bytes(f.Name), value)
		}
		if err := row.SetLen(f.Name, n); err != nil {
			return err
		}
	}
	return nil
}

// elementBytes are the bytes of an element along the first dimension.
func elementBytes(f loader.Field) int {
	n := f.DType.Size()
	for _, dim := range f.Shape[1:] {
		n *= dim
	}
	return n
}

func lengthOf(f loader.Field, value []byte) int {
	if n := elementBytes(f); n > 0 {
		return len(value) / n
	}
	return 0
}

// newSentences draws fields and samples.
func newSentences(t *rapid.T) *sentences {
	s := &sentences{fields: []loader.Field{{Name: "index", DType: dtype.Int64}}}
	for i := range rapid.IntRange(1, 3).Draw(t, "ragged fields") {
		name := fmt.Sprint("r", i)
		f := loader.Field{Name: name, DType: rapid.SampledFrom([]dtype.Type{dtype.Uint8, dtype.Uint16, dtype.Int64}).Draw(t, "type"),
			Shape: []int{rapid.SampledFrom([]int{0, 1, 2, 7, 33}).Draw(t, "maximum")}, Ragged: &loader.Ragged{}}
		f.Shape = append(f.Shape, rapid.SliceOfN(rapid.IntRange(0, 3), 0, 2).Draw(t, "inner")...)
		if rapid.Bool().Draw(t, "packed") {
			f.Ragged.Offsets = name + " offsets"
		} else {
			f.Ragged.Multiple = rapid.SampledFrom([]int{0, 1, 2, 4, 5, 64, math.MaxInt}).Draw(t, "multiple")
			f.Ragged.Pad = float64(rapid.SampledFrom([]int{0, 0, 1, 100}).Draw(t, "pad"))
			if rapid.Bool().Draw(t, "masked") {
				f.Ragged.Mask = name + " mask"
			}
		}
		if rapid.Bool().Draw(t, "with lengths") {
			f.Ragged.Length = name + " length"
		}
		s.fields = append(s.fields, f)
		if rapid.Bool().Draw(t, "with a field of one size behind") {
			s.fields = append(s.fields, loader.Field{Name: name + " fixed", DType: dtype.Uint8, Shape: []int{rapid.IntRange(0, 3).Draw(t, "fixed")}})
		}
	}
	empty := rapid.SampledFrom([]float64{0, 0.3, 1}).Draw(t, "share of empty samples")
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	for i := range rapid.IntRange(1, 60).Draw(t, "samples") {
		sample := sentence{binary.LittleEndian.AppendUint64(nil, uint64(i))}
		for _, f := range s.fields[1:] {
			length := f.Shape[0]
			if f.Ragged != nil {
				length = r.IntN(f.Shape[0] + 1)
				if r.Float64() < empty {
					length = 0
				}
			}
			value := make([]byte, length*elementBytes(f))
			for j := range value {
				value[j] = byte(1 + r.IntN(255))
			}
			sample = append(sample, value)
		}
		s.samples = append(s.samples, sample)
	}
	return s
}

// pad is the field's Pad, which is a small number, as its bytes.
func pad(f loader.Field) []byte {
	b := make([]byte, 8)
	b[0] = byte(f.Ragged.Pad)
	return b[:f.DType.Size()]
}

// check compares a batch with what these samples make, and returns it as plain bytes.
func (s *sentences) check(t require.TestingT, l *loader.Layout, b loader.Filled, samples []int64) {
	rows := func(name string) []byte {
		i, ok := l.Lookup(name)
		require.True(t, ok)
		got := l.Rows(i, b)
		f := &l.Fields()[i]
		size := f.DType.Size()
		for _, dim := range f.AppendShape(nil, b.N, b.Extent(i)) {
			size *= dim
		}
		require.Equal(t, size, len(got), "the shape of %v in a batch of %d", f, b.N)
		require.Equal(t, len(got), cap(got))
		return got
	}
	for i, f := range s.fields {
		var want, mask, lengths, offsets []byte
		longest, total := 0, 0
		for _, sample := range samples {
			n := lengthOfAny(f, s.samples[sample][i])
			longest = max(longest, n)
		}
		if f.Ragged != nil {
			for longest%max(f.Ragged.Multiple, 1) != 0 && longest < f.Shape[0] {
				longest++
			}
		}
		offsets = binary.LittleEndian.AppendUint32(offsets, 0)
		for _, sample := range samples {
			value := s.samples[sample][i]
			want = append(want, value...)
			if f.Ragged == nil {
				continue
			}
			n := lengthOf(f, value)
			total += n
			lengths = binary.LittleEndian.AppendUint32(lengths, uint32(n))
			offsets = binary.LittleEndian.AppendUint32(offsets, uint32(total))
			mask = append(mask, bytes.Repeat([]byte{1}, n)...)
			mask = append(mask, make([]byte, longest-n)...)
			if f.Ragged.Offsets == "" {
				for range (longest - n) * elementBytes(f) / f.DType.Size() {
					want = append(want, pad(f)...)
				}
			}
		}
		require.Equal(t, want, append([]byte(nil), rows(f.Name)...), "%v", f)
		if r := f.Ragged; r != nil {
			for name, want := range map[string][]byte{r.Length: lengths, r.Mask: mask, r.Offsets: offsets} {
				if name != "" {
					require.Equal(t, want, append([]byte(nil), rows(name)...), "%q of %v", name, f)
				}
			}
		}
	}
}

func lengthOfAny(f loader.Field, value []byte) int {
	if f.Ragged == nil {
		return 0
	}
	return lengthOf(f, value)
}

// Every batch of ragged samples is what plain slices make of them, whatever the fields, the
// batch, the ranks, the workers and the substitutes, and how a source gives its samples.
func TestRaggedBatchesAreWhatPlainSlicesMake(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSentences(t)
		o := loader.Options{Epochs: 2, Workers: rapid.IntRange(1, 4).Draw(t, "workers")}
		batch := rapid.IntRange(1, 9).Draw(t, "batch")
		ranks := rapid.IntRange(1, 3).Draw(t, "ranks")
		o.Last = rapid.SampledFrom([]loader.LastPolicy{loader.Pad, loader.Exact}).Draw(t, "last")
		o.Shuffle, o.Shard = rapid.Bool().Draw(t, "shuffle"), loader.Shard{Count: ranks}
		if rapid.Bool().Draw(t, "some fail") && len(s.samples) > 3 {
			o.OnError = loader.Substitute
			s.fails = func(i int) bool { return i%3 == 1 }
		}
		for o.Shard.Index = range ranks {
			l, err := loader.New(s, batch, o)
			require.NoError(t, err)
			s.checkAll(t, l)
		}
	})
}

// checkAll reads all batches and compares them with the samples that they name.
func (s *sentences) checkAll(t require.TestingT, l *loader.Loader) {
	const slots = 2
	mem := heap(t, l, slots)
	run := l.Start(context.Background(), loader.Cursor{}, mem)
	for {
		b, err := run.Next(context.Background())
		if errors.Is(err, loader.ErrEpochEnd) {
			continue
		}
		if errors.Is(err, loader.ErrEnd) {
			break
		}
		require.NoError(t, err)
		s.check(t, l.Layout(), b, values[int64](l, b, "index"))
		for i := range b.Slot.Bytes { // what is left here is never seen again
			b.Slot.Bytes[i] = 0xa5
		}
		mem.Put(b.Slot)
	}
	require.NoError(t, run.Close())
	require.Equal(t, slots, mem.Free())
}

// A source that gives its samples once keeps their lengths for a second reading.
func TestRaggedSamplesThatAreGivenOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSentences(t)
		var source iter.Seq2[int, error] = func(yield func(int, error) bool) {
			for i := range s.samples {
				if !yield(i, nil) {
					return
				}
			}
		}
		encode := func(_ context.Context, i int, row *loader.Row) error { return s.write(i, row) }
		l, err := loader.NewIterable(loader.FromSeq(s.fields, source, encode), rapid.IntRange(1, 9).Draw(t, "batch"), loader.Options{Workers: 2})
		require.NoError(t, err)
		claim, err := l.Claim() // nothing counts as delivered before it says so
		require.NoError(t, err)
		_ = claim
		for range 2 {
			mem := heap(t, l, 2)
			run := l.Start(context.Background(), loader.Cursor{}, mem)
			for next := 0; ; {
				b, err := run.Next(context.Background())
				if err != nil {
					require.ErrorIs(t, err, loader.ErrEpochEnd)
					require.Equal(t, len(s.samples), next)
					break
				}
				samples := make([]int64, b.N)
				for i := range samples {
					samples[i] = int64(next + i)
				}
				next += b.N
				s.check(t, l.Layout(), b, samples)
				mem.Put(b.Slot)
			}
			require.NoError(t, run.Close())
		}
		require.NoError(t, l.Close())
	})
}

func TestARaggedLayout(t *testing.T) {
	l, err := loader.NewLayout([]loader.Field{
		{Name: "tokens", DType: dtype.Uint16, Shape: []int{2048}, Ragged: &loader.Ragged{Length: "n", Mask: "mask"}},
		{Name: "label", DType: dtype.Int64},
		{Name: "boxes", DType: dtype.Float32, Shape: []int{100, 4}, Ragged: &loader.Ragged{Offsets: "ends"}},
	}, 10)
	require.NoError(t, err)
	type place struct {
		field            string
		offset, rowBytes int64
		of               int
		added            bool
	}
	var places []place
	for _, f := range l.Fields() {
		places = append(places, place{f.Field.String(), f.Offset, f.RowBytes, f.Of, f.Added})
	}
	require.Equal(t, []place{
		{"tokens uint16[≤2048]", 768, 4096, 0, false},
		{"label int64", 0, 8, -1, false},
		{"boxes float32[≤100 4]", 41728, 1600, 2, false},
		{"n int32", 256, 4, 0, true},
		{"mask uint8[≤2048]", 57856, 2048, 0, true},
		{"ends int32", 512, 4, 2, true},
	}, places, "those of one size lie in front, and are told where they stand")
	require.EqualValues(t, 512+44, l.Fixed())
	require.EqualValues(t, 57856+20480, l.Size())
	require.Len(t, l.Written(), 3)
	shape := func(i, rows, extent int) string {
		f := &l.Fields()[i]
		return fmt.Sprint(f.AppendShape(nil, rows, extent), f.Bytes(rows, extent))
	}
	require.Equal(t, "[3 70] 420", shape(0, 3, 70))
	require.Equal(t, "[3] 24", shape(1, 3, 0))
	require.Equal(t, "[70 4] 1120", shape(2, 3, 70))
	require.Equal(t, "[3] 12", shape(3, 3, 0))
	require.Equal(t, "[3 70] 210", shape(4, 3, 70))
	require.Equal(t, "[4] 16", shape(5, 3, 0))
}

func TestRaggedFieldsThatCannotBeLaidOut(t *testing.T) {
	x := func(r loader.Ragged, shape ...int) []loader.Field {
		return []loader.Field{{Name: "x", DType: dtype.Uint8, Shape: shape, Ragged: &r}, {Name: "y", DType: dtype.Int8}}
	}
	beyond32 := math.MaxInt>>31 + math.MaxInt32 // or any, where an int has 32 bits
	for name, c := range map[string]struct {
		fields []loader.Field
		want   []string
	}{
		"a scalar":             {x(loader.Ragged{}), []string{"Fields[0] (x)"}},
		"too long":             {x(loader.Ragged{}, beyond32), []string{"Fields[0] (x)"}},
		"a negative multiple":  {x(loader.Ragged{Multiple: -1}, 4), []string{"Fields[0] (x).Ragged.Multiple"}},
		"no uint8":             {x(loader.Ragged{Pad: 256}, 4), []string{"Fields[0] (x).Ragged.Pad"}},
		"packed with padding":  {x(loader.Ragged{Offsets: "o", Multiple: 2, Pad: 1, Mask: "m"}, 4), []string{"Fields[0] (x).Ragged.Multiple", "Fields[0] (x).Ragged.Pad", "Fields[0] (x).Ragged.Mask"}},
		"offsets over int32":   {x(loader.Ragged{Offsets: "o"}, math.MaxInt32/10+1), []string{"Fields[0] (x)"}},
		"a name that is taken": {x(loader.Ragged{Length: "y"}, 4), []string{"Fields[0] (x).Ragged.Length"}},
		"its own name":         {x(loader.Ragged{Mask: "x"}, 4), []string{"Fields[0] (x).Ragged.Mask"}},
		"one name for two":     {x(loader.Ragged{Length: "l", Mask: "l"}, 4), []string{"Fields[0] (x).Ragged.Mask"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loader.NewLayout(c.fields, 10)
			require.Equal(t, c.want, mistakes(t, err))
		})
	}
	_, err := loader.NewLayout(x(loader.Ragged{Offsets: "o"}, math.MaxInt32/10), 10)
	require.NoError(t, err)
	_, err = loader.New(loader.FromFunc(3, x(loader.Ragged{Like: "z"}, 4), func(context.Context, int, *loader.Row) error { return nil }), 1, loader.Options{})
	require.Equal(t, []string{"Fields[0] (x).Ragged.Like"}, mistakes(t, err))
}

// Fields of more than 2 GiB are placed and measured in 64 bits.
func TestALargeRaggedField(t *testing.T) {
	if math.MaxInt == math.MaxInt32 {
		t.Skip("an int has 32 bits")
	}
	l, err := loader.NewLayout([]loader.Field{{Name: "x", DType: dtype.Float64, Shape: []int{math.MaxInt32, 1024}, Ragged: &loader.Ragged{Mask: "m"}}}, 100)
	require.NoError(t, err)
	f := &l.Fields()[0]
	require.EqualValues(t, 100*int64(math.MaxInt32)*8192, f.Bytes(100, math.MaxInt32))
	require.Equal(t, f.Bytes(100, math.MaxInt32), l.Fields()[1].Offset)
	_, err = loader.NewLayout([]loader.Field{{Name: "x", DType: dtype.Float64, Shape: []int{math.MaxInt32, 1 << 30}, Ragged: &loader.Ragged{}}}, 100)
	require.Equal(t, []string{"Fields[0] (x)"}, mistakes(t, err))
}

// Padding has the stated value, bit by bit, in every type that has it.
func TestPaddingHasTheStatedValue(t *testing.T) {
	inf := math.Inf(-1)
	for _, c := range []struct {
		dtype dtype.Type
		pad   float64
		want  any // its bytes, nil where it is refused
	}{
		{dtype.Bool, 1, uint8(1)}, {dtype.Bool, 2, nil},
		{dtype.Uint8, 255, uint8(255)}, {dtype.Uint8, 256, nil}, {dtype.Uint8, -1, nil}, {dtype.Uint8, 0.5, nil},
		{dtype.Int8, -128, int8(-128)}, {dtype.Int8, 128, nil},
		{dtype.Uint16, 50256, uint16(50256)}, {dtype.Int16, -100, int16(-100)}, {dtype.Int16, 32768, nil},
		{dtype.Uint32, math.MaxUint32, uint32(math.MaxUint32)}, {dtype.Int32, -100, int32(-100)}, {dtype.Int32, math.MaxInt32 + 1, nil},
		{dtype.Int64, -100, int64(-100)}, {dtype.Int64, math.MinInt64, int64(math.MinInt64)}, {dtype.Int64, math.MaxInt64, nil},
		{dtype.Uint64, 1 << 63, uint64(1 << 63)}, {dtype.Uint64, math.MaxUint64, nil}, {dtype.Uint64, inf, nil},
		{dtype.Int64, math.NaN(), nil}, {dtype.Int64, inf, nil},
		{dtype.Float64, 0.1, 0.1}, {dtype.Float32, 0.5, float32(0.5)}, {dtype.Float32, 0.1, nil}, {dtype.Float32, inf, float32(inf)},
		{dtype.BFloat16, -1, uint16(0xbf80)}, {dtype.BFloat16, inf, uint16(0xff80)}, {dtype.BFloat16, 257, nil},
		{dtype.Float16, 1, uint16(0x3c00)}, {dtype.Float16, -2, uint16(0xc000)}, {dtype.Float16, 65504, uint16(0x7bff)}, {dtype.Float16, 65505, nil},
		{dtype.Float16, 65536, nil}, {dtype.Float16, math.Ldexp(1, -24), uint16(1)}, {dtype.Float16, math.Ldexp(1, -25), nil},
		{dtype.Float16, math.Ldexp(1023, -24), uint16(0x3ff)}, {dtype.Float16, math.Ldexp(1, -14), uint16(0x400)},
		{dtype.Float16, inf, uint16(0xfc00)}, {dtype.Float16, 0.1, nil}, {dtype.Float16, math.Copysign(0, -1), uint16(0x8000)},
	} {
		t.Run(fmt.Sprint(c.dtype, " ", c.pad), func(t *testing.T) {
			ds := loader.FromFunc(2, []loader.Field{{Name: "x", DType: c.dtype, Shape: []int{5}, Ragged: &loader.Ragged{Pad: c.pad}}},
				func(_ context.Context, i int, row *loader.Row) error {
					clear(row.Bytes("x"))
					return row.SetLen("x", 5*i)
				})
			l, err := loader.New(ds, 2, loader.Options{})
			if c.want == nil {
				require.Equal(t, []string{"Fields[0] (x).Ragged.Pad"}, mistakes(t, err))
				return
			}
			require.NoError(t, err)
			var want []byte
			for range 5 {
				want, err = binary.Append(want, binary.LittleEndian, c.want)
				require.NoError(t, err)
			}
			require.Equal(t, want, first(t, l)[:len(want)])
		})
	}
}

// first is field 0 of the first batch.
func first(t *testing.T, l *loader.Loader) []byte {
	mem := heap(t, l, 1)
	run := l.Start(t.Context(), loader.Cursor{}, mem)
	b, err := run.Next(t.Context())
	require.NoError(t, err)
	defer mem.Put(b.Slot)
	require.NoError(t, run.Close())
	return l.Layout().Rows(0, b)
}

// Each way to write a ragged field wrongly fails the sample, and says how.
func TestRaggedFieldsThatAreWrittenWrongly(t *testing.T) {
	fields := []loader.Field{
		{Name: "tokens", DType: dtype.Uint16, Shape: []int{4}, Ragged: &loader.Ragged{Length: "length", Mask: "mask"}},
		{Name: "boxes", DType: dtype.Uint8, Shape: []int{2, 3}, Ragged: &loader.Ragged{}},
		{Name: "none", DType: dtype.Uint8, Shape: []int{0}, Ragged: &loader.Ragged{}},
		{Name: "hollow", DType: dtype.Uint8, Shape: []int{3, 0}, Ragged: &loader.Ragged{}},
		{Name: "label", DType: dtype.Uint8},
	}
	well := func(row *loader.Row) error {
		return errors.Join(loader.Write[uint16](row, "tokens", 1, 2), loader.Write[uint8](row, "boxes"), row.SetLen("hollow", 2), loader.Write(row, "label", uint8(1)))
	}
	for name, c := range map[string]struct {
		write func(row *loader.Row) error
		want  string // nothing where it is right
	}{
		"well":                {well, ""},
		"the last call":       {func(row *loader.Row) error { return errors.Join(well(row), row.SetLen("tokens", 1)) }, ""},
		"empty without asked": {func(row *loader.Row) error { return errors.Join(well(row), row.SetLen("boxes", 0)) }, ""},
		"too long": {func(row *loader.Row) error { return loader.Write[uint16](row, "tokens", 1, 2, 3, 4, 5) },
			"a value of 5 elements for field tokens uint16[≤4], want at most 4"},
		"not whole": {func(row *loader.Row) error { return loader.Write[uint8](row, "boxes", 1, 2, 3, 4) },
			"a value of 4 elements for field boxes uint8[≤2 3], want as many as fill its other dimensions [3]"},
		"of a maximum of 0": {func(row *loader.Row) error { return loader.Write[uint8](row, "none", 1) },
			"a value of 1 elements for field none uint8[≤0], want at most 0"},
		"of elements of no size": {func(row *loader.Row) error { return loader.Write[uint8](row, "hollow", 1) },
			"a value of 1 elements for field hollow uint8[≤3 0], want at most 0"},
		"a length beyond":      {func(row *loader.Row) error { return row.SetLen("boxes", 3) }, "a length of 3 for field boxes uint8[≤2 3], want 0 to 2"},
		"a negative one":       {func(row *loader.Row) error { return row.SetLen("boxes", -1) }, "a length of -1 for field boxes"},
		"a huge one":           {func(row *loader.Row) error { return row.SetLen("boxes", math.MaxInt) }, "want 0 to 2"},
		"of one size":          {func(row *loader.Row) error { return row.SetLen("label", 1) }, "field label uint8 asked for as ragged"},
		"unknown":              {func(row *loader.Row) error { return row.SetLen("nobody", 1) }, `no field "nobody"; a sample has tokens uint16[≤4], boxes`},
		"filled by the loader": {func(row *loader.Row) error { return loader.Write(row, "length", int32(1)) }, `no field "length"; a sample has tokens`},
		"borrowed from it":     {func(row *loader.Row) error { row.Bytes("mask"); return nil }, `no field "mask"`},
		"a forgotten length": {func(row *loader.Row) error {
			clear(row.Bytes("tokens"))
			return errors.Join(loader.Write[uint8](row, "boxes"), row.SetLen("hollow", 2), loader.Write(row, "label", uint8(1)))
		}, "field tokens uint16[≤4] was asked for and its length never told"},
		"a length and nothing behind it": {func(row *loader.Row) error {
			return errors.Join(row.SetLen("tokens", 2), loader.Write[uint8](row, "boxes"), row.SetLen("hollow", 2), loader.Write(row, "label", uint8(1)))
		}, "field tokens uint16[≤4] was not written: it was never asked for"},
		"a length that was 0 once": {func(row *loader.Row) error {
			return errors.Join(row.SetLen("tokens", 0), row.SetLen("tokens", 2), loader.Write[uint8](row, "boxes"), row.SetLen("hollow", 2), loader.Write(row, "label", uint8(1)))
		}, "field tokens uint16[≤4] was not written: it was never asked for"},
		"not asked for": {func(row *loader.Row) error {
			return errors.Join(loader.Write[uint16](row, "tokens"), row.SetLen("hollow", 2), loader.Write(row, "label", uint8(1)))
		}, "field boxes uint8[≤2 3] was not written: it was never asked for"},
		"no length of what takes no bytes": {func(row *loader.Row) error {
			return errors.Join(loader.Write[uint16](row, "tokens"), loader.Write[uint8](row, "boxes"), loader.Write(row, "label", uint8(1)))
		}, "field hollow uint8[≤3 0] was asked for and its length never told"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, workers := range []int{1, 3} {
				ds := loader.FromFunc(6, fields, func(_ context.Context, i int, row *loader.Row) error {
					if i == 4 {
						return c.write(row)
					}
					return well(row)
				})
				l, err := loader.New(ds, 2, loader.Options{Epochs: 1, Workers: workers})
				require.NoError(t, err)
				mem := heap(t, l, 2)
				run := l.Start(t.Context(), loader.Cursor{}, mem)
				for err = error(nil); err == nil; {
					var b loader.Filled
					if b, err = run.Next(t.Context()); err == nil {
						mem.Put(b.Slot)
					}
				}
				require.NoError(t, run.Close())
				if c.want == "" {
					require.ErrorIs(t, err, loader.ErrEpochEnd)
					continue
				}
				var where *loader.Error
				require.ErrorAs(t, err, &where)
				require.Equal(t, 4, where.Sample)
				require.ErrorContains(t, err, c.want)
			}
		})
	}
}

// A State knows that a field is ragged, and not how it is batched.
func TestAStateOfRaggedSamples(t *testing.T) {
	of := func(r *loader.Ragged) *loader.Loader {
		fields := []loader.Field{{Name: "x", DType: dtype.Uint8, Shape: []int{3}, Ragged: r}}
		l, err := loader.New(loader.FromFunc(9, fields, func(context.Context, int, *loader.Row) error { return nil }), 3, loader.Options{})
		require.NoError(t, err)
		return l
	}
	state := of(&loader.Ragged{}).StateAt(loader.Cursor{Position: 3})
	require.Equal(t, "x uint8[≤3]", state.Fields)
	require.NoError(t, of(&loader.Ragged{Multiple: 2, Length: "n", Mask: "m", Pad: 7}).Check(state))
	require.NoError(t, of(&loader.Ragged{Offsets: "o"}).Check(state))
	require.Error(t, of(nil).Check(state))
	require.NotEqual(t, of(nil).StateAt(loader.Cursor{}).Fingerprint, state.Fingerprint)
}

// Ragged samples cost no allocation.
func TestRaggedBatchesAllocateNothing(t *testing.T) {
	if testing.CoverMode() != "" {
		t.Skip("coverage counts its own allocations")
	}
	tokens := make([]uint16, 64)
	ds := loader.FromFunc(1<<20, []loader.Field{
		{Name: "tokens", DType: dtype.Uint16, Shape: []int{64}, Ragged: &loader.Ragged{Multiple: 8, Pad: 3, Length: "n", Mask: "m"}},
		{Name: "packed", DType: dtype.Uint16, Shape: []int{64}, Ragged: &loader.Ragged{Offsets: "o"}},
	}, func(_ context.Context, i int, row *loader.Row) error {
		return errors.Join(loader.Write(row, "tokens", tokens[:i%65]...), loader.Write(row, "packed", tokens[:i%7]...))
	})
	l, err := loader.New(ds, 16, loader.Options{Workers: 2})
	require.NoError(t, err)
	mem := heap(t, l, 4)
	run := l.Start(t.Context(), loader.Cursor{}, mem)
	next := func() {
		b, err := run.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		mem.Put(b.Slot)
	}
	for range 50 {
		next()
	}
	require.Zero(t, testing.AllocsPerRun(2000, next))
	require.NoError(t, run.Close())
}

func TestFieldsThatAreDeclaredAlike(t *testing.T) {
	declared := func() loader.Field {
		return loader.Field{Name: "x", DType: dtype.Float32, Shape: []int{6},
			Ragged: &loader.Ragged{Multiple: 2, Pad: math.NaN(), Length: "n", Mask: "m"}}
	}
	require.True(t, declared().Equal(declared()), "with a padding of NaN")
	require.True(t, loader.Field{Name: "x", Shape: []int{}}.Equal(loader.Field{Name: "x"}))
	for _, change := range []func(f *loader.Field){
		func(f *loader.Field) { f.Name = "y" },
		func(f *loader.Field) { f.DType = dtype.Float16 },
		func(f *loader.Field) { f.Shape[0]++ },
		func(f *loader.Field) { f.Ragged = nil },
		func(f *loader.Field) { f.Ragged.Pad = 0 },
		func(f *loader.Field) { f.Ragged.Multiple = 0 },
		func(f *loader.Field) { f.Ragged.Mask = "" },
	} {
		other := declared()
		change(&other)
		require.False(t, declared().Equal(other), "%v", other)
		require.False(t, other.Equal(declared()), "%v", other)
	}
	zero, negative := declared(), declared()
	zero.Ragged.Pad, negative.Ragged.Pad = 0, math.Copysign(0, -1)
	require.False(t, zero.Equal(negative), "other bits are padded with")
}

// Of a field whose maximum is 0 the other dimensions are not multiplied: here that would
// overflow to -1, and two elements would be a sample of length -2.
func TestARaggedMaximumOfZeroHoldsNothing(t *testing.T) {
	field := loader.Field{Name: "x", DType: dtype.Uint8, Shape: []int{0, 3, math.MaxInt/3*2 + 1}, Ragged: &loader.Ragged{}}
	for elements := range 3 {
		ds := loader.FromFunc(1, []loader.Field{field}, func(_ context.Context, _ int, row *loader.Row) error {
			return loader.Write(row, "x", make([]byte, elements)...)
		})
		ld, err := loader.New(ds, 1, loader.Options{Epochs: 1})
		require.NoError(t, err)
		mem, err := loader.NewHeap(ld.Layout().Size(), 1)
		require.NoError(t, err)
		run := ld.Start(t.Context(), loader.Cursor{}, mem)
		_, err = run.Next(t.Context())
		if elements == 0 {
			require.NoError(t, err)
		} else {
			var size *loader.SizeError
			require.ErrorAs(t, err, &size)
		}
		require.NoError(t, run.Close())
	}
}
