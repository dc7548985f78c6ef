package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
)

// written is how many frames are written, evenly spread over the film.
const written = 4

// writePNGs writes a few frames to a folder, as they went in and as they came out.
func (b *bench) writePNGs(ctx context.Context, dir string) (err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	slot, err := b.newSlot()
	if err != nil {
		return err
	}
	w := &synchronous{b, slot}
	defer func() { err = errors.Join(err, w.close()) }()
	n := min(written, b.film.Frames)
	for i := range n {
		frame := i * b.film.Frames / n
		if err := w.frame(ctx, frame); err != nil {
			return err
		}
		name := filepath.Join(dir, fmt.Sprintf("frame-%04d", frame))
		if err := writePNG(name+"-in.png", b.rgb(slot.in.Bytes())); err != nil {
			return err
		}
		if err := writePNG(name+"-out.png", b.ycbcr(slot.planes())); err != nil {
			return err
		}
	}
	return nil
}

// rgb is a frame as an image.
func (b *bench) rgb(frame []byte) *image.RGBA {
	p := image.NewRGBA(image.Rect(0, 0, b.film.Width, b.film.Height))
	for i := range b.planeBytes() {
		copy(p.Pix[4*i:], frame[3*i:][:3])
		p.Pix[4*i+3] = 0xff
	}
	return p
}

// ycbcr is a result as an image.
func (b *bench) ycbcr(p planes) *image.RGBA {
	bounds := image.Rect(0, 0, b.film.Width, b.film.Height)
	rgb := image.NewRGBA(bounds)
	draw.Draw(rgb, bounds, &image.YCbCr{Y: p[0], Cb: p[1], Cr: p[2], YStride: b.film.Width, CStride: b.film.Width,
		SubsampleRatio: image.YCbCrSubsampleRatio444, Rect: bounds}, image.Point{}, draw.Src)
	return rgb
}

func writePNG(name string, p image.Image) error {
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, p); err != nil {
		return err
	}
	return os.WriteFile(name, b.Bytes(), 0o666)
}
