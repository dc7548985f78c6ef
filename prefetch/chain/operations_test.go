package chain_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/chain"
)

// tiles are uint8 images of any shape whose bytes count from the sample's index.
type tiles struct {
	n     int
	shape []int
}

func (d tiles) Len() int { return d.n }

func (d tiles) Fields() []loader.Field {
	return []loader.Field{{Name: "image", DType: dtype.Uint8, Shape: d.shape}}
}

func (d tiles) Read(_ context.Context, index int, row *loader.Row) error {
	b := row.Bytes("image")
	for i := range b {
		b[i] = byte(index + i)
	}
	return nil
}

// images runs d through the transform for a host consumer and returns every image's
// float32 values, in order.
func images(t *testing.T, d tiles, transform *prefetch.Transform) (all [][]float32) {
	t.Helper()
	ld, err := loader.New(d, 2, loader.Options{Epochs: 1})
	require.NoError(t, err)
	pf, err := prefetch.NewHost(ld, prefetch.Options{Transform: transform})
	require.NoError(t, err)
	for b, err := range pf.Batches(t.Context()) {
		require.NoError(t, err)
		f := b.Field("image")
		size := len(f.Bytes) / 4 / b.Len()
		for row := range b.Len() {
			image := make([]float32, size)
			for i := range image {
				image[i] = f32(f.Bytes, row*size+i)
			}
			all = append(all, image)
		}
	}
	require.NoError(t, pf.Close())
	return all
}

func newChain(t *testing.T, d tiles, ops ...chain.Op) *prefetch.Transform {
	t.Helper()
	c, err := chain.New(d.Fields(), ops...)
	require.NoError(t, err)
	return c
}

// planes is image index of d, [h, w, c], as planes of (v/255 - mean)/deviation.
func planes(d tiles, index int, mean, deviation []float32) []float32 {
	h, w, c := d.shape[0], d.shape[1], d.shape[2]
	out := make([]float32, h*w*c)
	for i := range out {
		v := float32(byte(index+i)) / 255
		out[i%c*h*w+i/c] = (v - mean[i%c]) / deviation[i%c]
	}
	return out
}

func requireImages(t *testing.T, d tiles, mean, deviation []float32, got [][]float32) {
	t.Helper()
	require.Len(t, got, d.n)
	for i, image := range got {
		require.InDeltaSlice(t, planes(d, i, mean, deviation), image, 1e-5, "image %d", i)
	}
}

// One Op serves several chains of other shapes, whichever was made last.
func TestAnOpKeepsNothingOfAChain(t *testing.T) {
	planar := chain.Normalize("image", chain.NormalizeOptions{Layout: kernels.ToPlanar})
	crop := chain.Crop("image", 2, 2, chain.CropOptions{Centre: true})
	large, small, grey := tiles{3, []int{6, 4, 3}}, tiles{3, []int{2, 2, 3}}, tiles{3, []int{4, 3, 1}}
	zero, one := make([]float32, 3), []float32{1, 1, 1}

	first := newChain(t, large, planar)
	cropped := newChain(t, large, crop, planar)
	second, third := newChain(t, small, planar), newChain(t, grey, planar)
	newChain(t, small, crop, planar)
	for range 2 {
		requireImages(t, large, zero, one, images(t, large, first))
		requireImages(t, small, zero, one, images(t, small, second))
		requireImages(t, grey, zero, one, images(t, grey, third))
		got := images(t, large, cropped)
		require.Len(t, got[1], 2*2*3)
		from := 1 + (2*4+1)*3 // the second image's centre begins at row 2, column 1
		require.InDelta(t, float32(from)/255, got[1][0], 1e-6)
		require.InDelta(t, float32(from+1)/255, got[1][4], 1e-6, "the second plane")
	}
}

// The number of channels is the shape's: one value, or none, is for all of them.
func TestNormalizeTakesItsChannelsFromTheShape(t *testing.T) {
	d := tiles{3, []int{4, 2, 3}}
	three := []float32{.25, .25, .25}
	requireImages(t, d, make([]float32, 3), []float32{1, 1, 1},
		images(t, d, newChain(t, d, chain.Normalize("image", chain.NormalizeOptions{Layout: kernels.ToPlanar}))))
	requireImages(t, d, three, []float32{1, 2, 4},
		images(t, d, newChain(t, d, chain.Normalize("image", chain.NormalizeOptions{
			Mean: []float32{.25}, Std: []float32{1, 2, 4}, Layout: kernels.ToPlanar}))))
	flat := tiles{2, []int{12}}
	got := images(t, flat, newChain(t, flat, chain.Normalize("image", chain.NormalizeOptions{Std: []float32{.5}})))
	require.InDelta(t, 11/255./.5, got[0][11], 1e-5)
}

// Every parameter that does not go with the shape or the element type is refused when
// the chain is made, with its name.
func TestOperationsAreCheckedAgainstTheShape(t *testing.T) {
	image := func(shape ...int) loader.Field { return loader.Field{Name: "x", DType: dtype.Uint8, Shape: shape} }
	of := func(t dtype.Type, shape ...int) loader.Field { return loader.Field{Name: "x", DType: t, Shape: shape} }
	normalize := func(o chain.NormalizeOptions) chain.Op { return chain.Normalize("x", o) }
	crop := func(h, w int, o chain.CropOptions) chain.Op { return chain.Crop("x", h, w, o) }
	three := []float32{1, 1, 1}
	nan := float32(math.NaN())
	for name, c := range map[string]struct {
		field loader.Field
		op    chain.Op
		want  string
	}{
		"RGB mean, RGBA image":   {image(4, 4, 4), normalize(chain.NormalizeOptions{Mean: three, Layout: kernels.ToPlanar}), "Mean is [1 1 1], want 1 value, or one for each of the"},
		"RGB mean, interleaved":  {image(4, 3, 4), normalize(chain.NormalizeOptions{Mean: three}), "Mean is [1 1 1], want 1 value, or one for each of the"},
		"RGB deviation, planar":  {image(4, 3, 3), normalize(chain.NormalizeOptions{Std: three, Layout: kernels.Planar}), "Std is [1 1 1], want 1 value, or one for each of the 4 channels of the shape [4 3 3]"},
		"RGB mean, flat":         {image(48), normalize(chain.NormalizeOptions{Mean: three}), "Mean is [1 1 1], want 1 value, or one for each of the"},
		"RGB mean, scalar":       {image(), normalize(chain.NormalizeOptions{Mean: three}), "one axis or more"},
		"two axes to planes":     {image(4, 3), normalize(chain.NormalizeOptions{Layout: kernels.ToPlanar}), "three axes"},
		"too many channels":      {image(2, 2, 9), normalize(chain.NormalizeOptions{Layout: kernels.ToPlanar}), "Channels is 9"},
		"a layout that is none":  {image(4, 4, 3), normalize(chain.NormalizeOptions{Layout: 9}), "Layout is 9"},
		"no deviation":           {image(4, 4, 3), normalize(chain.NormalizeOptions{Std: []float32{0}}), "Std"},
		"a mean that is none":    {image(4, 4, 3), normalize(chain.NormalizeOptions{Mean: []float32{nan}}), "Mean"},
		"to integers":            {image(4, 4, 3), normalize(chain.NormalizeOptions{Out: dtype.Int8}), "Out is int8"},
		"of floats":              {of(dtype.Float32, 4, 4, 3), normalize(chain.NormalizeOptions{}), "DType is float32, want uint8"},
		"one-hot of floats":      {of(dtype.Float32), chain.OneHot("x", 3), "Labels is float32"},
		"one-hot of no classes":  {image(), chain.OneHot("x", 0), "Classes is 0"},
		"one-hot of all classes": {image(), chain.OneHot("x", math.MaxInt), fmt.Sprint("Classes is ", math.MaxInt)},
		"one-hot beyond memory":  {image(math.MaxInt32, math.MaxInt32), chain.OneHot("x", math.MaxInt32), "fits"},
		"convert to int32":       {image(2), chain.Convert("x", dtype.Int32), "to is int32, want uint8, float16"},
		"convert of int64":       {of(dtype.Int64, 2), chain.Convert("x", dtype.Float32), "DType is int64, want uint8, float16"},
		"convert to nothing":     {image(2), chain.Convert("x", dtype.Invalid), "to is invalid, want"},
		"convert beyond memory":  {image(min(1<<62, math.MaxInt)), chain.Convert("x", dtype.Float32), "fits"},
		"crop of two axes":       {image(4, 4), crop(2, 2, chain.CropOptions{}), "three axes"},
		"crop beyond the image":  {image(4, 4, 3), crop(5, 2, chain.CropOptions{}), "Crop of x uint8[4 4 3]"},
		"crop of planes":         {image(3, 8, 8), crop(4, 4, chain.CropOptions{}), "taken as [H W C]: Crop comes before a Normalize to planes"},
		"crop of nothing":        {image(0, 4, 3), crop(1, 1, chain.CropOptions{Pad: 1}), "Height is 0"},
		"crop to nothing":        {image(4, 4, 3), crop(0, 2, chain.CropOptions{}), "OutHeight is 0"},
		"crop to MaxInt":         {image(4, 4, 3), crop(math.MaxInt, 2, chain.CropOptions{Pad: math.MaxInt}), fmt.Sprint("Pad is ", math.MaxInt)},
		"crop that pads off":     {image(4, 4, 3), crop(2, 2, chain.CropOptions{Pad: -1}), "Pad is -1"},
		"crop of a flip of 2":    {image(4, 4, 3), crop(2, 2, chain.CropOptions{FlipProbability: 2}), "FlipProbability is 2"},
		"crop of a flip of NaN":  {image(4, 4, 3), crop(2, 2, chain.CropOptions{FlipProbability: math.NaN()}), "FlipProbability is NaN"},
		"an Op of nothing":       {image(4), chain.Op{Field: "x"}, "an Op without a name of x uint8[4]: Op.Output is <nil>, want a function"},
	} {
		_, err := chain.New([]loader.Field{c.field}, c.op)
		require.ErrorContains(t, err, c.want, name)
		require.ErrorContains(t, err, "chain: operation 0, ", name)
	}
	_, err := chain.New([]loader.Field{image(4), image(4)}, chain.Convert("x", dtype.Float32))
	require.ErrorContains(t, err, "Fields[1] (x)")
}

// What the caller hands in may be changed afterwards.
func TestAChainSharesNothingWithItsCaller(t *testing.T) {
	d := tiles{2, []int{4, 2, 3}}
	mean, deviation := []float32{.1, .2, .3}, []float32{1, 2, 4}
	fields := []loader.Field{{Name: "image", DType: dtype.Uint8, Shape: slices.Clone(d.shape)}}
	shaped := chain.Op{Field: "image",
		Output: func(f loader.Field) (loader.Field, error) { f.Shape[0] = 99; f.Shape = d.shape; return f, nil },
		Apply: func(s *device.Stream, out, in prefetch.Field, _ prefetch.Fields) error {
			return s.CopyD2D(out.View, in.View)
		}}
	c, err := chain.New(fields, shaped, chain.Normalize("image", chain.NormalizeOptions{Mean: mean, Std: deviation, Layout: kernels.ToPlanar}))
	require.NoError(t, err)
	require.Equal(t, []int{4, 2, 3}, fields[0].Shape, "Output got a copy")
	mean[0], deviation[1] = 77, 77
	fields[0].Name, fields[0].Shape[0] = "gone", 77
	requireImages(t, d, []float32{.1, .2, .3}, []float32{1, 2, 4}, images(t, d, c))
}

// A chain made for other fields than the loader's is refused, also where the sizes
// happen to agree.
func TestATransformIsForItsFields(t *testing.T) {
	made := tiles{4, []int{4, 4, 3}}
	c := newChain(t, made, chain.Normalize("image", chain.NormalizeOptions{Layout: kernels.ToPlanar}))
	for want, d := range map[string]loader.Dataset{
		"Transform.In has the field image uint8[4 4 3], the loader fills image uint8[2 8 3]": tiles{4, []int{2, 8, 3}},
		"the loader fills the field label uint8,":                                            pictures{4},
		"Transform.In has the field image":                                                   bytes{tiles{n: 4}},
	} {
		ld, err := loader.New(d, 2, loader.Options{})
		require.NoError(t, err)
		_, err = prefetch.NewHost(ld, prefetch.Options{Transform: c})
		require.ErrorContains(t, err, want)
	}
}

// bytes is a dataset whose one field has another name than the images'.
type bytes struct{ tiles }

func (bytes) Fields() []loader.Field {
	return []loader.Field{{Name: "bytes", DType: dtype.Uint8, Shape: []int{48}}}
}
