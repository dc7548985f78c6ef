package filter

import (
	"errors"
	"fmt"

	"github.com/leat-go/leat/device"
)

// Options say what a Filter does. Width and Height are required.
type Options struct {
	// Width and Height of the frames, in pixels.
	Width, Height int
	// Radius is how far the blur reaches to each side, in pixels. 0 means MaxRadius.
	Radius int
	// Passes is how often a frame is blurred, one blur upon the other: it sets how
	// long the device computes. 0 means 1.
	Passes int
}

// maxPixels keeps a row's and a plane's length within what kernels count with.
const maxPixels = 1 << 28

func (o Options) validate() error {
	var errs []error
	if o.Width < 1 || o.Height < 1 || o.Width > maxPixels/max(o.Height, 1) {
		errs = append(errs, fmt.Errorf("Width and Height are %d×%d, want from 1 to %d pixels", o.Width, o.Height, maxPixels))
	}
	if o.Radius < 0 || o.Radius > MaxRadius {
		errs = append(errs, fmt.Errorf("Radius is %d, want 0 to %d", o.Radius, MaxRadius))
	}
	if o.Passes < 0 {
		errs = append(errs, fmt.Errorf("Passes is %d, want 0 or more", o.Passes))
	}
	return errors.Join(errs...)
}

// displayGamma is for displays that are darker than the film.
const displayGamma = 1.2

// A Filter is the device memory that filtering takes, beside the frames' own. It
// serves one stream: a frame's intermediate results lie where the last one's did.
type Filter struct {
	options Options
	weights weights
	between *device.Buffer // blurred along rows, uint16 [height, width, 3]
	blurred *device.Buffer // uint8 [height, width, 3]
	gamma   *device.Buffer // uint8 [256]
	table   *device.HostBuffer
}

// Planes are a frame's luma and its two differences of colour (Y, Cb, Cr), each
// uint8 [height, width].
type Planes [3]device.View

// New makes a Filter and submits the upload of its table to s. The caller owns it
// until Close.
func New(s *device.Stream, o Options) (_ *Filter, err error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("filter: %w", err)
	}
	if err := s.Device().CheckKernels(horizontal, vertical, ycbcr); err != nil {
		return nil, err
	}
	if o.Radius == 0 {
		o.Radius = MaxRadius
	}
	o.Passes = max(o.Passes, 1)
	f := &Filter{options: o, weights: gaussian(o.Radius)}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	dev, table := s.Device(), gamma(displayGamma)
	if f.between, err = dev.Alloc(2 * f.frameBytes()); err != nil {
		return nil, err
	}
	if f.blurred, err = dev.Alloc(f.frameBytes()); err != nil {
		return nil, err
	}
	if f.gamma, err = dev.Alloc(int64(len(table))); err != nil {
		return nil, err
	}
	if f.table, err = dev.AllocHost(int64(len(table)), device.HostOptions{}); err != nil {
		return nil, err
	}
	copy(f.table.Bytes(), table[:])
	if err = s.CopyH2D(f.gamma.View(), f.table.Bytes()); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *Filter) frameBytes() int64 { return channels * f.planeBytes() }

func (f *Filter) planeBytes() int64 { return int64(f.options.Width) * int64(f.options.Height) }

// Apply submits the filtering of the frame in, uint8 [height, width, 3] of red,
// green and blue, to s, always the same stream. It overwrites out and waits for
// nothing.
func (f *Filter) Apply(s *device.Stream, out Planes, in device.View) error {
	if err := f.check(out, in); err != nil {
		return err
	}
	frame := in
	for range f.options.Passes {
		if err := f.blurWay(s, horizontal, f.between.View(), frame); err != nil {
			return err
		}
		if err := f.blurWay(s, vertical, f.blurred.View(), f.between.View()); err != nil {
			return err
		}
		frame = f.blurred.View()
	}
	return f.colour(s, out, frame)
}

func (f *Filter) check(out Planes, in device.View) error {
	var errs []error
	if in.Size() != f.frameBytes() {
		errs = append(errs, fmt.Errorf("in has %d bytes, want %d", in.Size(), f.frameBytes()))
	}
	for i, plane := range out {
		if plane.Size() != f.planeBytes() {
			errs = append(errs, fmt.Errorf("plane %d of out has %d bytes, want %d", i, plane.Size(), f.planeBytes()))
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("filter: Apply: %w", errors.Join(errs...))
	}
	return nil
}

// Close frees the Filter's memory. Work that uses it must be done.
func (f *Filter) Close() error {
	var errs []error
	for _, b := range []*device.Buffer{f.between, f.blurred, f.gamma} {
		if b != nil {
			errs = append(errs, b.Close())
		}
	}
	if f.table != nil {
		errs = append(errs, f.table.Close())
	}
	return errors.Join(errs...)
}

// Radius is how far the blur reaches to each side, in pixels.
func (f *Filter) Radius() int { return f.options.Radius }
