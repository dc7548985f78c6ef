package chain_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/chain"
)

// pictures are small RGB images whose pixels tell sample and place.
type pictures struct{ n int }

const height, width = 6, 5

func (p pictures) Len() int { return p.n }

func (p pictures) Fields() []loader.Field {
	return []loader.Field{
		{Name: "image", DType: dtype.Uint8, Shape: []int{height, width, 3}},
		{Name: "label", DType: dtype.Uint8},
		{Name: "weight", DType: dtype.Float32},
	}
}

func pixel(index, y, x, c int) byte { return byte(index*31 + y*17 + x*5 + c) }

func (p pictures) Read(_ context.Context, index int, row *loader.Row) error {
	image := row.Bytes("image")
	for i := range image {
		image[i] = pixel(index, i/3/width, i/3%width, i%3)
	}
	row.Bytes("label")[0] = byte(index % 4)
	return loader.Write(row, "weight", float32(index))
}

// Cropped and flipped by (seed, epoch, position), normalised, planar, one-hot: for
// a device and for a host consumer the same, and the same whatever the workers.
func TestAChainOfOperations(t *testing.T) {
	const n, batch, seed = 23, 4, 9
	random := chain.CropOptions{Pad: 1, FlipProbability: 0.5}
	transform, err := chain.New(pictures{}.Fields(),
		chain.Crop("image", 4, 4, random),
		chain.OneHot("label", 4),
		chain.Normalize("image", chain.NormalizeOptions{Mean: []float32{.5, .25, 0}, Std: []float32{1, .5, 2}, Layout: kernels.ToPlanar}))
	require.NoError(t, err)
	require.Equal(t, []int{3, 4, 4}, transform.Out[0].Shape)
	require.Equal(t, dtype.Float32, transform.Out[0].DType)

	check := func(t *testing.T, ld *loader.Loader, at prefetch.Position, rows int, image, label, weight []byte) {
		order := ld.Order(at.Epoch)
		for row := range rows {
			position := at.First + int64(row)
			index := int(order.At(position))
			require.Equal(t, float32(index), f32(weight, row))
			for c := range 4 {
				require.Equal(t, c == index%4, f32(label, row*4+c) == 1)
			}
			p := kernels.CropParams{Pad: random.Pad, FlipProbability: random.FlipProbability}
			p.Height, p.Width, p.OutHeight, p.OutWidth, p.PixelBytes = height, width, 4, 4, 3
			p.Seed, p.Epoch, p.Position = seed, uint64(at.Epoch), uint64(position)
			place := p.At(0)
			for c := range 3 {
				for y := range 4 {
					for x := range 4 {
						from := x
						if place.Flip {
							from = 3 - x
						}
						sy, sx, v := y+place.Top-1, from+place.Left-1, 0.0
						if sy >= 0 && sy < height && sx >= 0 && sx < width {
							v = float64(pixel(index, sy, sx, c))
						}
						want := (v/255 - []float64{.5, .25, 0}[c]) / []float64{1, .5, 2}[c]
						require.InDelta(t, want, f32(image, row*48+c*16+y*4+x), 1e-5)
					}
				}
			}
		}
	}
	lo := loader.Options{Shuffle: true, Seed: seed, Workers: 3, Epochs: 2}
	synctest.Test(t, func(t *testing.T) { // a device
		dev, err := cpu.Open(cpu.Options{Adversary: &cpu.Adversary{Poison: true, LateRead: true, CheckInputs: true}})
		require.NoError(t, err)
		compute, err := dev.NewStream(device.StreamOptions{Name: "compute"})
		require.NoError(t, err)
		ld, err := loader.New(pictures{n}, batch, lo)
		require.NoError(t, err)
		pf, err := prefetch.New(compute, ld, prefetch.Options{Transform: transform})
		require.NoError(t, err)
		for pf.Epoch() < 2 {
			for b, err := range pf.Batches(t.Context()) {
				require.NoError(t, err)
				var host [3][]byte
				for i, f := range b.Fields() {
					host[i] = make([]byte, f.View.Size())
					require.NoError(t, compute.CopyD2H(host[i], f.View))
				}
				require.NoError(t, compute.Synchronize(t.Context()))
				check(t, ld, b.Position(), b.Len(), host[0], host[1], host[2])
			}
		}
		require.NoError(t, pf.Close())
		require.NoError(t, compute.Close())
		require.NoError(t, dev.Close())
	})
	synctest.Test(t, func(t *testing.T) { // a host consumer
		lo.Workers = 1
		ld, err := loader.New(pictures{n}, batch, lo)
		require.NoError(t, err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{Transform: transform})
		require.NoError(t, err)
		for pf.Epoch() < 2 {
			for b, err := range pf.Batches(t.Context()) {
				require.NoError(t, err)
				check(t, ld, b.Position(), b.Len(), b.Field("image").Bytes, b.Field("label").Bytes, b.Field("weight").Bytes)
			}
		}
		require.NoError(t, pf.Close())
	})
}

func f32(b []byte, i int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])) }

// Each mistake is told, with the operation, the field as it comes in, and what may be
// there.
func TestAChainSaysWhatDoesNotFit(t *testing.T) {
	_, err := chain.New(pictures{}.Fields(), chain.OneHot("lable", 3), chain.Normalize("weight", chain.NormalizeOptions{}),
		chain.Crop("image", 20, 20, chain.CropOptions{}))
	require.ErrorContains(t, err, `chain: operation 0, OneHot of lable: Field is "lable", want a field of the loader's`)
	require.ErrorContains(t, err, "chain: operation 1, Normalize of weight float32: DType is float32, want uint8")
	require.ErrorContains(t, err, "chain: operation 2, Crop of image uint8[6 5 3]: OutHeight is 20, want at most 6: Height is 6, Pad 0\n"+
		"chain: operation 2, Crop of image uint8[6 5 3]: OutWidth is 20")

	_, err = chain.New(pictures{}.Fields(), chain.OneHot("label", 3), chain.Normalize("label", chain.NormalizeOptions{}))
	var op *chain.OpError
	require.ErrorAs(t, err, &op)
	require.Equal(t, 1, op.Index)
	require.Equal(t, "Normalize", op.Op)
	require.Equal(t, loader.Field{Name: "label", DType: dtype.Float32, Shape: []int{3}}, op.Field)
	var option *chain.OptionError
	require.ErrorAs(t, err, &option)
	require.ErrorIs(t, err, device.ErrInvalid)
	require.Equal(t, chain.OptionError{Option: "DType", Value: dtype.Float32, Want: "uint8"}, *option)
	var field *loader.OptionError
	_, err = chain.New(nil)
	require.ErrorAs(t, err, &field)
	require.Equal(t, "Fields", field.Option)
}

// An error of Apply says which operation of the chain it was, and on what.
func TestAnOperationThatFailsIsNamed(t *testing.T) {
	boom := errors.New("boom")
	fails := chain.Op{Name: "Blur", Field: "image",
		Output: func(f loader.Field) (loader.Field, error) { return f, nil },
		Apply:  func(*device.Stream, prefetch.Field, prefetch.Field, prefetch.Fields) error { return boom },
	}
	transform, err := chain.New(pictures{}.Fields(), chain.OneHot("label", 4), chain.Convert("image", dtype.Float32), fails)
	require.NoError(t, err)
	ld, err := loader.New(pictures{8}, 4, loader.Options{Epochs: 1})
	require.NoError(t, err)
	pf, err := prefetch.NewHost(ld, prefetch.Options{Transform: transform})
	require.NoError(t, err)
	for _, failed := range pf.Batches(t.Context()) {
		err = failed
	}
	require.ErrorIs(t, err, boom)
	var op *chain.OpError
	require.ErrorAs(t, err, &op)
	require.EqualError(t, op, "chain: operation 2, Blur of image float32[6 5 3]: boom")
	require.NoError(t, pf.Close())
}
