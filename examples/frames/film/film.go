package film

import (
	"context"
	"errors"
	"fmt"
	"image"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// Options say what film to make. All are required.
type Options struct {
	// Width and Height of a frame in pixels, each at least MinSize.
	Width, Height int
	// Frames is the film's length, at most MaxFrames.
	Frames int
}

const (
	// MinSize is the least width and height of a frame, which has its number in it.
	MinSize = 2 * digits
	// MaxFrames is how many frames can be told apart by their numbers.
	MaxFrames = 1 << digits
	// maxPixels keeps a picture below 1 GiB.
	maxPixels = 1 << 28

	digits = 20 // of a frame's number, binary
)

func (o Options) validate() error {
	var errs []error
	if o.Width < MinSize || o.Height < MinSize || o.Width > maxPixels/max(o.Height, 1) {
		errs = append(errs, fmt.Errorf("Width and Height are %d×%d, want %d or more each and at most %d pixels", o.Width, o.Height, MinSize, maxPixels))
	}
	if o.Frames < 1 || o.Frames > MaxFrames {
		errs = append(errs, fmt.Errorf("Frames is %d, want from 1 to %d", o.Frames, MaxFrames))
	}
	return errors.Join(errs...)
}

// A Film is a dataset of frames in strips, so that several workers share a frame:
// sample i is strip i%Strips of frame i/Strips, and a batch of Strips samples is a
// frame. It is safe for concurrent use.
type Film struct {
	Options
	pictures []picture
	strips   int
}

var _ loader.Dataset = (*Film)(nil)

// MaxStrips is how many strips a frame has at most: as many as keep a machine's
// workers busy with one frame.
const MaxStrips = 16

// scene is how many frames are windows into one picture before the next comes.
const scene = 12

// New makes a film of photographs, of which there must be one.
func New(photographs []image.Image, o Options) (*Film, error) {
	err := o.validate()
	if len(photographs) == 0 {
		err = errors.Join(err, errors.New("no photographs"))
	}
	if err != nil {
		return nil, fmt.Errorf("film: %w", err)
	}
	f := &Film{Options: o, pictures: make([]picture, len(styles)*len(photographs)), strips: MaxStrips}
	for o.Height%f.strips != 0 {
		f.strips--
	}
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range f.pictures {
		g.Go(func() error {
			photograph, s := photographs[i%len(photographs)], styles[i/len(photographs)]
			f.pictures[i] = newPicture(photograph, o.Width+o.Width/8, o.Height+o.Height/8, s)
			return nil
		})
	}
	return f, g.Wait()
}

// Strips is how many strips a frame has.
func (f *Film) Strips() int { return f.strips }

// StripBytes is the size of a strip.
func (f *Film) StripBytes() int { return f.FrameBytes() / f.strips }

// FrameBytes is the size of a frame, uint8 [Height, Width, 3].
func (f *Film) FrameBytes() int { return channels * f.Width * f.Height }

// Len is the number of strips of all frames.
func (f *Film) Len() int { return f.Frames * f.strips }

// Fields is the one field "frame": uint8 [rows, Width, 3] of red, green and blue.
func (f *Film) Fields() []loader.Field {
	return []loader.Field{{Name: "frame", DType: dtype.Uint8, Shape: []int{f.Height / f.strips, f.Width, channels}}}
}

// Read writes a strip straight into its place in the batch.
func (f *Film) Read(_ context.Context, index int, row *loader.Row) error {
	f.Strip(row.Bytes("frame"), index/f.strips, index%f.strips)
	return nil
}

// Strip writes a strip of a frame to dst, of StripBytes.
func (f *Film) Strip(dst []byte, frame, strip int) {
	p := &f.pictures[frame/scene%len(f.pictures)]
	left := swing(5*frame, p.width-f.Width)
	top := swing(3*frame, p.height-f.Height)
	rows := f.Height / f.strips
	for i := range rows {
		y := strip*rows + i
		row := dst[channels*f.Width*i:][:channels*f.Width]
		copy(row, p.pixels[channels*((top+y)*p.width+left):])
		f.number(row, y, frame)
	}
}

// swing goes from 0 to end and back, again and again.
func swing(at, end int) int {
	at %= 2 * end
	return min(at, 2*end-at)
}

// number writes what a row shows of the frame's number: squares near the lower left
// corner, the lowest digit first, white for 1 and black for 0.
func (f *Film) number(row []byte, y, frame int) {
	side := max(1, min(f.Width/(2*digits), f.Height/60))
	if top := f.Height - 2*side; y < top || y >= top+side {
		return
	}
	for digit := range digits {
		square := row[channels*side*(1+digit):][:channels*side]
		for i := range square {
			square[i] = -byte(frame >> digit & 1)
		}
	}
}
