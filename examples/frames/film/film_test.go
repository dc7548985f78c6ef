package film

import (
	"bytes"
	"hash/maphash"
	"image"
	"image/color"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/loader"
)

// drawn is a picture of one colour with a diagonal through it.
func drawn(c color.Color) image.Image {
	p := image.NewRGBA(image.Rect(3, 5, 53, 45))
	for y := p.Rect.Min.Y; y < p.Rect.Max.Y; y++ {
		for x := p.Rect.Min.X; x < p.Rect.Max.X; x++ {
			p.Set(x, y, c)
		}
		p.Set(p.Rect.Min.X+y, y, color.White)
	}
	return p
}

func frame(f *Film, number int) []byte {
	b := make([]byte, f.FrameBytes())
	for strip := range f.Strips() {
		f.Strip(b[strip*f.StripBytes():][:f.StripBytes()], number, strip)
	}
	return b
}

func TestPhotographsOfTheModule(t *testing.T) {
	photographs, err := Photographs(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, photographs, len(names))
	for i, p := range photographs {
		require.GreaterOrEqual(t, p.Bounds().Dx(), 280, names[i])
		require.GreaterOrEqual(t, p.Bounds().Dy(), 300, names[i])
	}
	_, err = Photographs(t.Context(), t.TempDir())
	for _, name := range names {
		require.ErrorContains(t, err, name)
	}
}

func TestEachFrameDiffers(t *testing.T) {
	f, err := New([]image.Image{drawn(color.Black), drawn(color.RGBA{200, 30, 60, 255})}, Options{Width: 64, Height: 48, Frames: 3000})
	require.NoError(t, err)
	seed, seen := maphash.MakeSeed(), map[uint64]int{}
	for i := range f.Frames {
		sum := maphash.Bytes(seed, frame(f, i))
		before, found := seen[sum]
		require.False(t, found, "frames %d and %d are equal", before, i)
		seen[sum] = i
	}
	require.Equal(t, frame(f, 17), frame(f, 17))
}

// Strips are written whole and nowhere else, whatever the size and the number.
func TestStripsMakeAFrame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{Width: rapid.IntRange(MinSize, 150).Draw(t, "width"), Height: rapid.IntRange(MinSize, 150).Draw(t, "height"), Frames: MaxFrames}
		f, err := New([]image.Image{drawn(color.Black)}, o)
		require.NoError(t, err)
		require.Equal(t, f.FrameBytes(), f.Strips()*f.StripBytes())
		number := rapid.IntRange(0, MaxFrames-1).Draw(t, "frame")
		strip := rapid.IntRange(0, f.Strips()-1).Draw(t, "strip")
		rows := make([][]byte, 2)
		for i, fill := range []byte{0, 0xff} { // what was there before doesn't show
			rows[i] = bytes.Repeat([]byte{fill}, f.StripBytes()+1)
			f.Strip(rows[i][:f.StripBytes()], number, strip)
			require.Equal(t, fill, rows[i][f.StripBytes()])
		}
		require.Equal(t, rows[0][:f.StripBytes()], rows[1][:f.StripBytes()])
	})
}

// A batch of the loader is a frame.
func TestABatchIsAFrame(t *testing.T) {
	f, err := New([]image.Image{drawn(color.Black)}, Options{Width: 64, Height: 48, Frames: 3})
	require.NoError(t, err)
	ld, err := loader.New(f, f.Strips(), loader.Options{Workers: 2})
	require.NoError(t, err)
	heap, err := loader.NewHeap(ld.Layout().Size(), 2)
	require.NoError(t, err)
	run := ld.Start(t.Context(), loader.Cursor{}, heap)
	for i := range f.Frames {
		filled, err := run.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, frame(f, i), filled.Slot.Bytes[:f.FrameBytes()])
		heap.Put(filled.Slot)
	}
	require.NoError(t, run.Close())
}

func TestMiddleKeepsTheShape(t *testing.T) {
	r := image.Rect(10, 20, 610, 420)
	require.Equal(t, image.Rect(10, 51, 610, 389), middle(r, 1600, 900, 1))
	require.Equal(t, image.Rect(160, 135, 460, 304), middle(r, 1600, 900, 2))
	require.Equal(t, image.Rect(110, 20, 510, 420), middle(r, 50, 50, 1))
	require.Equal(t, image.Rect(309, 219, 310, 220), middle(r, 100, 100, 1e9))
}

func TestMistakesAreAllReported(t *testing.T) {
	_, err := New(nil, Options{Width: MinSize - 1, Height: 100, Frames: 0})
	for _, mistake := range []string{"Width and Height", "Frames", "no photographs"} {
		require.ErrorContains(t, err, mistake)
	}
	_, err = New(nil, Options{Width: maxPixels, Height: maxPixels, Frames: MaxFrames + 1})
	require.ErrorContains(t, err, "at most 268435456 pixels")
	require.ErrorContains(t, err, "Frames is 1048577")
}
