package filter

import (
	"fmt"
	"image/color"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/kernels/kerneltest"
)

// apply filters the frame on r's device.
func apply(r *kerneltest.Rig, o Options, frame []byte) Planes {
	f, err := New(r.Stream, o)
	require.NoError(r.T, err)
	r.Owns(f)
	var out Planes
	for i := range out {
		out[i] = r.Alloc(o.Width * o.Height)
	}
	require.NoError(r.T, f.Apply(r.Stream, out, r.Upload(frame)))
	return out
}

func noise(o Options) []byte {
	random := rand.New(rand.NewPCG(uint64(o.Width), uint64(o.Height)))
	frame := make([]byte, channels*o.Width*o.Height)
	for i := range frame {
		frame[i] = byte(random.Uint32())
	}
	return frame
}

func TestWeightsSumUpToOne(t *testing.T) {
	for radius := 1; radius <= MaxRadius; radius++ {
		w := gaussian(radius)
		sum := w[0]
		for k := 1; k <= MaxRadius; k++ {
			sum += 2 * w[k]
			require.Equal(t, k <= radius, w[k] > 0, "radius %d, distance %d", radius, k)
			require.LessOrEqual(t, w[k], w[k-1])
		}
		require.EqualValues(t, one, sum)
	}
}

// blurReference is a blur in two dimensions at once, in float64, and not rounded.
func blurReference(o Options, frame []byte) []float64 {
	w := gaussian(o.Radius)
	weight := func(k int) float64 { return float64(w[max(k, -k)]) / one }
	out := make([]float64, len(frame))
	for y := range o.Height {
		for x := range o.Width {
			for dy := -o.Radius; dy <= o.Radius; dy++ {
				for dx := -o.Radius; dx <= o.Radius; dx++ {
					from := min(max(y+dy, 0), o.Height-1)*o.Width + min(max(x+dx, 0), o.Width-1)
					for c := range channels {
						out[channels*(y*o.Width+x)+c] += weight(dx) * weight(dy) * float64(frame[channels*from+c])
					}
				}
			}
		}
	}
	return out
}

func TestBlurIsTheReferenceRounded(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := Options{Width: rapid.IntRange(1, 40).Draw(rt, "width"), Height: rapid.IntRange(1, 30).Draw(rt, "height"),
			Radius: rapid.IntRange(1, MaxRadius).Draw(rt, "radius"), Passes: 1}
		r, frame := kerneltest.CPU(t), noise(o)
		f, err := New(r.Stream, o)
		require.NoError(t, err)
		r.Owns(f)
		require.NoError(t, f.blurWay(r.Stream, horizontal, f.between.View(), r.Upload(frame)))
		require.NoError(t, f.blurWay(r.Stream, vertical, f.blurred.View(), f.between.View()))
		got := r.Download(f.blurred.View())
		for i, want := range blurReference(o, frame) {
			// A half for the byte, and half of 1/256 for what lies between the two ways.
			require.InDelta(t, want, float64(got[i]), 0.5+0.5/256+1e-9, "byte %d of %+v", i, o)
		}
	})
}

// Sums must not overflow where a picture is as bright as can be, and an even
// picture stays as it is.
func TestBlurKeepsEvenPictures(t *testing.T) {
	for _, v := range []byte{0, 1, 127, 254, 255} {
		o := Options{Width: 23, Height: 19, Radius: MaxRadius, Passes: 3}
		frame := make([]byte, channels*o.Width*o.Height)
		for i := range frame {
			frame[i] = v
		}
		r := kerneltest.CPU(t)
		luma := r.Download(apply(r, o, frame)[0])
		table := gamma(displayGamma)
		for _, got := range luma {
			require.Equal(t, table[v], got)
		}
	}
}

func TestGammaIsRisingAndKeepsItsEnds(t *testing.T) {
	table := gamma(displayGamma)
	require.EqualValues(t, 0, table[0])
	require.EqualValues(t, 255, table[255])
	for v := 1; v < 256; v++ {
		require.GreaterOrEqual(t, table[v], table[v-1])
		want := 255 * math.Pow(float64(v)/255, 1/displayGamma)
		require.InDelta(t, want, float64(table[v]), 0.5)
	}
}

// Each pixel is what Go's own conversion makes of it, so that an image.YCbCr of
// the planes shows the frame.
func TestColourIsThatOfJPEG(t *testing.T) {
	o := Options{Width: 509, Height: 300}
	r, frame := kerneltest.CPU(t), noise(o)
	copy(frame, []byte{255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 255, 255, 0, 0, 255, 255, 255, 0, 255})
	f, err := New(r.Stream, o)
	require.NoError(t, err)
	r.Owns(f)
	var out Planes
	for i := range out {
		out[i] = r.Alloc(o.Width * o.Height)
	}
	require.NoError(t, f.colour(r.Stream, out, r.Upload(frame)))
	luma, blue, red := r.Download(out[0]), r.Download(out[1]), r.Download(out[2])
	table := gamma(displayGamma)
	for i := range luma {
		y, cb, cr := color.RGBToYCbCr(table[frame[channels*i]], table[frame[channels*i+1]], table[frame[channels*i+2]])
		require.Equal(t, [3]uint8{y, cb, cr}, [3]uint8{luma[i], blue[i], red[i]}, "pixel %d", i)
	}
}

// TestGoAndPTXAgree needs a GPU.
func TestGoAndPTXAgree(t *testing.T) {
	var cases []kerneltest.Case
	for _, o := range []Options{
		{Width: 1, Height: 1},
		{Width: 1, Height: 2500, Radius: 3},
		{Width: 2500, Height: 1, Radius: 5},
		{Width: 17, Height: 300, Radius: 8, Passes: 3},
		{Width: 641, Height: 359, Radius: 6, Passes: 2},
		{Width: 1920, Height: 1080, Radius: 8, Passes: 4},
	} {
		cases = append(cases, kerneltest.Case{Name: fmt.Sprintf("%dx%d/radius=%d/passes=%d", o.Width, o.Height, o.Radius, o.Passes),
			Run: func(r *kerneltest.Rig) []device.View {
				out := apply(r, o, noise(o))
				return out[:]
			}})
	}
	kerneltest.Agree(t, cases)
}

func TestMistakesAreAllReported(t *testing.T) {
	r := kerneltest.CPU(t)
	before := r.Device.Usage()
	_, err := New(r.Stream, Options{Width: 0, Height: 3, Radius: MaxRadius + 1, Passes: -1})
	for _, field := range []string{"Width and Height", "Radius", "Passes"} {
		require.ErrorContains(t, err, field)
	}
	_, err = New(r.Stream, Options{Width: maxPixels, Height: 2})
	require.ErrorContains(t, err, "Width and Height")
	require.Equal(t, before, r.Device.Usage())

	f, err := New(r.Stream, Options{Width: 4, Height: 4})
	require.NoError(t, err)
	r.Owns(f)
	err = f.Apply(r.Stream, Planes{r.Alloc(16), r.Alloc(15), r.Alloc(16)}, r.Alloc(16))
	require.ErrorContains(t, err, "in has 16 bytes, want 48")
	require.ErrorContains(t, err, "plane 1 of out has 15 bytes, want 16")
}
