package images

import (
	"errors"
	"fmt"
	"image"
	"image/draw"
	"sync"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/source"
)

// Drawer draws encoded pictures into rows: it decodes one, takes a part of it, and scales
// that. It may be used by several goroutines at once.
type Drawer struct {
	options Options
	scratch sync.Pool // *pixels
}

// pixels is the memory of one picture under way.
type pixels struct {
	file           []byte
	stored, scaled image.RGBA
}

// NewDrawer makes a Drawer. Of the options it takes those that are not about files and
// classes. The error joins a *loader.OptionError for each mistake.
func NewDrawer(o Options) (*Drawer, error) {
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	return newDrawer(o), nil
}

func newDrawer(o Options) *Drawer {
	d := &Drawer{options: o}
	d.scratch.New = func() any { return new(pixels) }
	return d
}

// Field is the field of that name that Draw writes to.
func (d *Drawer) Field(name string) loader.Field {
	shape := []int{d.options.Height, d.options.Width, 3}
	if d.options.Gray {
		shape = shape[:2]
	}
	return loader.Field{Name: name, DType: dtype.Uint8, Shape: shape}
}

// Draw draws an encoded picture into a field of the row, which is declared as Field. from
// names the picture in errors. A picture that can't be decoded, or is too large, is a
// *source.FormatError.
func (d *Drawer) Draw(row *loader.Row, field, from string, data []byte) error {
	p := d.scratch.Get().(*pixels)
	defer d.scratch.Put(p)
	return d.draw(row, field, from, data, p)
}

func (d *Drawer) draw(row *loader.Row, field, from string, data []byte, p *pixels) error {
	o := &d.options
	c, err := o.Decoder.Config(data)
	if err != nil {
		return broken(from, c, "a picture", err)
	}
	if c.Width < 1 || c.Height < 1 || c.Height > o.MaxPixels/c.Width {
		return &source.FormatError{
			Format: "images", File: from, Offset: -1, Record: -1,
			Want: fmt.Sprintf("1 to %d pixels", o.MaxPixels), Got: fmt.Sprintf("a %s file of %d×%d", c.Format, c.Width, c.Height),
		}
	}
	size := image.Pt(c.Width, c.Height)
	resize(&p.stored, size)
	if err := o.Decoder.Decode(data, c, &p.stored); err != nil {
		return broken(from, c, fmt.Sprintf("a whole picture of %d×%d", c.Width, c.Height), err)
	}
	lies := orient(1)
	if o.Upright {
		lies = orientation(data, c.Format)
	}
	random := row.Rand()
	to, shown := image.Pt(o.Width, o.Height), lies.shown(size)
	window := o.Crop(shown, to, random).Intersect(image.Rectangle{Max: shown})
	if window.Empty() {
		return fmt.Errorf("images: %s: the Crop has chosen nothing of %d×%d pixels", from, shown.X, shown.Y)
	}
	scaled := d.scale(p, lies.stored(window, size), lies.shown(to))
	lies.pack(row.Bytes(field), to, scaled, o.Flip > 0 && random.Float64() < o.Flip, o.Gray)
	return nil
}

// scale is the window of the stored picture, scaled.
func (d *Drawer) scale(p *pixels, window image.Rectangle, to image.Point) *image.RGBA {
	if window.Size() == to {
		return p.stored.SubImage(window).(*image.RGBA)
	}
	resize(&p.scaled, to)
	// Src: all pixels are opaque, and nothing of an earlier picture is to shine through.
	d.options.Scaler.Scale(&p.scaled, p.scaled.Rect, &p.stored, window, draw.Src, nil)
	return &p.scaled
}

// pack writes pixels, which lie as they are stored, to a row of that size as they are shown.
func (o orient) pack(row []byte, to image.Point, from *image.RGBA, flip, gray bool) {
	size := from.Rect.Size()
	at, right, down := 0, 4, from.Stride
	if o.mirrorsX() {
		at, right = at+4*(size.X-1), -4
	}
	if o.mirrorsY() {
		at, down = at+from.Stride*(size.Y-1), -down
	}
	if o.turned() {
		right, down = down, right
	}
	if flip {
		at, right = at+right*(to.X-1), -right
	}
	for range to.Y {
		pixel := at
		for range to.X {
			rgb := from.Pix[pixel : pixel+3 : pixel+3]
			if gray {
				// As image/color and Pillow weigh them.
				row[0] = byte((19595*uint32(rgb[0]) + 38470*uint32(rgb[1]) + 7471*uint32(rgb[2]) + 1<<15) >> 16)
				row = row[1:]
			} else {
				row[0], row[1], row[2] = rgb[0], rgb[1], rgb[2]
				row = row[3:]
			}
			pixel += right
		}
		at += down
	}
}

// resize gives m a size. What it holds then says nothing.
func resize(m *image.RGBA, size image.Point) {
	if n := 4 * size.X * size.Y; n > cap(m.Pix) {
		m.Pix = make([]byte, n)
	} else {
		m.Pix = m.Pix[:n]
	}
	m.Stride, m.Rect = 4*size.X, image.Rectangle{Max: size}
}

// broken is the error of a Decoder with the name of the file.
func broken(from string, c Config, want string, err error) error {
	e := &source.FormatError{Format: "images", File: from, Offset: -1, Record: -1, Want: want, Got: err.Error(), Err: err}
	var other unknown
	if errors.As(err, &other) {
		e.Want = "a JPEG, PNG, GIF or WebP file"
	}
	if c.Format != "" {
		e.Got = "a broken " + c.Format + " file: " + e.Got
	}
	return e
}
