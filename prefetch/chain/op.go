package chain

import (
	"slices"

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
	// sample. The Name in it is not looked at. An error says why the operation can't be
	// done to the field as it comes in.
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
	out, err := op.Output(clone(f))
	if err != nil {
		return f, err
	}
	out.Name = f.Name
	if _, err := loader.NewLayout([]loader.Field{out}, 1); err != nil {
		return f, err
	}
	return clone(out), nil
}

// clone is a copy that shares no shape: the caller may go on to change its own.
func clone(f loader.Field) loader.Field {
	f.Shape = slices.Clone(f.Shape)
	return f
}
