package kernels

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels/kerneltest"
)

func TestNormalizeAgainstFloat64(t *testing.T) {
	r := kerneltest.CPU(t)
	rapid.Check(t, func(t *rapid.T) {
		samples, pixels := rapid.IntRange(0, 4).Draw(t, "samples"), rapid.IntRange(1, 70).Draw(t, "pixels")
		channels := rapid.IntRange(1, MaxChannels).Draw(t, "channels")
		p := NormalizeParams{
			Layout: rapid.SampledFrom([]Layout{Interleaved, ToPlanar, Planar}).Draw(t, "layout"),
			Pixels: int64(pixels),
		}
		for range channels {
			p.Mean = append(p.Mean, rapid.Float32Range(-1, 1).Draw(t, "mean"))
			p.Std = append(p.Std, rapid.Float32Range(0.01, 4).Draw(t, "deviation"))
		}
		in := randomBytes(uint64(samples*pixels), samples*pixels*channels)

		got := dtype.As[float32](normalized(r, in, 4, p))
		require.Len(t, got, len(in))
		for i, v := range in {
			c, j := channelOf(p, i, pixels, channels)
			mean, deviation := float64(p.Mean[c]), float64(p.Std[c])
			want := (float64(v)/255 - mean) / deviation
			// Three roundings, of the scale, the product and the bias, each in
			// proportion to the terms, which may cancel in the sum.
			terms := (float64(v)/255 + max(mean, -mean)) / deviation
			require.InDelta(t, want, got[j], 3e-7*(terms+1e-30), "element %d", i)
		}
	})
}

// channelOf is the channel of byte i, and where its result goes.
func channelOf(p NormalizeParams, i, pixels, channels int) (c, to int) {
	if p.Layout == Planar {
		return i / pixels % channels, i
	}
	c = i % channels
	if p.Layout == ToPlanar {
		sample, pixel := i/(pixels*channels), i/channels%pixels
		return c, (sample*channels+c)*pixels + pixel
	}
	return c, i
}

func TestNormalizeToHalfRoundsTheFloat32(t *testing.T) {
	r := kerneltest.CPU(t)
	in := randomBytes(1, 5*33*3)
	for _, layout := range []Layout{Interleaved, ToPlanar, Planar} {
		p := NormalizeParams{Mean: []float32{0.485, 0.456, 0.406}, Std: []float32{0.229, 0.224, 0.225}, Layout: layout, Pixels: 33}
		full := dtype.As[float32](normalized(r, in, 4, p))
		p.Out = dtype.Float16
		f16 := dtype.As[uint16](normalized(r, in, 2, p))
		p.Out = dtype.BFloat16
		bf16 := dtype.As[uint16](normalized(r, in, 2, p))
		for i, f := range full {
			require.Equal(t, ToFloat16(f), f16[i])
			require.Equal(t, ToBFloat16(f), bf16[i])
		}
	}
}

func TestNormalizeZeroValueIsZeroToOne(t *testing.T) {
	got := dtype.As[float32](normalized(kerneltest.CPU(t), []byte{0, 51, 255}, 4, NormalizeParams{}))
	require.Equal(t, []float32{0, 1}, []float32{got[0], got[2]}, "the ends are exact")
	require.InDelta(t, 0.2, got[1], 3e-8)
}

func TestNormalizeNamesEveryMistake(t *testing.T) {
	r := kerneltest.CPU(t)
	other := kerneltest.CPU(t)
	err := Normalize(r.Stream, r.Alloc(8), other.Alloc(10), NormalizeParams{
		Mean: make([]float32, 3), Std: []float32{1, 0}, Out: dtype.Int8, Layout: ToPlanar,
	})
	var typed *Error
	require.ErrorAs(t, err, &typed)
	require.Equal(t, "Normalize", typed.Op)
	require.ErrorIs(t, err, device.ErrInvalid)
	for _, part := range []string{"len(Std) is 2, want 0, 1 or 3", "1/Std[1]", "Pixels is 0", "multiple of 3", "Out is int8", "in.Device() is"} {
		require.ErrorContains(t, err, part)
	}
	mistakes := typed.Err.(interface{ Unwrap() []error }).Unwrap()
	require.Len(t, mistakes, 6, "each is one of its own")
	for _, mistake := range mistakes {
		require.IsType(t, &OptionError{}, mistake)
	}
	err = Normalize(r.Stream, r.Alloc(16).Slice(2, 8), r.Alloc(4), NormalizeParams{Mean: make([]float32, 9), Layout: 7})
	for _, part := range []string{"Channels is 9", "Layout is 7", "out.Size() is 8", "out.Address() % 4 is 2"} {
		require.ErrorContains(t, err, part)
	}
}

func normalized(r *kerneltest.Rig, in []byte, size int, p NormalizeParams) []byte {
	out := r.Alloc(len(in) * size)
	require.NoError(r.T, Normalize(r.Stream, out, r.Upload(in), p))
	return r.Download(out)
}

func randomBytes(seed uint64, n int) []byte {
	random := rand.New(rand.NewPCG(seed, 7))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}
