package images_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/jpeg"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/image/draw"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/images"
	"github.com/leat-go/leat/loader/source"
)

// drawn draws an encoded picture, and returns the field between canaries.
func drawn(t testing.TB, data []byte, o images.Options) ([]byte, error) {
	t.Helper()
	d, err := images.NewDrawer(o)
	require.NoError(t, err)
	field := d.Field("picture")
	canary := loader.Field{Name: "before", DType: field.DType, Shape: []int{64}}
	behind := canary
	behind.Name = "behind"
	scratch, err := loader.NewScratch([]loader.Field{canary, field, behind})
	require.NoError(t, err)
	row := scratch.Begin(new(loader.Row))
	guard := bytes.Repeat([]byte{0xa5}, 64)
	copy(row.Bytes("before"), guard)
	copy(row.Bytes("behind"), guard)
	err = d.Draw(row, "picture", "a.bin", data)
	require.Equal(t, guard, row.Bytes("before"))
	require.Equal(t, guard, row.Bytes("behind"))
	return row.Bytes("picture"), err
}

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return data
}

// pillow is what Pillow reads from a picture.
func pillow(t testing.TB, name string) (size image.Point, rgb []byte) {
	t.Helper()
	data := fixture(t, name+".rgb")
	return image.Pt(int(binary.LittleEndian.Uint32(data)), int(binary.LittleEndian.Uint32(data[4:]))), data[8:]
}

// Each format comes out as Pillow reads it: those without loss and the whole of WebP exactly.
func TestPixelsAreThoseOfPillow(t *testing.T) {
	for name, most := range map[string]int{
		"444.jpg": 2, "progressive.jpg": 2, "grey.jpg": 2, "cmyk.jpg": 2, "lines.jpg": 2,
		"palette1.png": 0, "palette2.png": 0, "palette4.png": 0, "palette8.png": 0, "greykey.png": 0, "alpha.png": 0,
		"named.JPEG": 0, "palette.gif": 0,
		"lossy.webp": 0, "lossless.webp": 0, "edges.webp": 0, "mid.webp": 0, "alpha.webp": 0,
	} {
		t.Run(name, func(t *testing.T) {
			size, want := pillow(t, name)
			got, err := drawn(t, fixture(t, name), images.Options{Width: size.X, Height: size.Y, Crop: images.Whole})
			require.NoError(t, err)
			require.Len(t, got, len(want))
			for i := range want {
				require.InDelta(t, want[i], got[i], float64(most), "byte %d of %d", i, len(want))
			}
		})
	}
}

// What doc.go says of colour at half the resolution: only its edges differ from libjpeg's.
func TestColourAtHalfTheResolution(t *testing.T) {
	size, want := pillow(t, "420.jpg")
	got, err := drawn(t, fixture(t, "420.jpg"), images.Options{Width: size.X, Height: size.Y})
	require.NoError(t, err)
	sum := 0
	for i := range want {
		sum += max(int(want[i])-int(got[i]), int(got[i])-int(want[i]))
	}
	require.Less(t, float64(sum)/float64(len(want)), 3.0)
}

// Black, white and grey of a lossy WebP, which golang.org/x/image gives out as 16, 235 and 126.
func TestLossyWebPHasFullRange(t *testing.T) {
	got, err := drawn(t, fixture(t, "edges.webp"), images.Options{Width: 32, Height: 32, Gray: true})
	require.NoError(t, err)
	require.InDelta(t, 0, got[0], 2)
	require.InDelta(t, 255, got[31], 2)
	got, err = drawn(t, fixture(t, "mid.webp"), images.Options{Width: 32, Height: 32, Gray: true})
	require.NoError(t, err)
	require.InDelta(t, 128, got[500], 2)
}

// 16 bits lose their low byte, and a colour that is declared transparent keeps its value.
func TestSixteenBits(t *testing.T) {
	got, err := drawn(t, fixture(t, "grey16.png"), images.Options{Width: 2, Height: 1})
	require.NoError(t, err)
	require.Equal(t, []byte{0x12, 0x12, 0x12, 0xfe, 0xfe, 0xfe}, got)
	got, err = drawn(t, fixture(t, "rgbkey16.png"), images.Options{Width: 2, Height: 1})
	require.NoError(t, err)
	require.Equal(t, []byte{1, 3, 5, 0x80, 0x40, 0x20}, got)
	got, err = drawn(t, fixture(t, "palette8.png"), images.Options{Width: 2, Height: 1, Gray: true})
	require.NoError(t, err)
	require.Equal(t, []byte{83, 156}, got)
}

// Pixels hold their place where they are shown, so a window has the same ones however the
// picture is stored.
func TestWindowsAreOfThePictureAsItIsShown(t *testing.T) {
	window := image.Rect(2, 25, 17, 36)
	o := images.Options{Width: 15, Height: 11, Upright: true, Crop: func(size, to image.Point, _ *rand.Rand) image.Rectangle {
		require.Equal(t, image.Pt(20, 40), size)
		require.Equal(t, image.Pt(15, 11), to)
		return window
	}}
	for lies := range 8 {
		for _, kind := range []string{"png", "webp", "jpg"} {
			name := fmt.Sprintf("turned/%d.%s", lies+1, kind)
			got, err := drawn(t, fixture(t, name), o)
			require.NoError(t, err)
			o.Flip = 1
			flipped, err := drawn(t, fixture(t, name), o)
			require.NoError(t, err)
			o.Flip = 0
			for y := range 11 {
				for x := range 15 {
					near := 0.0
					if kind == "jpg" {
						near = 3
					}
					at := 3 * (15*y + x)
					require.InDelta(t, x+2, got[at], near, name)
					require.InDelta(t, y+25, got[at+1], near, name)
					mirror := 3 * (15*y + 14 - x)
					require.Equal(t, got[at:at+3], flipped[mirror:mirror+3])
				}
			}
		}
	}
	_, whole := pillow(t, "turned/6.png")
	got, err := drawn(t, fixture(t, "turned/6.png"), images.Options{Width: 20, Height: 40, Upright: true})
	require.NoError(t, err)
	require.Equal(t, whole, got)
	got, err = drawn(t, fixture(t, "turned/6.png"), images.Options{Width: 40, Height: 20})
	require.NoError(t, err)
	require.NotEqual(t, whole, got)
}

// Scaling before turning gives what turning before scaling does.
func TestATurnedPictureIsScaledAsAnUprightOne(t *testing.T) {
	for _, scaler := range []draw.Scaler{nil, draw.NearestNeighbor, draw.ApproxBiLinear} {
		o := images.Options{Width: 10, Height: 20, Upright: true, Crop: images.Whole, Scaler: scaler}
		want, err := drawn(t, fixture(t, "turned/1.png"), o)
		require.NoError(t, err)
		for lies := range 8 {
			got, err := drawn(t, fixture(t, fmt.Sprintf("turned/%d.png", lies+1)), o)
			require.NoError(t, err)
			for i := range want {
				require.InDelta(t, want[i], got[i], 1, "orientation %d, byte %d", lies+1, i)
			}
		}
	}
}

// pngOf is the beginning of a PNG of that size, and of that many bytes of it that are wrong.
func pngOf(width, height uint32) []byte {
	header := append([]byte("IHDR"), 0, 0, 0, 0, 0, 0, 0, 0, 8, 2, 0, 0, 0)
	binary.BigEndian.PutUint32(header[4:], width)
	binary.BigEndian.PutUint32(header[8:], height)
	out := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), header...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(header))
}

// frame changes the size in a JPEG's frame header.
func frame(data []byte, width, height uint16) []byte {
	data = bytes.Clone(data)
	for _, sof := range []byte{0xc0, 0xc2} {
		if at := bytes.Index(data, []byte{0xff, sof}); at >= 0 {
			binary.BigEndian.PutUint16(data[at+5:], height)
			binary.BigEndian.PutUint16(data[at+7:], width)
			return data
		}
	}
	panic("no frame header")
}

// scansOf is a progressive JPEG whose last scan is there so many times.
func scansOf(data []byte, n int) []byte {
	last := bytes.LastIndex(data, []byte{0xff, 0xda})
	end := len(data) - 2
	return append(bytes.Clone(data[:last]), append(bytes.Repeat(data[last:end], n), 0xff, 0xd9)...)
}

// canvas puts a picture of a WebP on a canvas of another size.
func canvas(data []byte, width, height int) []byte {
	extended := []byte{'V', 'P', '8', 'X', 10, 0, 0, 0, 0, 0, 0, 0, byte(width - 1), byte((width - 1) >> 8), 0, byte(height - 1), byte((height - 1) >> 8), 0}
	out := append(bytes.Clone(data[:12]), extended...)
	out = append(out, data[12:]...)
	binary.LittleEndian.PutUint32(out[4:], uint32(len(out)-8))
	return out
}

// Each is refused by its header, so no memory is taken for its pixels.
func TestBombs(t *testing.T) {
	hugeGIF := append([]byte("GIF89a"), 0xff, 0xff, 0xff, 0xff, 0, 0, 0)
	hugeWebP := bytes.Clone(fixture(t, "lossless.webp"))
	binary.LittleEndian.PutUint32(hugeWebP[21:], 0x0fffffff)
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"png":            {pngOf(1<<31-1, 1<<31-1), ""},
		"png, one line":  {pngOf(1<<31-1, 1), "a png file of 2147483647×1"},
		"jpeg":           {frame(fixture(t, "444.jpg"), 65535, 65535), "a jpeg file of 65535×65535"},
		"gif":            {hugeGIF, "a gif file of 65535×65535"},
		"webp":           {hugeWebP, "a webp file of 16384×16384"},
		"webp on canvas": {canvas(fixture(t, "lossy.webp"), 1, 1), "a picture of 33×31 on a canvas of 1×1"},
		"scans":          {scansOf(fixture(t, "progressive.jpg"), 1000), "scans, want at most 200"},
		"no pixels":      {frame(fixture(t, "444.jpg"), 0, 31), ""},
		"animated":       {fixture(t, "animated.webp"), "an animation"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := drawn(t, c.data, images.Options{Width: 8, Height: 8})
			runtime.ReadMemStats(&after)
			var format *source.FormatError
			require.ErrorAs(t, err, &format)
			require.Equal(t, "a.bin", format.File)
			require.ErrorContains(t, err, c.want)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20))
		})
	}
	_, err := drawn(t, fixture(t, "444.jpg"), images.Options{MaxPixels: 33*31 - 1})
	require.ErrorContains(t, err, "want 1 to 1022 pixels, got a jpeg file of 33×31")
	_, err = drawn(t, fixture(t, "444.jpg"), images.Options{MaxPixels: 33 * 31})
	require.NoError(t, err)
}

// Telephones put a film behind a picture. What it has in it by chance begins no scan.
func TestWhatFollowsAPicture(t *testing.T) {
	film := bytes.Repeat([]byte{0xff, 0xda, 0, 8, 'f', 'i', 'l', 'm'}, 1000)
	for _, name := range []string{"444.jpg", "progressive.jpg", "lines.jpg"} {
		want, err := drawn(t, fixture(t, name), images.Options{})
		require.NoError(t, err)
		got, err := drawn(t, append(bytes.Clone(fixture(t, name)), film...), images.Options{})
		require.NoError(t, err, name)
		require.Equal(t, want, got)
		// Nor do the notes of a camera, in front of it.
		notes := append([]byte{0xff, 0xd8, 0xff, 0xef, 0x1f, 0x42}, film...)
		got, err = drawn(t, append(notes, fixture(t, name)[2:]...), images.Options{})
		require.NoError(t, err, name)
		require.Equal(t, want, got)
	}
}

// A file that is cut off, at whatever byte, is an error and no grey half.
func TestFilesThatAreCutOff(t *testing.T) {
	for _, name := range []string{"444.jpg", "progressive.jpg", "palette8.png", "palette.gif", "lossy.webp", "lossless.webp"} {
		data := fixture(t, name)
		whole := len(data)
		switch filepath.Ext(name) {
		case ".gif":
			whole -= 2
		case ".png":
			whole -= 12
		case ".webp":
			whole-- // a chunk of an odd size is filled up
		}
		for n := range whole {
			_, err := drawn(t, data[:n], images.Options{Width: 4, Height: 4})
			var format *source.FormatError
			require.ErrorAs(t, err, &format, "%s, %d of %d bytes", name, n, len(data))
			require.NotEmpty(t, format.Want)
			require.NotEmpty(t, format.Got)
		}
	}
	_, err := drawn(t, []byte("hello, world"), images.Options{})
	require.EqualError(t, err, "images: a.bin: want a JPEG, PNG, GIF or WebP file, got a file that begins with 68 65 6c 6c 6f 2c 20 77")
	_, err = drawn(t, nil, images.Options{})
	require.EqualError(t, err, "images: a.bin: want a JPEG, PNG, GIF or WebP file, got an empty file")
}

// The segment behind the scan that states how many lines there are.
func TestLinesStatedBehindTheScan(t *testing.T) {
	size, want := pillow(t, "lines.jpg")
	plain := fixture(t, "lines.jpg")
	with := append(bytes.Clone(plain[:len(plain)-2]), 0xff, 0xdc, 0, 4, 0, 16, 0xff, 0xd9)
	o := images.Options{Width: size.X, Height: size.Y}
	for _, data := range [][]byte{with, frame(with, 16, 0)} {
		got, err := drawn(t, data, o)
		require.NoError(t, err)
		for i := range want {
			require.InDelta(t, want[i], got[i], 2)
		}
	}
	with[len(with)-3] = 17
	_, err := drawn(t, with, o)
	require.ErrorAs(t, err, new(*source.FormatError))
	_, err = drawn(t, frame(plain, 16, 0), o)
	require.ErrorAs(t, err, new(*source.FormatError))
}

// A picture that is larger than the field is averaged, so a fine pattern becomes grey.
func TestMakingSmallerCountsEveryPixel(t *testing.T) {
	m := image.NewGray(image.Rect(0, 0, 64, 64))
	for i := range m.Pix {
		m.Pix[i] = byte(255 * ((i + i/64) & 1))
	}
	var b bytes.Buffer
	require.NoError(t, jpeg.Encode(&b, m, &jpeg.Options{Quality: 100}))
	got, err := drawn(t, b.Bytes(), images.Options{Width: 8, Height: 8, Gray: true})
	require.NoError(t, err)
	for _, p := range got {
		require.InDelta(t, 128, p, 8)
	}
}

func TestMistakes(t *testing.T) {
	for want, o := range map[string]images.Options{
		"images: Height is -1":                             {Height: -1},
		"images: Width is 65537":                           {Width: 65537},
		"images: Flip is 1.5, want a probability":          {Flip: 1.5},
		"images: MaxPixels is -1":                          {MaxPixels: -1},
		"images: MaxBytes is -1":                           {MaxBytes: -1},
		`images: Classes[1] is a, want each class once`:    {Classes: []string{"a", "a"}},
		`images: Classes[0] is ../a, want the name of a f`: {Classes: []string{"../a"}},
		`images: Suffixes[0] is .JPG, want an end of name`: {Suffixes: []string{".JPG"}},
	} {
		_, err := images.NewDrawer(o)
		require.ErrorContains(t, err, want)
		require.ErrorAs(t, err, new(*loader.OptionError))
	}
}

func FuzzDraw(f *testing.F) {
	names, err := filepath.Glob("testdata/*.*")
	require.NoError(f, err)
	for _, name := range names {
		data, err := os.ReadFile(name)
		require.NoError(f, err)
		if len(data) < 1<<12 {
			f.Add(data)
		}
	}
	d, err := images.NewDrawer(images.Options{Width: 5, Height: 3, MaxPixels: 1 << 12, Upright: true, Crop: images.Random(0.08, 2)})
	require.NoError(f, err)
	scratch, err := loader.NewScratch([]loader.Field{d.Field("image")})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, data []byte) {
		err := d.Draw(scratch.Begin(new(loader.Row)), "image", "fuzz", data)
		if err != nil {
			require.ErrorAs(t, err, new(*source.FormatError))
		}
	})
}
