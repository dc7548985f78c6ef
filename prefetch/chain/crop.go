package chain

import (
	"errors"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// CropOptions says how Crop places its window. The zero value crops at random places.
type CropOptions struct {
	// Pad is the number of rows and columns of zeros that are added on every side of the
	// image before it is cropped.
	Pad int
	// FlipProbability is the share of images that are mirrored left to right: 0 to 1.
	FlipProbability float64
	// Centre takes the middle of every image and flips none, for evaluation.
	Centre bool
}

// Crop cuts images [H, W, C], of any element type, to [height, width, C]: it is
// kernels.Crop. What is random depends on the loader's seed, the epoch and the sample's
// position alone, so that it is the same in every run.
func Crop(field string, height, width int, o CropOptions) Op {
	return Op{Name: "Crop", Field: field,
		Output: func(f loader.Field) (loader.Field, error) {
			if len(f.Shape) != 3 {
				return f, &OptionError{Option: "Shape", Value: f.Shape, Want: "three axes, [H W C]"}
			}
			if err := ofOneSize(f, "a ragged dimension is no height"); err != nil {
				return f, err
			}
			p := o.of(f.Shape, f.DType, height, width)
			if err := p.Validate(); err != nil {
				if p.Height <= kernels.MaxChannels && height > p.Height { // so few rows are planes
					err = errors.Join(err, errors.New("the axes are taken as [H W C]: Crop comes before a Normalize to planes"))
				}
				return f, err
			}
			f.Shape = []int{height, width, f.Shape[2]}
			return f, nil
		},
		Apply: func(s *device.Stream, out, in prefetch.Field, batch prefetch.Fields) error {
			p := o.of(in.Shape[1:], in.DType, height, width)
			p.Seed, p.Epoch, p.Position = batch.Seed(), uint64(batch.Position().Epoch), uint64(batch.Position().First)
			return kernels.Crop(s, out.View, in.View, p)
		},
	}
}

// of is what o says of images of that shape, [H, W, C], for the kernel.
func (o CropOptions) of(shape []int, t dtype.Type, height, width int) kernels.CropParams {
	return kernels.CropParams{
		Height: shape[0], Width: shape[1], PixelBytes: shape[2] * t.Size(), OutHeight: height, OutWidth: width,
		Pad: o.Pad, FlipProbability: o.FlipProbability, Centre: o.Centre,
	}
}
