package film

import (
	"image"
	"image/color"
	"math"

	"golang.org/x/image/draw"
)

// channels of a pixel: red, green and blue lie together.
const channels = 3

// A picture is larger than a frame, which shows a part of it.
type picture struct {
	width, height int
	pixels        []byte // [height, width, 3]
}

// A style is what is done to a photograph.
type style struct {
	zoom float64    // how much of the photograph is left out: 2 shows half its width
	tint color.RGBA // the light that it is seen in
}

// styles, each of which makes a picture of each photograph.
var styles = []style{
	{zoom: 1, tint: color.RGBA{255, 246, 230, 255}},
	{zoom: 1.7, tint: color.RGBA{205, 225, 255, 255}},
}

// ground is what a photograph without a background lies on.
var ground = image.NewUniform(color.RGBA{48, 70, 74, 255})

func newPicture(photograph image.Image, width, height int, s style) picture {
	scaled := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(scaled, scaled.Rect, ground, image.Point{}, draw.Src)
	draw.ApproxBiLinear.Scale(scaled, scaled.Rect, photograph, middle(photograph.Bounds(), width, height, s.zoom), draw.Over, nil)
	p := picture{width: width, height: height, pixels: make([]byte, channels*width*height)}
	light := [channels]uint32{uint32(s.tint.R), uint32(s.tint.G), uint32(s.tint.B)}
	for i := range width * height {
		for c := range channels {
			p.pixels[channels*i+c] = byte(uint32(scaled.Pix[4*i+c]) * light[c] / 255)
		}
	}
	return p
}

// middle is the largest part of r about its centre of the shape width×height,
// zoomed into.
func middle(r image.Rectangle, width, height int, zoom float64) image.Rectangle {
	scale := min(float64(r.Dx())/float64(width), float64(r.Dy())/float64(height)) / zoom
	w := max(1, int(math.Round(float64(width)*scale)))
	h := max(1, int(math.Round(float64(height)*scale)))
	corner := image.Pt(r.Min.X+(r.Dx()-w)/2, r.Min.Y+(r.Dy()-h)/2)
	return image.Rectangle{corner, corner.Add(image.Pt(w, h))}
}
