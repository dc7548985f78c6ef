package images

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image"
)

// webpSize is the size of the picture in a WebP file. The container and the two codecs in it are
// described in RFC 9649.
func webpSize(data []byte) (width, height int, err error) {
	canvas := image.Point{}
	for name, chunk := range riff(data) {
		switch {
		case name == "VP8X" && len(chunk) >= 10:
			canvas = image.Pt(1+int(uint24(chunk[4:])), 1+int(uint24(chunk[7:])))
		case name == "ANIM":
			return 0, 0, errors.New("webp: an animation")
		case name == "VP8 " && len(chunk) >= 10:
			// Behind three bytes of flags and three of signature.
			width, height = int(binary.LittleEndian.Uint16(chunk[6:]))&0x3fff, int(binary.LittleEndian.Uint16(chunk[8:]))&0x3fff
		case name == "VP8L" && len(chunk) >= 5:
			bits := binary.LittleEndian.Uint32(chunk[1:])
			width, height = 1+int(bits&0x3fff), 1+int(bits>>14&0x3fff)
		}
		if width > 0 {
			break
		}
	}
	switch {
	case width == 0 || height == 0:
		return 0, 0, errors.New("webp: no picture")
	case canvas != image.Point{} && canvas != image.Pt(width, height):
		return 0, 0, fmt.Errorf("webp: a picture of %d×%d on a canvas of %d×%d", width, height, canvas.X, canvas.Y)
	}
	return width, height, nil
}

// riff ranges over the chunks of a RIFF file, up to the first that is cut off.
func riff(data []byte) func(yield func(name string, chunk []byte) bool) {
	return func(yield func(string, []byte) bool) {
		for rest := data[min(len(data), 12):]; len(rest) >= 8; {
			name, size := string(rest[:4]), int64(binary.LittleEndian.Uint32(rest[4:]))
			rest = rest[8:]
			if size > int64(len(rest)) || !yield(name, rest[:size]) {
				return
			}
			rest = rest[min(size+size&1, int64(len(rest))):]
		}
	}
}

func uint24(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 }

// limited converts a lossy WebP's planes. golang.org/x/image/webp gives them out as if they had
// the full range, as JPEG's have; VP8 has luma of 16 to 235 and colour of 16 to 240 (ITU-R
// BT.601), so black would be 16 and white 235. Constants, rounding and the interpolation of
// the colour are libwebp's, so the pixels are those of all programs that use it.
func limited(dst *image.RGBA, m *image.YCbCr) error {
	if m.Rect != dst.Rect || m.SubsampleRatio != image.YCbCrSubsampleRatio420 {
		return errSize
	}
	columns, rows := (m.Rect.Dx()+1)/2, (m.Rect.Dy()+1)/2
	for y := range m.Rect.Dy() {
		near, far := y/2*m.CStride, other(y, rows)*m.CStride
		line := m.Y[y*m.YStride:]
		to := dst.Pix[y*dst.Stride:]
		for x := range m.Rect.Dx() {
			a, b := x/2, other(x, columns)
			edge := x == 0 || a == b
			u := between(m.Cb, near, far, a, b, edge)
			v := between(m.Cr, near, far, a, b, edge)
			luma := int(line[x]) * 19077 >> 8
			to[4*x] = clip(luma + v*26149>>8 - 14234)
			to[4*x+1] = clip(luma - u*6419>>8 - v*13320>>8 + 8708)
			to[4*x+2] = clip(luma + u*33050>>8 - 17685)
			to[4*x+3] = 255
		}
	}
	return nil
}

// other is the second-nearest sample of colour along a line of n, for luma i: the one that i
// leans to, or the nearest itself at the end.
func other(i, n int) int {
	return min(max(i/2-1+2*(i&1), 0), n-1)
}

// between is the colour between four samples, of which the one in row near and column a is
// nearest: 9/16 of it, 3/16 of its neighbours, 1/16 of the one across.
func between(plane []byte, near, far, a, b int, edge bool) int {
	n, q := int(plane[near+a]), int(plane[far+a])
	if edge {
		return (3*n + q + 2) >> 2
	}
	p, f := int(plane[near+b]), int(plane[far+b])
	return ((n+p+q+f+8+2*(p+q))>>3 + n) >> 1
}

func clip(x int) byte { return byte(min(max(x>>6, 0), 255)) }
