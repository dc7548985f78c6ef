package images_test

import (
	"image"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader/images"
)

func TestCenter(t *testing.T) {
	for _, c := range []struct {
		share    float64
		size, to image.Point
		want     image.Rectangle
	}{
		{1, image.Pt(400, 300), image.Pt(224, 224), image.Rect(50, 0, 350, 300)},
		{1, image.Pt(300, 400), image.Pt(224, 224), image.Rect(0, 50, 300, 350)},
		{0.875, image.Pt(256, 256), image.Pt(224, 224), image.Rect(16, 16, 240, 240)},
		{1, image.Pt(100, 100), image.Pt(20, 10), image.Rect(0, 25, 100, 75)},
		{0.001, image.Pt(3, 3), image.Pt(224, 224), image.Rect(1, 1, 2, 2)},
		{1, image.Pt(1, 1000), image.Pt(1000, 1), image.Rect(0, 499, 1, 500)},
	} {
		require.Equal(t, c.want, images.Center(c.share)(c.size, c.to, nil), "%+v", c)
	}
	require.Equal(t, image.Rect(0, 0, 7, 9), images.Whole(image.Pt(7, 9), image.Pt(1, 1), nil))
}

// Windows lie in the picture and are distributed as they should be, and what no window fits has
// the largest in the middle.
func TestRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	crop := images.Random(0.08, 4.0/3)
	require.Equal(t, image.Rect(0, 493, 10, 506), crop(image.Pt(10, 1000), image.Pt(224, 224), random))
	require.Equal(t, image.Rect(493, 0, 506, 10), crop(image.Pt(1000, 10), image.Pt(224, 224), random))
	for range 100 {
		require.Equal(t, image.Rect(0, 0, 1, 1), crop(image.Pt(1, 1), image.Pt(224, 224), random))
	}
	require.Equal(t, image.Rect(25, 0, 75, 50), images.Random(1, 1)(image.Pt(100, 50), image.Pt(9, 9), random))

	size := image.Pt(3000, 3000)
	const n = 100_000
	var area, proportion, square float64
	for range n {
		w := crop(size, image.Pt(224, 224), random)
		require.True(t, w.In(image.Rectangle{Max: size}))
		share := float64(w.Dx()) * float64(w.Dy()) / float64(size.X*size.Y)
		log := math.Log(float64(w.Dx())/float64(w.Dy())) / math.Log(4.0/3)
		require.InDelta(t, 0, log, 1.01)
		require.Greater(t, share, 0.079)
		area, proportion, square = area+share, proportion+log, square+log*log
	}
	// Draws that don't fit leave out some large windows; uniform in -1 to 1 has 1/3.
	require.InDelta(t, 0.5, area/n, 0.05)
	require.InDelta(t, 0, proportion/n, 0.02)
	require.InDelta(t, 1.0/3, square/n, 0.03)
}
