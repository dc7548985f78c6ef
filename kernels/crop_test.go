package kernels

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/kernels/kerneltest"
)

func TestCropByDefinition(t *testing.T) {
	r := kerneltest.CPU(t)
	rapid.Check(t, func(t *rapid.T) {
		p := CropParams{
			Height: rapid.IntRange(1, 9).Draw(t, "height"), Width: rapid.IntRange(1, 9).Draw(t, "width"),
			PixelBytes: rapid.IntRange(1, 5).Draw(t, "pixel"), Pad: rapid.IntRange(0, 4).Draw(t, "pad"),
			FlipProbability: rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t, "flip"), Centre: rapid.Bool().Draw(t, "centre"),
			Seed: rapid.Uint64().Draw(t, "seed"), Epoch: 3, Position: rapid.Uint64().Draw(t, "position"),
		}
		p.OutHeight = rapid.IntRange(1, p.Height+2*p.Pad).Draw(t, "out height")
		p.OutWidth = rapid.IntRange(1, p.Width+2*p.Pad).Draw(t, "out width")
		images := rapid.IntRange(0, 4).Draw(t, "images")
		in := randomBytes(p.Seed, images*p.Height*p.Width*p.PixelBytes)

		got := cropped(r, in, images, p)
		require.Equal(t, cropReference(in, images, p), got)
		if images > 1 { // the second image alone is what it was in the batch
			size := len(got) / images
			p.Position++
			require.Equal(t, got[size:2*size], cropped(r, in[len(in)/images:][:len(in)/images], 1, p))
		}
	})
}

// cropReference looks each pixel up.
func cropReference(in []byte, images int, p CropParams) []byte {
	out := []byte{}
	for i := range images {
		at := p.At(i)
		image := in[i*p.Height*p.Width*p.PixelBytes:]
		for y := range p.OutHeight {
			for x := range p.OutWidth {
				if at.Flip {
					x = p.OutWidth - 1 - x
				}
				y, x := at.Top+y-p.Pad, at.Left+x-p.Pad
				if y < 0 || y >= p.Height || x < 0 || x >= p.Width {
					out = append(out, make([]byte, p.PixelBytes)...)
					continue
				}
				out = append(out, image[(y*p.Width+x)*p.PixelBytes:][:p.PixelBytes]...)
			}
		}
	}
	return out
}

// Each placement comes up as often as chance has it: within 6 deviations.
func TestCropPlacementsAreFair(t *testing.T) {
	const draws, tops, lefts = 90_000, 5, 9
	p := CropParams{Height: 32, Width: 32, OutHeight: 32 - tops + 1, OutWidth: 32 - lefts + 1, PixelBytes: 3, FlipProbability: 0.5, Seed: 1}
	var count [tops][lefts][2]int
	for i := range draws {
		at := p.At(i)
		flip := 0
		if at.Flip {
			flip = 1
		}
		count[at.Top][at.Left][flip]++
	}
	const mean = draws / (tops * lefts * 2)
	for _, row := range count {
		for _, cell := range row {
			for _, n := range cell {
				require.InDelta(t, mean, n, 6*32) // 32 is about √mean
			}
		}
	}
}

func TestCropDrawsAnewEachEpochAndSeed(t *testing.T) {
	p := CropParams{Height: 1 << 15, Width: 1 << 15, OutHeight: 1, OutWidth: 1}
	seen := map[Placement]bool{}
	for seed := range uint64(10) {
		for epoch := range uint64(10) {
			p.Seed, p.Epoch = seed, epoch
			for i := range 10 {
				at := p.At(i)
				at.Flip = false
				seen[at] = true
			}
		}
	}
	require.Len(t, seen, 1000)
}

func TestCropNamesEveryMistake(t *testing.T) {
	r := kerneltest.CPU(t)
	err := Crop(r.Stream, r.Alloc(4), r.Alloc(4), CropParams{Width: -1, OutHeight: 1 << 16, Pad: -1, FlipProbability: 2})
	for _, part := range []string{"Height is 0", "Width is -1", "OutHeight is 65536", "OutWidth is 0", "PixelBytes is 0", "Pad is -1", "FlipProbability is 2"} {
		require.ErrorContains(t, err, part)
	}
	err = Crop(r.Stream, r.Alloc(4), r.Alloc(5), CropParams{Height: 2, Width: 2, OutHeight: 3, OutWidth: 2, PixelBytes: 1})
	for _, part := range []string{"OutHeight is 3, want at most 2", "in.Size() is 5", "out.Size() is 4, want 6"} {
		require.ErrorContains(t, err, part)
	}
}

func cropped(r *kerneltest.Rig, in []byte, images int, p CropParams) []byte {
	out := r.Alloc(images * p.OutHeight * p.OutWidth * p.PixelBytes)
	require.NoError(r.T, Crop(r.Stream, out, r.Upload(in), p))
	return r.Download(out)
}
