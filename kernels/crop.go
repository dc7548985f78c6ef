package kernels

import (
	"math/bits"

	"github.com/leat-go/leat/device"
)

// CropParams says what Crop does. An image is Height rows of Width pixels of
// PixelBytes bytes (NHWC; the element type doesn't matter).
type CropParams struct {
	Height, Width       int // of an image that is read
	OutHeight, OutWidth int // of an image that is written
	PixelBytes          int // channels times the element's size
	// Pad is the number of rows and columns of zeros that are added around the
	// image before it is cropped.
	Pad int
	// FlipProbability is the share of images mirrored left to right: 0 to 1.
	FlipProbability float64
	// Centre takes the middle of every image and flips none: for evaluation. Of an odd
	// margin, the larger part is cut off below and to the right.
	Centre bool

	// Seed, Epoch and Position decide the random numbers. Image i of the batch
	// draws from (Seed, Epoch, Position+i), so that the result depends neither on the
	// batch's size nor on how the work is divided.
	Seed, Epoch, Position uint64
}

// A Placement is what Crop does to one image.
type Placement struct {
	// Top and Left are where the crop starts in the padded image.
	Top, Left int
	// Flip mirrors the crop left to right.
	Flip bool
}

// At is the placement for image i of the batch.
func (p *CropParams) At(i int) Placement {
	tops, lefts := p.margins()
	if p.Centre {
		return Placement{Top: tops / 2, Left: lefts / 2}
	}
	r := mix(p.Seed + mix(p.Epoch+mix(p.Position+uint64(i)+golden)+golden) + golden)
	return Placement{
		Top:  int(below(r, uint64(tops)+1)),
		Left: int(below(mix(r+golden), uint64(lefts)+1)),
		Flip: mix(r+golden+golden)>>32 < p.flipBelow(),
	}
}

// below maps the random r to 0…n-1 by multiplying; the error of a probability is below n/2^64.
func below(r, n uint64) uint64 {
	high, _ := bits.Mul64(r, n)
	return high
}

// flipBelow is FlipProbability in units of 2^-32.
func (p *CropParams) flipBelow() uint64 { return uint64(p.FlipProbability * (1 << 32)) }

// margins are the largest Top and Left.
func (p *CropParams) margins() (tops, lefts int) {
	return p.Height + 2*p.Pad - p.OutHeight, p.Width + 2*p.Pad - p.OutWidth
}

// Crop cuts from each image of in a window, at random or from its centre, and
// mirrors some. What lies in the padding becomes zero.
func Crop(s *device.Stream, out, in device.View, p CropParams) error {
	n, err := p.check(s, out, in)
	if err != nil || n == 0 {
		return err
	}
	l := device.Launch{Kernel: crop}
	rows(&l, int64(p.OutHeight)*int64(p.OutWidth)*int64(p.PixelBytes), n)
	out.Out(&l.Args)
	in.In(&l.Args)
	l.Args.AddInt64(n)
	for _, v := range [...]int{p.Height, p.Width, p.OutHeight, p.OutWidth, p.PixelBytes, p.Pad} {
		l.Args.AddInt32(int32(v))
	}
	centre := uint32(0)
	if p.Centre {
		centre = 1
	}
	l.Args.AddUint32(centre)
	l.Args.AddUint64(p.flipBelow())
	l.Args.AddUint64(p.Seed)
	l.Args.AddUint64(p.Epoch)
	l.Args.AddUint64(p.Position)
	return s.Launch(&l)
}

// Validate reports every mistake in p itself, before there is memory to work on.
func (p *CropParams) Validate() error {
	m := p.mistakes()
	if len(m) == 0 {
		p.fits(&m)
	}
	return m.err("Crop")
}

// mistakes are the numbers that are out of their ranges.
func (p *CropParams) mistakes() (m mistakes) {
	const most = 1 << 15 // with it a row's bytes and an image's stay within 32 and 63 bits
	for _, f := range [...]struct {
		name string
		v    int
		min  int
	}{
		{"Height", p.Height, 1}, {"Width", p.Width, 1}, {"OutHeight", p.OutHeight, 1}, {"OutWidth", p.OutWidth, 1},
		{"PixelBytes", p.PixelBytes, 1}, {"Pad", p.Pad, 0},
	} {
		if f.v < f.min || f.v > most {
			m.add(f.name, f.v, "%d to %d", f.min, most)
		}
	}
	if !(p.FlipProbability >= 0 && p.FlipProbability <= 1) {
		m.add("FlipProbability", p.FlipProbability, "0 to 1")
	}
	return m
}

func (p *CropParams) fits(m *mistakes) {
	tops, lefts := p.margins()
	if tops < 0 {
		m.add("OutHeight", p.OutHeight, "at most %d: Height is %d, Pad %d", p.OutHeight+tops, p.Height, p.Pad)
	}
	if lefts < 0 {
		m.add("OutWidth", p.OutWidth, "at most %d: Width is %d, Pad %d", p.OutWidth+lefts, p.Width, p.Pad)
	}
}

func (p *CropParams) check(s *device.Stream, out, in device.View) (n int64, err error) {
	m := p.mistakes()
	if len(m) > 0 {
		return 0, m.err("Crop")
	}
	p.fits(&m)
	image := int64(p.Height) * int64(p.Width) * int64(p.PixelBytes)
	m.whole("in", in, image)
	n = in.Size() / image
	m.length("out", out, n, int64(p.OutHeight)*int64(p.OutWidth)*int64(p.PixelBytes), "OutHeight·OutWidth·PixelBytes")
	m.apart("out", out, "in", in)
	m.view(s, "out", out, 1)
	m.view(s, "in", in, 1)
	return n, m.err("Crop")
}

var crop = &device.Kernel{Name: "crop", Module: module, Go: func(a *device.Args) {
	p := CropParams{
		Height: int(a.Int32(3)), Width: int(a.Int32(4)), OutHeight: int(a.Int32(5)), OutWidth: int(a.Int32(6)),
		PixelBytes: int(a.Int32(7)), Pad: int(a.Int32(8)), Centre: a.Uint32(9) != 0,
		FlipProbability: float64(a.Uint64(10)) / (1 << 32),
		Seed:            a.Uint64(11), Epoch: a.Uint64(12), Position: a.Uint64(13),
	}
	out, in := a.Bytes(0), a.Bytes(1)
	inImage, outImage := p.Height*p.Width*p.PixelBytes, p.OutHeight*p.OutWidth*p.PixelBytes
	for i := range int(a.Int64(2)) {
		p.cropOne(out[i*outImage:][:outImage], in[i*inImage:][:inImage], p.At(i))
	}
}}

func (p *CropParams) cropOne(out, in []byte, at Placement) {
	inRow, outRow := p.Width*p.PixelBytes, p.OutWidth*p.PixelBytes
	// The columns of the crop that lie in the image, and where the first comes from.
	from := max(0, p.Pad-at.Left)
	to := max(from, min(p.OutWidth, p.Width+p.Pad-at.Left))
	source := (at.Left + from - p.Pad) * p.PixelBytes
	for y := range p.OutHeight {
		row := out[y*outRow:][:outRow]
		inY := at.Top + y - p.Pad
		if inY < 0 || inY >= p.Height || from == to {
			clear(row)
			continue
		}
		clear(row[:from*p.PixelBytes])
		copy(row[from*p.PixelBytes:to*p.PixelBytes], in[inY*inRow+source:])
		clear(row[to*p.PixelBytes:])
		if at.Flip {
			mirror(row, p.PixelBytes)
		}
	}
}

// mirror reverses the order of the pixels in row.
func mirror(row []byte, pixel int) {
	for i, j := 0, len(row)-pixel; i < j; i, j = i+pixel, j-pixel {
		for k := range pixel {
			row[i+k], row[j+k] = row[j+k], row[i+k]
		}
	}
}
