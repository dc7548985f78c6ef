package chain_test

import (
	"context"
	"encoding/binary"
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
	image := row.Uint8s(0)
	for i := range image {
		image[i] = pixel(index, i/3/width, i/3%width, i%3)
	}
	row.Uint8s(1)[0] = byte(index % 4)
	row.Float32s(2)[0] = float32(index)
	return nil
}

// Cropped and flipped by (seed, epoch, position), normalised, planar, one-hot: for
// a device and for a host consumer the same, and the same whatever the workers.
func TestAChainOfOperations(t *testing.T) {
	const n, batch, seed = 23, 4, 9
	random := kernels.CropParams{Pad: 1, FlipProbability: 0.5}
	transform, err := chain.New(pictures{}.Fields(),
		chain.Crop("image", 4, 4, random),
		chain.OneHot("label", 4),
		chain.Normalize("image", kernels.NormalizeParams{Mean: []float32{.5, .25, 0}, Deviation: []float32{1, .5, 2}, Layout: kernels.ToPlanar}))
	require.NoError(t, err)
	require.Equal(t, []int{3, 4, 4}, transform.Out[0].Shape)
	require.Equal(t, dtype.Float32, transform.Out[0].DType)

	check := func(t *testing.T, ld *loader.Loader, at prefetch.Position, rows int, image, label, weight []byte) {
		order := ld.Order(at.Epoch)
		for row := range rows {
			position := at.Sample + int64(row)
			index := int(order.At(position))
			require.Equal(t, float32(index), f32(weight, row))
			for c := range 4 {
				require.Equal(t, c == index%4, f32(label, row*4+c) == 1)
			}
			p := random
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

func TestAChainSaysWhatDoesNotFit(t *testing.T) {
	_, err := chain.New(pictures{}.Fields(), chain.OneHot("lable", 3), chain.Normalize("weight", kernels.NormalizeParams{}),
		chain.Crop("image", 20, 20, kernels.CropParams{}))
	require.ErrorContains(t, err, `operation 0: no field "lable"`)
	require.ErrorContains(t, err, "operation 1 on weight float32: Normalize takes uint8")
	require.ErrorContains(t, err, "operation 2 on image uint8[6 5 3]: Crop to 20×20")
}
