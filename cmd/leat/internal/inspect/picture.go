package inspect

import (
	"fmt"
	"math"
	"strings"

	"github.com/leat-go/leat/loader"
)

// A grid is how a field lies as a picture.
type grid struct {
	height, width, channels int
	planar                  bool // the channels one behind the other
}

// leastSide is the smallest side of what is taken for a picture: a matrix of features has
// fewer rows or columns, or is one by mistake.
const leastSide = 8

// asPicture reports how a field lies as a picture, if its shape is that of one.
func asPicture(f loader.Field) (g grid, ok bool) {
	if f.Ragged != nil {
		return g, false
	}
	s := f.Shape
	channels := func(n int) bool { return n == 1 || n == 3 }
	switch {
	case len(s) == 2:
		g = grid{s[0], s[1], 1, true}
	case len(s) == 3 && channels(s[2]):
		g = grid{s[0], s[1], s[2], false}
	case len(s) == 3 && channels(s[0]):
		g = grid{s[1], s[2], s[0], true}
	default:
		return g, false
	}
	return g, g.height >= leastSide && g.width >= leastSide
}

// at is the index of a value.
func (g grid) at(y, x, channel int) int {
	if g.planar {
		return (channel*g.height+y)*g.width + x
	}
	return (y*g.width+x)*g.channels + channel
}

// columns is the most characters that a picture is wide.
const columns = 48

// ramp are characters from dark to light, on a dark ground.
const ramp = " .:-=+*#%@"

// draw draws a picture in lines of characters, or of coloured half blocks.
func (g grid) draw(values []float64, color bool) []string {
	low, high := 0.0, 255.0
	if !isByte(values) {
		low, high = bounds(values)
	}
	scaled := func(v float64) float64 {
		if !(high > low) || math.IsNaN(v) {
			return 0
		}
		return min(max((v-low)/(high-low), 0), 1)
	}
	wide := min(columns, g.width)
	tall := max(1, (g.height*wide/g.width+1)/2) // lines: a character is twice as high as wide
	var lines []string
	for line := range tall {
		var b strings.Builder
		for x := range wide {
			if color {
				up, down := g.mean(values, 2*line, x, 2*tall, wide), g.mean(values, 2*line+1, x, 2*tall, wide)
				fmt.Fprintf(&b, "\x1b[38;2;%sm\x1b[48;2;%sm▀", rgb(up, scaled), rgb(down, scaled))
				continue
			}
			c := g.mean(values, line, x, tall, wide)
			luma := scaled(0.299*c[0] + 0.587*c[1] + 0.114*c[2])
			b.WriteByte(ramp[min(int(luma*float64(len(ramp))), len(ramp)-1)])
		}
		if color {
			b.WriteString("\x1b[0m")
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}

// isByte reports whether values are those of bytes, whose black and white are known.
func isByte(values []float64) bool {
	for _, v := range values {
		if v != math.Trunc(v) || v < 0 || v > 255 {
			return false
		}
	}
	return true
}

// bounds are the smallest and the largest of the values that are numbers.
func bounds(values []float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			low, high = math.Min(low, v), math.Max(high, v)
		}
	}
	return low, high
}

// mean is the mean colour of the part of the picture that one of rows times cols cells shows.
func (g grid) mean(values []float64, row, col, rows, cols int) (c [3]float64) {
	y0, x0 := row*g.height/rows, col*g.width/cols
	y1, x1 := max((row+1)*g.height/rows, y0+1), max((col+1)*g.width/cols, x0+1)
	for channel := range c {
		for y := y0; y < y1; y++ {
			for x := x0; x < x1; x++ {
				c[channel] += values[g.at(y, x, min(channel, g.channels-1))]
			}
		}
		c[channel] /= float64((y1 - y0) * (x1 - x0))
	}
	return c
}

func rgb(c [3]float64, scaled func(float64) float64) string {
	return fmt.Sprintf("%d;%d;%d", int(255*scaled(c[0])+0.5), int(255*scaled(c[1])+0.5), int(255*scaled(c[2])+0.5))
}
