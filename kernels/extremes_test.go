package kernels

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels/kerneltest"
)

// An operation with a parameter structure, valid for the views that call gives it and
// out bytes of output.
type parametrised struct {
	params any
	call   func(r *kerneltest.Rig, params any, out device.View) error
	out    int
}

func parametrisedOperations() []parametrised {
	return []parametrised{
		{NormalizeParams{Mean: []float32{1, 2}, Std: []float32{1, 2}, Channels: 2, Layout: ToPlanar, Pixels: 2},
			func(r *kerneltest.Rig, p any, out device.View) error {
				return Normalize(r.Stream, out, r.Alloc(4), p.(NormalizeParams))
			}, 16},
		{NormalizeParams{Layout: Planar, Pixels: 4},
			func(r *kerneltest.Rig, p any, out device.View) error {
				return Normalize(r.Stream, out, r.Alloc(4), p.(NormalizeParams))
			}, 16},
		{CropParams{Height: 2, Width: 2, OutHeight: 1, OutWidth: 1, PixelBytes: 1},
			func(r *kerneltest.Rig, p any, out device.View) error {
				return Crop(r.Stream, out, r.Alloc(8), p.(CropParams))
			}, 2},
		{OneHotParams{Labels: dtype.Int32, Classes: 3},
			func(r *kerneltest.Rig, p any, out device.View) error {
				return OneHot(r.Stream, out, r.Alloc(4), p.(OneHotParams))
			}, 12},
		{GatherParams{RowBytes: 4, Index: dtype.Int32},
			func(r *kerneltest.Rig, p any, out device.View) error {
				return Gather(r.Stream, out, r.Alloc(8), r.Upload(dtype.Bytes([]int32{0, 1, 2, -1})), p.(GatherParams))
			}, 16},
		{GatherParams{RowBytes: 4, Index: dtype.Int32}, // any number of rows divides an empty table
			func(r *kerneltest.Rig, p any, out device.View) error {
				return Gather(r.Stream, out, device.View{}, r.Upload(dtype.Bytes([]int32{0, 1, 2, -1})), p.(GatherParams))
			}, 16},
	}
}

// extremes of a field's kind: the ends of its type, those of the types that it may be
// cut to, and numbers whose products with small ones wrap to 0 or to little.
func extremes(v reflect.Value) (values []reflect.Value) {
	add := func(x any) { values = append(values, reflect.ValueOf(x).Convert(v.Type())) }
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		for _, x := range []int64{math.MinInt64, math.MinInt64 + 1, -1 << 32, -1 << 31, -1, 0, 1, 1 << 15, 1<<15 + 1, 1 << 16, 1<<16 + 1,
			math.MaxInt32, 1 << 31, math.MaxUint32, 1 << 32, 1<<32 + 1, 1 << 60, 1 << 61, 1<<61 + 1, 1 << 62, math.MaxInt64 - 1, math.MaxInt64} {
			add(x)
		}
	case reflect.Uint64:
		for _, x := range []uint64{0, 1, math.MaxInt64, 1 << 63, math.MaxUint64} {
			add(x)
		}
	case reflect.Uint8:
		for x := range 256 {
			add(x)
		}
	case reflect.Float64:
		for _, x := range []float64{math.NaN(), math.Inf(-1), -math.MaxFloat64, -1, -math.SmallestNonzeroFloat64, 0, math.SmallestNonzeroFloat64, 1, math.Nextafter(1, 2), math.MaxFloat64, math.Inf(1)} {
			add(x)
		}
	case reflect.Bool:
		add(true)
		add(false)
	case reflect.Slice:
		for _, x := range []float32{float32(math.NaN()), float32(math.Inf(1)), math.MaxFloat32, -math.MaxFloat32, 0, math.SmallestNonzeroFloat32} {
			add([]float32{x})
			add([]float32{1, x})
			add([]float32{1, 1, x})
		}
		add(make([]float32, MaxChannels+1))
		add(make([]float32, 1<<16))
		add([]float32(nil))
	}
	return values
}

// Every field of every parameter structure at its extremes, with outputs of the right
// size, of none, and of one that a wrapped product could ask for: the call is refused by
// that field's name before anything is launched, or does what it says within its
// memory. The rig fails a launch that no GPU would take.
func TestParametersAtTheirExtremes(t *testing.T) {
	all := parametrisedOperations()
	covered := map[string]bool{}
	for _, o := range all {
		shape := reflect.TypeOf(o.params)
		covered[shape.Name()] = true
		for i := range shape.NumField() {
			name := shape.Field(i).Name
			values := extremes(reflect.ValueOf(o.params).Field(i))
			require.NotEmpty(t, values, "%s.%s: no extremes of a %v", shape.Name(), name, shape.Field(i).Type)
			t.Run(shape.Name()+"."+name, func(t *testing.T) {
				r := kerneltest.CPU(t)
				for _, value := range values {
					params := reflect.New(shape).Elem()
					params.Set(reflect.ValueOf(o.params))
					params.Field(i).Set(value)
					for _, out := range []int{o.out, 0, 4} {
						err := o.call(r, params.Interface(), r.Alloc(out))
						if err == nil {
							require.NoError(t, r.Stream.Synchronize(t.Context()), "%v with %d bytes of out", value, out)
							continue
						}
						var typed *Error
						require.ErrorAs(t, err, &typed)
						require.ErrorIs(t, err, device.ErrInvalid)
						if out == o.out && !strings.Contains(err.Error(), ".Size() is ") {
							require.ErrorContains(t, err, name, "%v", value)
						}
					}
				}
			})
		}
	}
	for _, name := range exportedParams(t) {
		require.True(t, covered[name], "%s has no row in this test", name)
	}
}

// exportedParams are the package's parameter structures.
func exportedParams(t *testing.T) (names []string) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.TypeSpec); ok && s.Name.IsExported() {
				if _, ok := s.Type.(*ast.StructType); ok && s.Name.Name != "Error" && s.Name.Name != "Placement" {
					names = append(names, s.Name.Name)
				}
			}
			return true
		})
	}
	require.NotEmpty(t, names)
	return names
}

// Views whose sizes wrap when they are multiplied: nothing is launched.
func TestSizesThatWrap(t *testing.T) {
	r := kerneltest.CPU(t)
	big := func(bytes int64) device.View { return r.Device.ViewOf(1<<20, bytes) }
	empty := device.View{}
	for name, err := range map[string]error{
		"Convert":        Convert(r.Stream, empty, big(1<<62), dtype.Float32, dtype.Uint8),
		"Normalize":      Normalize(r.Stream, empty, big(1<<62), NormalizeParams{}),
		"OneHot":         OneHot(r.Stream, empty, big(1<<32), OneHotParams{Labels: dtype.Uint8, Classes: 1 << 30}),
		"Crop":           Crop(r.Stream, empty, big(1<<34), CropParams{Height: 1, Width: 1, PixelBytes: 1, Pad: 1 << 14, OutHeight: 1 << 15, OutWidth: 1 << 15}),
		"Gather":         Gather(r.Stream, empty, empty, big(16), GatherParams{RowBytes: 1 << 62, Index: dtype.Int32}),
		"negative in":    Normalize(r.Stream, empty, big(-4), NormalizeParams{}),
		"negative out":   Fill(r.Stream, big(-4), dtype.Float32, 1),
		"negative index": Gather(r.Stream, empty, empty, big(math.MinInt64), GatherParams{RowBytes: 4, Index: dtype.Int32}),
		"Spin":           Spin(r.Stream, math.MaxInt64),
		"Spin backwards": Spin(r.Stream, math.MinInt64),
		"Spin long":      Spin(r.Stream, 2*time.Hour),
		"checksum":       Checksum(r.Stream, big(8), big(-8)),
	} {
		var typed *Error
		require.ErrorAs(t, err, &typed, name)
		require.ErrorIs(t, err, device.ErrInvalid, name)
	}
	require.NoError(t, r.Stream.Synchronize(t.Context()))
}

// Element types that are none, for the operations that take them one by one.
func TestEveryElementType(t *testing.T) {
	r := kerneltest.CPU(t)
	in, out := r.Alloc(8), r.Alloc(64)
	for a := range 256 {
		from := dtype.Type(a)
		if err := Fill(r.Stream, out, from, 1); !Convertible(from) {
			require.ErrorIs(t, err, device.ErrInvalid)
		} else {
			require.NoError(t, err)
		}
		for b := range 256 {
			to := dtype.Type(b)
			if Convertible(from) && Convertible(to) {
				require.NoError(t, Convert(r.Stream, out.Slice(0, int64(8/from.Size()*to.Size())), in, to, from))
			} else {
				require.ErrorIs(t, Convert(r.Stream, out, in, to, from), device.ErrInvalid)
			}
		}
	}
}

// What is written may not be what is read: threads run in any order.
func TestOverlapsAreRefused(t *testing.T) {
	r := kerneltest.CPU(t)
	m := r.Alloc(64)
	index := r.Upload(dtype.Bytes([]int32{0, 1}))
	for name, err := range map[string]error{
		"Normalize":    Normalize(r.Stream, m.Slice(0, 32), m.Slice(28, 8), NormalizeParams{}),
		"Convert":      Convert(r.Stream, m.Slice(0, 8), m.Slice(0, 8), dtype.BFloat16, dtype.Float16),
		"OneHot":       OneHot(r.Stream, m.Slice(0, 16), m.Slice(12, 4), OneHotParams{Labels: dtype.Int32, Classes: 4}),
		"Crop":         Crop(r.Stream, m.Slice(0, 1), m.Slice(0, 4), CropParams{Height: 2, Width: 2, OutHeight: 1, OutWidth: 1, PixelBytes: 1}),
		"Gather":       Gather(r.Stream, m.Slice(0, 8), m.Slice(4, 8), index, GatherParams{RowBytes: 4, Index: dtype.Int32}),
		"Gather index": Gather(r.Stream, index, m.Slice(4, 8), index, GatherParams{RowBytes: 4, Index: dtype.Int32}),
		"Checksum":     Checksum(r.Stream, m.Slice(0, 8), m),
	} {
		require.ErrorContains(t, err, "Overlaps(", name)
	}
}
