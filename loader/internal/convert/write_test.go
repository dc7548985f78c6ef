package convert_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/convert"
)

func rowOf(t require.TestingT, f loader.Field) *loader.Row {
	s, err := loader.NewScratch([]loader.Field{f})
	require.NoError(t, err)
	return s.Begin(new(loader.Row))
}

var types = []dtype.Type{dtype.Bool, dtype.Uint8, dtype.Int8, dtype.Uint16, dtype.Int16, dtype.Uint32, dtype.Int32, dtype.Uint64, dtype.Int64, dtype.Float32, dtype.Float64}

// value is the element of b, exactly; nil of what is no number.
func value(t dtype.Type, b []byte) *big.Float {
	exact := new(big.Float).SetPrec(2000)
	switch t {
	case dtype.Int8:
		return exact.SetInt64(int64(int8(b[0])))
	case dtype.Uint16:
		return exact.SetUint64(uint64(dtype.As[uint16](b)[0]))
	case dtype.Int16:
		return exact.SetInt64(int64(dtype.As[int16](b)[0]))
	case dtype.Uint32:
		return exact.SetUint64(uint64(dtype.As[uint32](b)[0]))
	case dtype.Int32:
		return exact.SetInt64(int64(dtype.As[int32](b)[0]))
	case dtype.Uint64:
		return exact.SetUint64(dtype.As[uint64](b)[0])
	case dtype.Int64:
		return exact.SetInt64(dtype.As[int64](b)[0])
	case dtype.Float32, dtype.Float64:
		x := 0.0
		if t == dtype.Float32 {
			x = float64(dtype.As[float32](b)[0])
		} else {
			x = dtype.As[float64](b)[0]
		}
		if math.IsNaN(x) {
			return nil
		}
		return exact.SetFloat64(x)
	}
	return exact.SetInt64(int64(b[0]))
}

func isFloat(t dtype.Type) bool { return t == dtype.Float32 || t == dtype.Float64 }

// What is written has the value that it had, for every pair of types; between floating-point
// types, the nearest.
func TestValuesAreKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := rapid.SampledFrom(types).Draw(t, "from"), rapid.SampledFrom(types).Draw(t, "to")
		var bits uint64
		if isFloat(from) {
			x := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, 1, -1, 255, 256, 1 << 31, 1 << 32, 1 << 53, 1 << 62, 1 << 63, 1 << 64, -1 << 63, -1 << 64, 0.5, math.Inf(1), math.Inf(-1), math.NaN(), 1e300})).Draw(t, "x")
			if bits = math.Float64bits(x); from == dtype.Float32 {
				bits = uint64(math.Float32bits(float32(x)))
			}
		} else {
			bits = rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1, 2, 127, 128, 255, 256, 1<<24 + 1, 1<<53 + 1, 1<<63 - 1, 1 << 63, 1<<64 - 1})).Draw(t, "bits")
		}
		if from == dtype.Bool {
			bits &= 1
		}
		data := dtype.Bytes([]uint64{bits})[:from.Size()]
		row := rowOf(t, loader.Field{Name: "x", DType: to})
		err := convert.Write(row, "x", from, data)
		want := value(from, data)
		if err != nil {
			require.ErrorAs(t, err, new(*convert.Error))
			for _, kept := range []bool{from == to, from == dtype.Float32 && to == dtype.Float64, to == dtype.Int64 && !isFloat(from) && from != dtype.Uint64} {
				require.False(t, kept, err)
			}
			return
		}
		got := value(to, row.Bytes("x"))
		switch {
		case isFloat(from) && isFloat(to):
			if want != nil && from == dtype.Float64 && to == dtype.Float32 {
				nearest, _ := want.Float32()
				want = new(big.Float).SetFloat64(float64(nearest))
			}
			require.Equal(t, want == nil, got == nil)
			require.True(t, want == nil || want.Cmp(got) == 0)
		default:
			require.NotNil(t, want)
			require.Zero(t, want.Cmp(got), "%v of %v became %v of %v", want, from, got, to)
		}
	})
}

// The number of elements is that of the field, or fits it.
func TestNumbersOfElements(t *testing.T) {
	fixed := loader.Field{Name: "x", DType: dtype.Int32, Shape: []int{2, 2}}
	numbers := dtype.Bytes([]int64{1, 2, 3, 4, 5, 6, 7})
	row := rowOf(t, fixed)
	require.NoError(t, convert.Write(row, "x", dtype.Int64, numbers[:32]))
	require.Equal(t, []int32{1, 2, 3, 4}, loader.Column[int32](row, "x"))
	require.ErrorAs(t, convert.Write(row, "x", dtype.Int64, numbers[:24]), new(*loader.SizeError))
	require.ErrorAs(t, convert.Write(row, "y", dtype.Int64, numbers[:24]), new(*loader.FieldError))

	ragged := loader.Field{Name: "x", DType: dtype.Int32, Shape: []int{3, 2}, Ragged: &loader.Ragged{}}
	row = rowOf(t, ragged)
	require.NoError(t, convert.Write(row, "x", dtype.Int64, numbers[:32]))
	require.Equal(t, []int32{1, 2, 3, 4}, loader.Value[int32](row, "x"))
	require.NoError(t, convert.Write(row, "x", dtype.Int64, nil))
	require.Empty(t, loader.Value[int32](row, "x"))
	require.ErrorAs(t, convert.Write(row, "x", dtype.Int64, numbers[:24]), new(*loader.SizeError), "half a row")
	require.ErrorAs(t, convert.Write(row, "x", dtype.Int64, numbers[:56]), new(*loader.SizeError))

	err := convert.Write(rowOf(t, loader.Field{Name: "x", DType: dtype.Uint8, Shape: []int{2}}), "x", dtype.Int64, dtype.Bytes([]int64{1, -1}))
	require.EqualError(t, err, "want values that uint8 holds, got -1 as element 1")
	err = convert.Write(rowOf(t, loader.Field{Name: "x", DType: dtype.Float16}), "x", dtype.Int64, dtype.Bytes([]int64{1}))
	require.EqualError(t, err, "want float16 values, got int64")
	unaligned := append([]byte{0}, numbers[:8]...)[1:]
	row = rowOf(t, loader.Field{Name: "x", DType: dtype.Float64})
	require.NoError(t, convert.Write(row, "x", dtype.Int64, unaligned))
	require.Equal(t, []float64{1}, loader.Column[float64](row, "x"))
}
