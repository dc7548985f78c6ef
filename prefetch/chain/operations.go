package chain

import (
	"fmt"
	"slices"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// The operations work their kernel's parameters out of the field's element type and
// shape, once to check them for a chain and again for each batch.

// Normalize is kernels.Normalize: uint8 images [H, W, C] become p.Out (float32 if
// left out), [C, H, W] with kernels.ToPlanar. p.Channels and p.Pixels come from the
// shape; set, they must agree with it. Mean and Deviation have a value for each
// channel, or one for all.
func Normalize(field string, p kernels.NormalizeParams) Op {
	p.Mean, p.Deviation = slices.Clone(p.Mean), slices.Clone(p.Deviation)
	if p.Out == dtype.Invalid {
		p.Out = dtype.Float32
	}
	return Op{Field: field,
		Becomes: func(f loader.Field) (loader.Field, error) {
			if f.DType != dtype.Uint8 {
				return f, fmt.Errorf("Normalize takes uint8, not %v", f.DType)
			}
			q, err := normalizeShaped(p, f.Shape)
			if err == nil {
				err = q.Validate()
			}
			if err != nil {
				return f, err
			}
			if p.Layout == kernels.ToPlanar {
				f.Shape = []int{f.Shape[2], f.Shape[0], f.Shape[1]}
			}
			f.DType = p.Out
			return f, nil
		},
		Apply: func(s *device.Stream, out, in prefetch.Field, _ prefetch.Fields) error {
			q, err := normalizeShaped(p, in.Shape[1:])
			if err != nil {
				return err
			}
			return kernels.Normalize(s, out.View, in.View, q)
		},
	}
}

// normalizeShaped is p for images of that shape.
func normalizeShaped(p kernels.NormalizeParams, shape []int) (kernels.NormalizeParams, error) {
	channels, pixels := 0, int64(0)
	switch {
	case p.Layout == kernels.Interleaved:
		// Flat data has no axis of channels, and needs none where all are treated alike.
		if p.Channels == 0 && len(p.Mean) <= 1 && len(p.Deviation) <= 1 {
			if n := volume(shape); p.Pixels != 0 && p.Pixels != n {
				return p, fmt.Errorf("Normalize: Pixels is %d, the shape %v has %d", p.Pixels, shape, n)
			}
			return p, nil
		}
		if len(shape) == 0 {
			return p, fmt.Errorf("Normalize of several channels takes one axis or more, not %v", shape)
		}
		channels = shape[len(shape)-1]
		pixels = volume(shape[:len(shape)-1])
	case len(shape) != 3:
		return p, fmt.Errorf("Normalize %v takes three axes, not %v", p.Layout, shape)
	case p.Layout == kernels.ToPlanar:
		channels, pixels = shape[2], int64(shape[0])*int64(shape[1])
	default:
		channels, pixels = shape[0], int64(shape[1])*int64(shape[2])
	}
	for _, list := range [...]struct {
		name   string
		values []float32
	}{{"Mean", p.Mean}, {"Deviation", p.Deviation}} {
		if n := len(list.values); n > 1 && n != channels {
			return p, fmt.Errorf("Normalize: %s has %d values, want 1 or one for each of the %d channels of %v", list.name, n, channels, shape)
		}
	}
	if p.Channels != 0 && p.Channels != channels {
		return p, fmt.Errorf("Normalize: Channels is %d, the shape %v has %d", p.Channels, shape, channels)
	}
	if p.Pixels != 0 && p.Pixels != pixels {
		return p, fmt.Errorf("Normalize: Pixels is %d, the shape %v has %d", p.Pixels, shape, pixels)
	}
	// An image without pixels or channels has nothing to be normalised.
	p.Channels, p.Pixels = max(1, channels), max(1, pixels)
	return p, nil
}

func volume(shape []int) int64 {
	n := int64(1)
	for _, dim := range shape {
		n *= int64(dim)
	}
	return n
}

// Convert is kernels.Convert: elements become of type to, among uint8, float16,
// bfloat16 and float32.
func Convert(field string, to dtype.Type) Op {
	return Op{Field: field,
		Becomes: func(f loader.Field) (loader.Field, error) {
			if !kernels.Convertible(f.DType) || !kernels.Convertible(to) {
				return f, fmt.Errorf("Convert takes uint8, float16, bfloat16 and float32 to one another, not %v to %v", f.DType, to)
			}
			f.DType = to
			return f, nil
		},
		Apply: func(s *device.Stream, out, in prefetch.Field, _ prefetch.Fields) error {
			return kernels.Convert(s, out.View, in.View, to, in.DType)
		},
	}
}

// OneHot is kernels.OneHot: labels become rows of float32 [classes].
func OneHot(field string, classes int) Op {
	return Op{Field: field,
		Becomes: func(f loader.Field) (loader.Field, error) {
			p := kernels.OneHotParams{Classes: classes, Labels: f.DType}
			if err := p.Validate(); err != nil {
				return f, err
			}
			return loader.Field{DType: dtype.Float32, Shape: append(f.Shape, classes)}, nil
		},
		Apply: func(s *device.Stream, out, in prefetch.Field, _ prefetch.Fields) error {
			return kernels.OneHot(s, out.View, in.View, kernels.OneHotParams{Classes: classes, Labels: in.DType})
		},
	}
}

// Crop is kernels.Crop: images [H, W, C] are cropped to [height, width, C] and
// flipped at random, or cropped at their centre. Of p only Pad, FlipProbability and
// Centre are to be set: the shape gives the rest, and the loader's seed, the epoch
// and the sample's position the randomness, so that it is the same in every run.
func Crop(field string, height, width int, p kernels.CropParams) Op {
	return Op{Field: field,
		Becomes: func(f loader.Field) (loader.Field, error) {
			others := p
			others.Pad, others.FlipProbability, others.Centre = 0, 0, false
			if others != (kernels.CropParams{}) {
				return f, fmt.Errorf("Crop: want only Pad, FlipProbability and Centre set, since the shape gives the sizes and the batch the randomness, not %+v", p)
			}
			if len(f.Shape) != 3 {
				return f, fmt.Errorf("Crop takes three axes, [H W C], not %v", f.Shape)
			}
			q := cropShaped(p, height, width, f.Shape, f.DType)
			if err := q.Validate(); err != nil {
				hint := ""
				if height > q.Height || width > q.Width {
					hint = "; Crop comes before a Normalize to planes"
				}
				return f, fmt.Errorf("Crop to %d×%d of %v, taken as [H W C]%s: %w", height, width, f.Shape, hint, err)
			}
			f.Shape = []int{height, width, f.Shape[2]}
			return f, nil
		},
		Apply: func(s *device.Stream, out, in prefetch.Field, batch prefetch.Fields) error {
			p := cropShaped(p, height, width, in.Shape[1:], in.DType)
			p.Seed, p.Epoch, p.Position = batch.Seed(), uint64(batch.Position().Epoch), uint64(batch.Position().Sample)
			return kernels.Crop(s, out.View, in.View, p)
		},
	}
}

// cropShaped is p for crops of images of that shape [H, W, C].
func cropShaped(p kernels.CropParams, height, width int, shape []int, t dtype.Type) kernels.CropParams {
	p.Height, p.Width, p.PixelBytes = shape[0], shape[1], shape[2]*t.Size()
	p.OutHeight, p.OutWidth = height, width
	return p
}
