package chain

import (
	"fmt"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// An Op is one operation on one field: one of this package's, or the user's own. It
// describes work and holds no state of its uses, so that one Op may be in several chains,
// on fields of other shapes.
type Op struct {
	// Name is the operation's name in errors, "Normalize" for example.
	Name string
	// Field is the name of the field that it changes.
	Field string
	// Output returns what the field is after the operation: its DType and Shape, of one
	// sample, and whether it is Ragged: then it has the lengths of the field that comes in,
	// and so its maximum. The Name in it is not looked at. An error says why the operation
	// can't be done to the field as it comes in.
	Output func(in loader.Field) (loader.Field, error)
	// Apply submits to s the work that reads in and overwrites out. Their shapes are those
	// of Output, with the number of rows in front. batch says which batch it is. What
	// depends on the shape is worked out from in, and not kept from Output, which may have
	// been called for another chain since. It is called as Transform.Apply is.
	// Device.CheckKernels says before the first batch whether a kernel runs on a GPU.
	Apply func(s *device.Stream, out, in prefetch.Field, batch prefetch.Fields) error
}

// output is what f is after the operation, checked.
func (op *Op) output(f loader.Field) (loader.Field, error) {
	switch {
	case op.Output == nil:
		return f, &OptionError{Option: "Op.Output", Value: nil, Want: "a function"}
	case op.Apply == nil:
		return f, &OptionError{Option: "Op.Apply", Value: nil, Want: "a function"}
	}
	out, err := op.Output(f.Clone())
	if err != nil {
		return f, err
	}
	out = out.Clone()
	out.Name = f.Name
	if err := keepLengths(&out, f); err != nil {
		return f, err
	}
	if _, err := loader.NewLayout([]loader.Field{out}, 1); err != nil {
		return f, err
	}
	return out, nil
}

// keepLengths makes a ragged output as ragged as its input.
func keepLengths(out *loader.Field, in loader.Field) error {
	switch {
	case out.Ragged == nil:
		return nil
	case in.Ragged == nil:
		return &OptionError{Option: "Ragged", Value: *out, Want: "an output of one size, as the field that comes in"}
	case len(out.Shape) == 0 || out.Shape[0] != in.Shape[0]:
		return &OptionError{Option: "Shape", Value: *out, Want: fmt.Sprintf("%d as its first dimension, the maximum of %v, whose lengths it has", in.Shape[0], in)}
	}
	ragged := *in.Ragged
	ragged.Pad = 0 // the operation computes the padding too
	out.Ragged = &ragged
	return nil
}

// ofOneSize refuses a ragged field for an operation that takes its first dimension for
// another thing than a length.
func ofOneSize(f loader.Field, why string) error {
	if f.Ragged == nil {
		return nil
	}
	return &OptionError{Option: "Ragged", Value: f, Want: "a field of one size: " + why}
}
