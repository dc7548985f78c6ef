package main

import (
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// shapes are the classes that are drawn: whether a point belongs to one, by its distance from the
// middle in units of the shape's size.
var shapes = map[string]func(x, y float64) bool{
	"disc":   func(x, y float64) bool { return x*x+y*y < 1 },
	"ring":   func(x, y float64) bool { return x*x+y*y < 1 && x*x+y*y > 0.4 },
	"stripe": func(x, y float64) bool { return y*y < 0.04 && x*x < 1.5 },
}

// drawFolder makes a folder with as many JPEG files of each shape.
func drawFolder(folder string, each int) error {
	for name, inside := range shapes {
		if err := os.Mkdir(filepath.Join(folder, name), 0o700); err != nil {
			return err
		}
		random := rand.New(rand.NewPCG(uint64(len(name)), 7))
		for i := range each {
			if err := drawFile(filepath.Join(folder, name, fmt.Sprintf("%03d.jpg", i)), random, inside); err != nil {
				return err
			}
		}
	}
	return nil
}

// drawFile draws a bright shape on a dark ground, at a random place.
func drawFile(path string, random *rand.Rand, inside func(x, y float64) bool) error {
	width, height := 150+random.IntN(100), 150+random.IntN(100)
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	middleX, middleY := float64(width)*(0.4+0.2*random.Float64()), float64(height)*(0.4+0.2*random.Float64())
	size := float64(min(width, height)) * (0.3 + 0.1*random.Float64())
	ground, ink := uint8(random.IntN(60)), uint8(180+random.IntN(70))
	for y := range height {
		for x := range width {
			c := ground
			if inside((float64(x)-middleX)/size, (float64(y)-middleY)/size) {
				c = ink
			}
			m.SetRGBA(x, y, color.RGBA{c, c, 255 - c, 255})
		}
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := jpeg.Encode(f, m, nil); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
