package chain_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/chain"
)

// Operations that are done element by element, or along other dimensions, keep a field's
// lengths; the others refuse it when the chain is made, and name it.
func TestOperationsOnARaggedField(t *testing.T) {
	ragged := &loader.Ragged{Multiple: 4, Pad: 7, Length: "n", Mask: "m"}
	kept := &loader.Ragged{Multiple: 4, Length: "n", Mask: "m"} // its padding is computed
	line := loader.Field{Name: "x", DType: dtype.Uint8, Shape: []int{30}, Ragged: ragged}
	pixels := loader.Field{Name: "x", DType: dtype.Uint8, Shape: []int{30, 3}, Ragged: ragged}
	images := loader.Field{Name: "x", DType: dtype.Uint8, Shape: []int{30, 8, 3}, Ragged: ragged}
	apply := func(*device.Stream, prefetch.Field, prefetch.Field, prefetch.Fields) error { return nil }
	own := func(out loader.Field) chain.Op {
		return chain.Op{Name: "own", Field: "x", Apply: apply, Output: func(loader.Field) (loader.Field, error) { return out, nil }}
	}
	three := []float32{1, 2, 3}
	for name, c := range map[string]struct {
		in    loader.Field
		op    chain.Op
		shape []int // nil where it is refused
		want  string
	}{
		"Convert":                   {line, chain.Convert("x", dtype.Float16), []int{30}, ""},
		"OneHot":                    {line, chain.OneHot("x", 5), []int{30, 5}, ""},
		"Normalize":                 {line, chain.Normalize("x", chain.NormalizeOptions{}), []int{30}, ""},
		"Normalize pixels":          {pixels, chain.Normalize("x", chain.NormalizeOptions{Mean: three}), []int{30, 3}, ""},
		"Normalize along lengths":   {line, chain.Normalize("x", chain.NormalizeOptions{Mean: three}), nil, "a field of one size"},
		"Normalize planes":          {images, chain.Normalize("x", chain.NormalizeOptions{Layout: kernels.Planar}), nil, "a field of one size"},
		"Normalize to planes":       {images, chain.Normalize("x", chain.NormalizeOptions{Layout: kernels.ToPlanar}), nil, "a field of one size"},
		"Crop":                      {images, chain.Crop("x", 4, 4, chain.CropOptions{}), nil, "a field of one size"},
		"its own, ragged":           {line, own(loader.Field{DType: dtype.Int8, Shape: []int{30, 2}, Ragged: &loader.Ragged{}}), []int{30, 2}, ""},
		"its own, with a maximum":   {line, own(loader.Field{DType: dtype.Int8, Shape: []int{31}, Ragged: &loader.Ragged{}}), nil, "30 as its first dimension"},
		"its own, of one number":    {line, own(loader.Field{DType: dtype.Int8, Ragged: &loader.Ragged{}}), nil, "30 as its first dimension"},
		"ragged of what is not":     {loader.Field{Name: "x", DType: dtype.Int8, Shape: []int{30}}, own(line), nil, "an output of one size"},
		"its own, ragged no longer": {line, own(loader.Field{DType: dtype.Int8}), []int{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			transform, err := chain.New([]loader.Field{{Name: "other", DType: dtype.Int8}, c.in}, c.op)
			if c.shape == nil {
				var refused *chain.OpError
				require.ErrorAs(t, err, &refused)
				require.Equal(t, c.in, refused.Field)
				var option *chain.OptionError
				require.ErrorAs(t, err, &option)
				require.ErrorContains(t, err, c.want)
				return
			}
			require.NoError(t, err)
			out := transform.Out[1]
			require.Equal(t, c.shape, append([]int{}, out.Shape...))
			if len(out.Shape) > 0 {
				require.Equal(t, kept, out.Ragged)
			}
			require.Equal(t, ragged, transform.In[1].Ragged)
		})
	}
}
