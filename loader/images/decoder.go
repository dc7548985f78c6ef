package images

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"

	"golang.org/x/image/webp"
)

// Config is what the header of an encoded picture says.
type Config struct {
	// Format is jpeg, png, gif or webp, or what another Decoder reads.
	Format string
	// Width and Height are those that are stored, before any turning.
	Width, Height int
}

// Decoder decodes pictures. Its methods may be called by several goroutines at once. They
// borrow data until they return, and never change it.
type Decoder interface {
	// Config reads the header, and as little else as it can.
	Config(data []byte) (Config, error)
	// Decode writes the picture to dst, which has the size that Config has returned and begins
	// at (0, 0). It writes all pixels, and 255 to all of their alpha. A picture that can't be
	// decoded whole is an error.
	Decode(data []byte, c Config, dst *image.RGBA) error
}

// Standard is the Decoder of the standard library and of golang.org/x/image.
type Standard struct{}

// String names it in a Plan.
func (Standard) String() string { return "Go's standard decoders" }

// unknown is the error of a file of another format.
type unknown struct{ begins []byte }

func (e unknown) Error() string {
	if len(e.begins) == 0 {
		return "an empty file"
	}
	return fmt.Sprintf("a file that begins with % x", e.begins)
}

// format is which one data has, by its first bytes.
func format(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		return "jpeg"
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return "png"
	case bytes.HasPrefix(data, []byte("GIF87a")), bytes.HasPrefix(data, []byte("GIF89a")):
		return "gif"
	case len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		return "webp"
	}
	return ""
}

// Config implements Decoder.
func (Standard) Config(data []byte) (Config, error) {
	var c image.Config
	var err error
	f := format(data)
	switch f {
	case "jpeg":
		if c, err = jpeg.DecodeConfig(bytes.NewReader(data)); err == nil && c.Height == 0 {
			c.Height, _, _ = lines(data)
		}
	case "png":
		c, err = png.DecodeConfig(bytes.NewReader(data))
	case "gif":
		c, err = gif.DecodeConfig(bytes.NewReader(data))
	case "webp":
		// DecodeConfig believes the canvas, and Decode the picture in it, which may be larger.
		c.Width, c.Height, err = webpSize(data)
	default:
		err = unknown{data[:min(len(data), 8)]}
	}
	return Config{Format: f, Width: c.Width, Height: c.Height}, err
}

// Decode implements Decoder.
func (Standard) Decode(data []byte, c Config, dst *image.RGBA) error {
	switch c.Format {
	case "jpeg":
		if err := scans(data); err != nil {
			return err
		}
		m, err := jpeg.Decode(bytes.NewReader(data))
		var unsupported jpeg.UnsupportedError
		if height, at, ok := lines(data); ok && (errors.As(err, &unsupported) || err == nil && m.Bounds().Dy() == 0) {
			m, err = jpeg.Decode(bytes.NewReader(withLines(data, height, at)))
		}
		return opaque(dst, m, err)
	case "png":
		m, err := png.Decode(bytes.NewReader(data))
		return opaque(dst, m, err)
	case "gif":
		m, err := gif.Decode(bytes.NewReader(data))
		if err == nil && m.Bounds() != dst.Rect {
			black(dst)
		}
		return opaque(dst, m, err)
	case "webp":
		m, err := webp.Decode(bytes.NewReader(data))
		switch m := m.(type) {
		case *image.YCbCr:
			return limited(dst, m)
		case *image.NYCbCrA:
			return limited(dst, &m.YCbCr)
		}
		return opaque(dst, m, err)
	}
	return unknown{data[:min(len(data), 8)]}
}

var errSize = errors.New("pixels of another size than the header's")
