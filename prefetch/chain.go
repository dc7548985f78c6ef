package prefetch

import (
	"errors"
	"fmt"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/loader"
)

// An Op is one operation of a Chain on one field: one of this package's, made of
// package kernels, or the user's own.
type Op struct {
	// Field is the name of the field that it changes.
	Field string
	// Becomes says what the field is afterwards; its name is not looked at. An
	// error says why the field, as it comes in, won't do.
	Becomes func(field loader.Field) (loader.Field, error)
	// Apply submits the work to s: it overwrites out and reads in, of the shapes
	// that Becomes told. batch says which batch it is.
	Apply func(s *device.Stream, out, in Field, batch Fields) error
}

// Chain makes a Transform of operations, done in their order. fields are those that
// the loader fills; a field that no Op names is passed on as it is.
func Chain(fields []loader.Field, ops ...Op) (*Transform, error) {
	t := &Transform{Out: append([]loader.Field(nil), fields...)}
	var steps []link
	var errs []error
	for i, op := range ops {
		at := indexOf(t.Out, op.Field)
		if at < 0 {
			errs = append(errs, fmt.Errorf("operation %d: no field %q", i, op.Field))
			continue
		}
		next, err := op.Becomes(t.Out[at])
		if err != nil {
			errs = append(errs, fmt.Errorf("operation %d on %v: %w", i, t.Out[at], err))
			continue
		}
		next.Name = op.Field
		t.Out[at] = next
		steps = append(steps, link{op: op, becomes: next})
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("prefetch: Chain: %w", errors.Join(errs...))
	}
	t.Scratch = connect(steps)
	t.Apply = func(s *device.Stream, out, in Fields) error { return apply(s, out, in, fields, steps) }
	return t, nil
}

// A link is an operation in its chain.
type link struct {
	op       Op
	becomes  loader.Field
	from, to string // names of scratch fields; empty for the first and the last of a field
}

// connect gives each field's operations scratch fields between them.
func connect(steps []link) (scratch []loader.Field) {
	last := map[string]int{} // by field, the step before
	for i := range steps {
		if before, ok := last[steps[i].op.Field]; ok {
			f := steps[before].becomes
			f.Name = fmt.Sprintf("%s after operation %d", f.Name, before)
			steps[before].to, steps[i].from = f.Name, f.Name
			scratch = append(scratch, f)
		}
		last[steps[i].op.Field] = i
	}
	return scratch
}

func apply(s *device.Stream, out, in Fields, fields []loader.Field, steps []link) error {
	for i := range fields {
		if !touched(steps, fields[i].Name) {
			if err := s.CopyD2D(out.Field(fields[i].Name).View, in.Field(fields[i].Name).View); err != nil {
				return err
			}
		}
	}
	for i := range steps {
		l := &steps[i]
		from, to := in.Field, out.Field
		source, target := l.op.Field, l.op.Field
		if l.from != "" {
			from, source = out.Scratch, l.from
		}
		if l.to != "" {
			to, target = out.Scratch, l.to
		}
		if err := l.op.Apply(s, to(target), from(source), in); err != nil {
			return err
		}
	}
	return nil
}

func touched(steps []link, name string) bool {
	for i := range steps {
		if steps[i].op.Field == name {
			return true
		}
	}
	return false
}

func indexOf(fields []loader.Field, name string) int {
	for i, f := range fields {
		if f.Name == name {
			return i
		}
	}
	return -1
}

// Normalize is kernels.Normalize: uint8 images [H, W, C] become p.Out (float32 if
// left out), [C, H, W] with kernels.ToPlanar. p.Pixels comes from the shape.
func Normalize(field string, p kernels.NormalizeParams) Op {
	if p.Out == dtype.Invalid {
		p.Out = dtype.Float32
	}
	return Op{Field: field,
		Becomes: func(f loader.Field) (loader.Field, error) {
			if f.DType != dtype.Uint8 {
				return f, fmt.Errorf("Normalize takes uint8, not %v", f.DType)
			}
			shape := f.Shape
			switch {
			case p.Layout == kernels.Interleaved:
			case len(shape) != 3:
				return f, fmt.Errorf("Normalize %v takes three axes, not %v", p.Layout, shape)
			case p.Layout == kernels.ToPlanar:
				p.Pixels = int64(shape[0]) * int64(shape[1])
				f.Shape = []int{shape[2], shape[0], shape[1]}
			default:
				p.Pixels = int64(shape[1]) * int64(shape[2])
			}
			f.DType = p.Out
			return f, nil
		},
		Apply: func(s *device.Stream, out, in Field, _ Fields) error {
			return kernels.Normalize(s, out.View, in.View, p)
		},
	}
}

// Convert is kernels.Convert: elements become of type to, among uint8, float16,
// bfloat16 and float32.
func Convert(field string, to dtype.Type) Op {
	return Op{Field: field,
		Becomes: func(f loader.Field) (loader.Field, error) { f.DType = to; return f, nil },
		Apply: func(s *device.Stream, out, in Field, _ Fields) error {
			return kernels.Convert(s, out.View, in.View, to, in.DType)
		},
	}
}

// OneHot is kernels.OneHot: labels become rows of float32 [classes].
func OneHot(field string, classes int) Op {
	return Op{Field: field,
		Becomes: func(f loader.Field) (loader.Field, error) {
			if classes < 1 {
				return f, fmt.Errorf("OneHot of %d classes, want 1 or more", classes)
			}
			return loader.Field{DType: dtype.Float32, Shape: append(append([]int(nil), f.Shape...), classes)}, nil
		},
		Apply: func(s *device.Stream, out, in Field, _ Fields) error {
			return kernels.OneHot(s, out.View, in.View, kernels.OneHotParams{Classes: classes, Labels: in.DType})
		},
	}
}

// Crop is kernels.Crop: images [H, W, C] are cropped to [height, width, C] and
// flipped at random, or cropped at their centre. Of p only Pad, FlipProbability and
// Centre are looked at: the shape gives the rest, and the loader's seed, the epoch
// and the sample's position the randomness, so that it is the same in every run.
func Crop(field string, height, width int, p kernels.CropParams) Op {
	p.OutHeight, p.OutWidth = height, width
	return Op{Field: field,
		Becomes: func(f loader.Field) (loader.Field, error) {
			if len(f.Shape) != 3 {
				return f, fmt.Errorf("Crop takes three axes, not %v", f.Shape)
			}
			p.Height, p.Width, p.PixelBytes = f.Shape[0], f.Shape[1], f.Shape[2]*f.DType.Bytes()
			if height < 1 || width < 1 || height > p.Height+2*p.Pad || width > p.Width+2*p.Pad {
				return f, fmt.Errorf("Crop to %d×%d doesn't fit into %d×%d padded by %d", height, width, p.Height, p.Width, p.Pad)
			}
			f.Shape = []int{height, width, f.Shape[2]}
			return f, nil
		},
		Apply: func(s *device.Stream, out, in Field, batch Fields) error {
			p := p
			p.Seed, p.Epoch, p.Position = batch.Seed(), uint64(batch.Position().Epoch), uint64(batch.Position().Sample)
			return kernels.Crop(s, out.View, in.View, p)
		},
	}
}
