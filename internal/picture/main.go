// Picture draws the pictures of docs, by their names: pipeline, which is the way of a batch
// from the dataset to the model and the time that it saves, and several-gpus.
//
//	go run ./internal/picture pipeline >docs/pipeline.svg
package main

import (
	"fmt"
	"html"
	"os"
	"strings"
)

func main() {
	draw := pictures["pipeline"]
	if len(os.Args) > 1 {
		draw = pictures[os.Args[1]]
	}
	if draw == nil {
		fmt.Fprintf(os.Stderr, "there is no picture %q\n", os.Args[1])
		os.Exit(2)
	}
	fmt.Fprint(os.Stdout, draw())
}

var pictures = map[string]func() string{"pipeline": pipeline, "several-gpus": devices}

const (
	ink    = "#24292f"
	faint  = "#57606a"
	paper  = "#ffffff"
	read   = "#ddf4ff" // blue: the host
	copied = "#fff1c2" // yellow: the bus
	work   = "#dafbe1" // green: the device computes
)

// canvas collects the elements of a picture.
type canvas struct{ strings.Builder }

func (c *canvas) box(x, y, w, h int, fill, text string) {
	fmt.Fprintf(c, `<rect x="%d" y="%d" width="%d" height="%d" rx="4" fill="%s" stroke="%s"/>`+"\n", x, y, w, h, fill, ink)
	c.text(x+w/2, y+h/2+5, "middle", ink, text)
}

func (c *canvas) text(x, y int, anchor, colour, text string) {
	fmt.Fprintf(c, `<text x="%d" y="%d" text-anchor="%s" fill="%s">%s</text>`+"\n", x, y, anchor, colour, html.EscapeString(text))
}

func (c *canvas) arrow(x1, y1, x2, y2 int, style string) {
	fmt.Fprintf(c, `<path d="M%d %d L%d %d" stroke="%s" fill="none" marker-end="url(#head)"%s/>`+"\n", x1, y1, x2, y2, ink, style)
}

// back is an arrow that returns below the row, from one place to an earlier one.
func (c *canvas) back(from, to, y, depth int, text string) {
	fmt.Fprintf(c, `<path d="M%d %d v%d H%d v-%d" stroke="%s" stroke-dasharray="5 4" fill="none" marker-end="url(#head)"/>`+"\n",
		from, y, depth, to, depth-4, faint)
	c.text((from+to)/2, y+depth+17, "middle", faint, text)
}

// begin is an empty canvas of a size.
func begin(width, height int) *canvas {
	c := new(canvas)
	fmt.Fprintf(c, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="Helvetica, Arial, sans-serif" font-size="14">`+"\n", width, height, width, height)
	c.WriteString(`<defs><marker id="head" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto"><path d="M0 0 L9 4 L0 8 z" fill="` + ink + `"/></marker></defs>` + "\n")
	fmt.Fprintf(c, `<rect width="%d" height="%d" fill="%s"/>`+"\n", width, height, paper)
	return c
}

// end is the picture.
func (c *canvas) end() string {
	c.WriteString("</svg>\n")
	return c.String()
}

func pipeline() string {
	c := begin(920, 410)
	path(c)
	times(c)
	return c.end()
}

// path is the upper half: what a batch passes.
func path(c *canvas) {
	const top, h = 50, 78
	c.text(80, 32, "middle", faint, "your Dataset")
	c.box(20, top, 120, h, read, "Read(i)")
	c.text(385, 32, "middle", faint, "pinned host memory")
	c.text(640, 32, "middle", faint, "device memory")
	c.text(840, 32, "middle", faint, "your model")
	for i := range 3 {
		c.box(310+50*i, top, 46, h, read, "slot")
		c.box(565+50*i, top, 46, h, copied, "slot")
	}
	c.box(780, top, 120, h, work, "Step(batch)")
	middle := top + h/2
	c.arrow(140, middle, 306, middle, "")
	c.text(223, middle-8, "middle", ink, "goroutines")
	c.text(223, middle+20, "middle", ink, "read and decode")
	c.arrow(460, middle, 561, middle, "")
	c.text(510, middle-8, "middle", ink, "copy stream")
	c.arrow(715, middle, 776, middle, "")
	c.text(745, middle-8, "middle", ink, "wait")
	c.back(510, 385, top+h+4, 26, "filled again when copied")
	c.back(840, 640, top+h+4, 26, "overwritten when the step is done")
}

// times is the lower half: the same six batches one after the other, and overlapped.
func times(c *canvas) {
	const unit, left, h = 40, 150, 24
	row := func(y int, name string) { c.text(left-12, y+h/2+5, "end", faint, name) }
	y := 225
	c.text(20, y-6, "start", ink, "One after the other")
	row(y, "")
	for i := range 6 {
		x := left + i*3*unit
		c.box(x, y, unit, h, read, fmt.Sprint("r", i+1))
		c.box(x+unit, y, unit, h, copied, fmt.Sprint("c", i+1))
		c.box(x+2*unit, y, unit, h, work, fmt.Sprint(i+1))
	}
	y += 58
	c.text(20, y-6, "start", ink, "With Leat")
	row(y, "read")
	row(y+h+4, "copy")
	row(y+2*h+8, "compute")
	for i := range 6 {
		x := left + i*unit
		c.box(x, y, unit, h, read, fmt.Sprint("r", i+1))
		c.box(x+unit, y+h+4, unit, h, copied, fmt.Sprint("c", i+1))
		c.box(x+2*unit, y+2*h+8, unit, h, work, fmt.Sprint(i+1))
	}
	end := left + 8*unit
	c.arrow(end+40, y+h+16, end+4, y+h+16, "")
	c.text(end+48, y+h+21, "start", faint, "six batches are done")
	c.arrow(left, y+3*h+24, left+18*unit, y+3*h+24, "")
	c.text(left+18*unit+8, y+3*h+29, "start", faint, "time")
}
