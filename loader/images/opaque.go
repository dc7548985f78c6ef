package images

import (
	"image"
	"image/color"
	"image/draw"
)

// opaque writes the colours of m to dst as they are stored, without looking at alpha. What a
// picture does not cover is left as it is.
func opaque(dst *image.RGBA, m image.Image, err error) error {
	if err != nil {
		return err
	}
	r := m.Bounds()
	if !r.In(dst.Rect) || r.Empty() {
		return errSize
	}
	switch m := m.(type) {
	case *image.NRGBA:
		for y := r.Min.Y; y < r.Max.Y; y++ {
			to := dst.Pix[dst.PixOffset(r.Min.X, y):][:4*r.Dx()]
			copy(to, m.Pix[m.PixOffset(r.Min.X, y):])
			for i := 3; i < len(to); i += 4 {
				to[i] = 255
			}
		}
	case *image.NRGBA64:
		for y := r.Min.Y; y < r.Max.Y; y++ {
			to, from := dst.Pix[dst.PixOffset(r.Min.X, y):][:4*r.Dx()], m.Pix[m.PixOffset(r.Min.X, y):]
			for i := 0; i < len(to); i += 4 {
				to[i], to[i+1], to[i+2], to[i+3] = from[2*i], from[2*i+2], from[2*i+4], 255
			}
		}
	case *image.Paletted:
		drawPaletted(dst, m)
	default:
		draw.Draw(dst, r, m, r.Min, draw.Src)
	}
	return nil
}

func drawPaletted(dst *image.RGBA, m *image.Paletted) {
	// A picture may use a number that its palette lacks; the decoders refuse most of these.
	var colours [256][4]byte
	for i := range colours {
		colours[i][3] = 255
	}
	for i, c := range m.Palette[:min(len(m.Palette), 256)] {
		// A colour with alpha is stored without it in an NRGBA. A color.RGBA with alpha 0 is
		// what a GIF has for no colour.
		if n, ok := c.(color.NRGBA); ok {
			colours[i] = [4]byte{n.R, n.G, n.B, 255}
			continue
		}
		r, g, b, _ := c.RGBA()
		colours[i] = [4]byte{byte(r >> 8), byte(g >> 8), byte(b >> 8), 255}
	}
	r := m.Rect
	for y := r.Min.Y; y < r.Max.Y; y++ {
		to := dst.Pix[dst.PixOffset(r.Min.X, y):]
		for x, index := range m.Pix[m.PixOffset(r.Min.X, y):][:r.Dx()] {
			copy(to[4*x:4*x+4], colours[index][:])
		}
	}
}

// black makes all of dst black.
func black(dst *image.RGBA) {
	clear(dst.Pix)
	for i := 3; i < len(dst.Pix); i += 4 {
		dst.Pix[i] = 255
	}
}
