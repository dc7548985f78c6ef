package images_test

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/image/draw"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/images"
)

// photograph is a JPEG of 500×400 with about as much detail as photographs have.
func photograph(b *testing.B) []byte {
	m := image.NewRGBA(image.Rect(0, 0, 500, 400))
	for y := range 400 {
		for x := range 500 {
			wave := func(k float64) uint8 {
				return uint8(128 + 60*math.Sin(float64(x*x)/k/50) + 60*math.Cos(float64(x*y)/k/90))
			}
			m.SetRGBA(x, y, color.RGBA{wave(7), wave(9), wave(11), 255})
		}
	}
	var out bytes.Buffer
	require.NoError(b, jpeg.Encode(&out, m, &jpeg.Options{Quality: 80}))
	return out.Bytes()
}

// What a picture costs: decoding alone, and with both ways of scaling, in one run.
func BenchmarkDraw(b *testing.B) {
	data := photograph(b)
	b.Run("decode=standard", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := jpeg.Decode(bytes.NewReader(data)); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, scaler := range map[string]draw.Scaler{"bilinear": draw.BiLinear, "approximate": draw.ApproxBiLinear} {
		b.Run("draw="+name, func(b *testing.B) {
			d, err := images.NewDrawer(images.Options{Scaler: scaler})
			require.NoError(b, err)
			scratch, err := loader.NewScratch([]loader.Field{d.Field("image")})
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				if err := d.Draw(scratch.Begin(new(loader.Row)), "image", "photograph", data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
