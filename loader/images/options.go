package images

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/image/draw"

	"github.com/leat-go/leat/loader"
)

// Options tunes Open and NewDrawer. The zero value is ready to use.
type Options struct {
	// Height and Width are the size in pixels that all pictures get. 0 means 224, what most
	// models for photographs take.
	Height, Width int
	// Gray makes the image field one of luma, of height and width alone.
	Gray bool
	// Upright turns pictures as their EXIF data says that they are to be shown. Pillow
	// leaves them as they are stored unless it is asked, so without it the data is that of
	// most training scripts in Python; phones store many pictures turned.
	Upright bool
	// Crop chooses the part that is scaled to Height and Width. nil means Center(1).
	Crop Crop
	// Flip is how probable it is that a picture is mirrored left to right: 0 to 1.
	Flip float64
	// Scaler scales. nil means draw.BiLinear, which counts each pixel where it makes a
	// picture smaller, as Pillow does; draw.ApproxBiLinear is four times as fast, and leaves
	// pixels out when it makes one smaller than half.
	Scaler draw.Scaler
	// Decoder decodes. nil means Standard.
	Decoder Decoder
	// MaxPixels is the largest picture that is decoded, as its header states it. A decoder
	// takes up to 16 bytes of memory for each, in every worker. 0 means 1<<26, which is
	// 8192 by 8192.
	MaxPixels int
	// MaxBytes is the largest file. 0 means 256 MiB.
	MaxBytes int64

	// Classes are the names of the classes, by label. nil means the names of the folders,
	// sorted by their bytes. For a part of a data set that lacks a class they have to be
	// stated, or the labels behind it are others.
	Classes []string
	// Suffixes are the ends of the names that pictures have, in lower case; those of files
	// may be in any. nil means .jpg, .jpeg, .png, .gif and .webp.
	Suffixes []string
}

const (
	defaultSide   = 224
	defaultPixels = 1 << 26
	defaultBytes  = 256 << 20
	mostSide      = 1 << 16
)

// filled is o with its defaults. The error joins a *loader.OptionError for each mistake.
func (o Options) filled() (Options, error) {
	var wrong []error
	check := func(ok bool, option string, value any, want string) {
		if !ok {
			wrong = append(wrong, &loader.OptionError{Package: "images", Option: option, Value: value, Want: want})
		}
	}
	check(o.Height >= 0 && o.Height <= mostSide, "Height", o.Height, fmt.Sprintf("0 (%d) to %d", defaultSide, mostSide))
	check(o.Width >= 0 && o.Width <= mostSide, "Width", o.Width, fmt.Sprintf("0 (%d) to %d", defaultSide, mostSide))
	check(o.Flip >= 0 && o.Flip <= 1, "Flip", o.Flip, "a probability, 0 to 1")
	check(o.MaxPixels >= 0, "MaxPixels", o.MaxPixels, fmt.Sprintf("0 (%d) or more", defaultPixels))
	check(o.MaxBytes >= 0, "MaxBytes", o.MaxBytes, fmt.Sprintf("0 (%d) or more", defaultBytes))
	for i, name := range o.Classes {
		option := fmt.Sprintf("Classes[%d]", i)
		check(name != "" && !strings.ContainsAny(name, `/\`), option, name, "the name of a folder")
		check(slices.Index(o.Classes, name) == i, option, name, "each class once")
	}
	for i, suffix := range o.Suffixes {
		check(suffix != "" && suffix == strings.ToLower(suffix), fmt.Sprintf("Suffixes[%d]", i), suffix, "an end of names in lower case")
	}
	if o.Height == 0 {
		o.Height = defaultSide
	}
	if o.Width == 0 {
		o.Width = defaultSide
	}
	if o.Crop == nil {
		o.Crop = Center(1)
	}
	if o.Scaler == nil {
		o.Scaler = draw.BiLinear
	}
	if o.Decoder == nil {
		o.Decoder = Standard{}
	}
	if o.MaxPixels == 0 {
		o.MaxPixels = defaultPixels
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultBytes
	}
	if o.Suffixes == nil {
		o.Suffixes = []string{".jpg", ".jpeg", ".png", ".gif", ".webp"}
	}
	return o, errors.Join(wrong...)
}
