package tensors_test

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/tensor"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/tensors"
)

// span is 0, 1, 2 and so on.
func span[T uint8 | int | float32](n int) []T {
	s := make([]T, n)
	for i := range s {
		s[i] = T(i)
	}
	return s
}

// contents are the fields' bytes in one batch of all samples.
func contents(t *testing.T, ds loader.Dataset) map[string][]byte {
	t.Helper()
	pf := open(t, ds, ds.Len(), prefetch.Options{})
	all := map[string][]byte{}
	for b, err := range pf.Batches(t.Context()) {
		require.NoError(t, err)
		for _, f := range b.Fields() {
			all[f.Name] = bytes.Clone(f.Bytes)
		}
	}
	require.NoError(t, pf.Close())
	return all
}

func TestTensorsBecomeFields(t *testing.T) {
	x := tensor.New(tensor.WithShape(5, 2, 3), tensor.WithBacking(span[float32](30)))
	y := tensor.New(tensor.WithShape(5), tensor.WithBacking([]int64{10, 11, 12, 13, 14}))
	ok := tensor.New(tensor.WithShape(5, 1), tensor.WithBacking([]bool{true, false, true, false, true}))
	ds, err := tensors.Dataset([]string{"x", "y", "ok"}, x, y, ok)
	require.NoError(t, err)
	require.Equal(t, 5, ds.Len())
	require.Equal(t, []loader.Field{
		{Name: "x", DType: dtype.Float32, Shape: []int{2, 3}},
		{Name: "y", DType: dtype.Int64, Shape: []int{}},
		{Name: "ok", DType: dtype.Bool, Shape: []int{1}},
	}, ds.Fields())

	require.Equal(t, map[string][]byte{
		"x":  encode(t, span[float32](30)),
		"y":  encode(t, []int64{10, 11, 12, 13, 14}),
		"ok": {1, 0, 1, 0, 1},
	}, contents(t, ds))
}

func TestViewsOfTensorsKeepTheirOrder(t *testing.T) {
	whole := func() *tensor.Dense {
		return tensor.New(tensor.WithShape(4, 3), tensor.WithBacking(span[float32](12)))
	}
	rows, err := whole().Slice(tensor.S(1, 3))
	require.NoError(t, err)
	columns, err := whole().Slice(nil, tensor.S(1, 3))
	require.NoError(t, err)
	transposed := whole()
	require.NoError(t, transposed.T())

	for name, c := range map[string]struct {
		view *tensor.Dense
		want []float32
	}{
		"rows":       {rows.(*tensor.Dense), []float32{3, 4, 5, 6, 7, 8}},
		"columns":    {columns.(*tensor.Dense), []float32{1, 2, 4, 5, 7, 8, 10, 11}},
		"transposed": {transposed, []float32{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11}},
	} {
		t.Run(name, func(t *testing.T) {
			ds, err := tensors.Dataset([]string{"x"}, c.view)
			require.NoError(t, err)
			require.Equal(t, encode(t, c.want), contents(t, ds)["x"])
		})
	}
}

func TestTensorsThatCannotBeFields(t *testing.T) {
	four := tensor.New(tensor.WithShape(4), tensor.WithBacking(span[float32](4)))
	for name, c := range map[string]struct {
		bad  *tensor.Dense
		want string
	}{
		"nil":          {nil, `"bad" is nil`},
		"scalar":       {tensor.New(tensor.FromScalar(float32(1))), `"bad" is a scalar`},
		"strings":      {tensor.New(tensor.WithShape(4), tensor.WithBacking(make([]string, 4))), `"bad" has elements of type string`},
		"complex":      {tensor.New(tensor.WithShape(4), tensor.WithBacking(make([]complex64, 4))), `"bad" has elements of type complex64`},
		"other length": {tensor.New(tensor.WithShape(3), tensor.WithBacking(span[float32](3))), `"bad" has 3 samples, "four" has 4`},
		"column-major": {tensor.New(tensor.WithShape(4, 2), tensor.AsFortran(span[float32](8))), `"bad" is column-major`},
		"masked": {
			tensor.New(tensor.WithShape(4), tensor.WithBacking(span[float32](4), []bool{true, false, true, false})),
			`"bad" is masked`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tensors.Dataset([]string{"four", "bad"}, four, c.bad)
			require.ErrorContains(t, err, c.want)
			var at *tensors.FieldError
			require.ErrorAs(t, err, &at)
			require.Equal(t, "bad", at.Name)
		})
	}
	_, err := tensors.Dataset([]string{"a", "b"}, four)
	require.ErrorContains(t, err, "2 names for 1 tensors")
}

// Elements are what they are in memory, whatever their Go type is called.
func TestElementTypesOfTensors(t *testing.T) {
	word := map[int]dtype.Type{32: dtype.Int32, 64: dtype.Int64}[strconv.IntSize]
	uword := map[int]dtype.Type{32: dtype.Uint32, 64: dtype.Uint64}[strconv.IntSize]
	type class uint8
	for want, backings := range map[dtype.Type][]any{
		dtype.Bool:    {[]bool{true, false}},
		dtype.Uint8:   {[]uint8{1, 2}, []class{1, 2}},
		dtype.Int8:    {[]int8{1, -2}},
		dtype.Uint16:  {[]uint16{1, 2 << 9}},
		dtype.Int16:   {[]int16{1, -2 << 9}},
		dtype.Uint32:  {[]uint32{1, 2 << 17}},
		dtype.Int32:   {[]int32{1, -2 << 17}},
		dtype.Uint64:  {[]uint64{1, 2 << 33}},
		dtype.Int64:   {[]int64{1, -2 << 33}},
		dtype.Float32: {[]float32{1, -0.5}},
		dtype.Float64: {[]float64{1, -0.5}},
	} {
		if want == word {
			backings = append(backings, []int{1, -2})
		}
		if want == uword {
			backings = append(backings, []uint{1, 2})
		}
		for _, backing := range backings {
			x := tensor.New(tensor.WithShape(2), tensor.WithBacking(backing))
			ds, err := tensors.Dataset([]string{"x"}, x)
			require.NoError(t, err, "%T", backing)
			require.Equal(t, want, ds.Fields()[0].DType, "%T", backing)
			require.Equal(t, x.Raw, contents(t, ds)["x"], "%T", backing)
		}
	}
}
