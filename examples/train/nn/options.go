package nn

import (
	"errors"
	"fmt"
	"slices"

	"github.com/leat-go/leat/dtype"
)

// Options describes a Network. Inputs, Classes and MaxBatch are required.
type Options struct {
	// Inputs is the number of values in a sample, 784 for MNIST.
	Inputs int
	// Classes is the number of labels.
	Classes int
	// MaxBatch is the largest batch that Step and Eval will be given.
	MaxBatch int
	// Hidden are the widths of the hidden layers. nil means one of 128; an empty
	// slice means none.
	Hidden []int
	// Seed decides the initial parameters.
	Seed uint64

	// Images is the images' element type: Uint8 (also if left out), which Step
	// normalises first, or Float32.
	Images dtype.Type
	// Mean and Std normalise Uint8 images; see kernels.NormalizeParams. A
	// Std of 0 means 0.3, near MNIST's own. A Mean of 0 keeps black pixels 0,
	// and the matrix product on the CPU skips zeros.
	Mean, Std float32
	// Labels is the labels' element type: Uint8 (also if left out), Int32 or Int64.
	Labels dtype.Type

	// LearningRate is Adam's. 0 means 0.003.
	LearningRate float64
	// DecaySteps is the number of steps over which the learning rate falls, in a
	// line, to zero. 0 means that it stays.
	DecaySteps int
	// ReportSteps is how many steps may lie between two Reports. 0 means 65,536;
	// each costs 8 bytes of device memory.
	ReportSteps int
}

func (o Options) withDefaults() Options {
	if o.Hidden == nil {
		o.Hidden = []int{128}
	}
	if o.Images == dtype.Invalid {
		o.Images = dtype.Uint8
	}
	if o.Labels == dtype.Invalid {
		o.Labels = dtype.Uint8
	}
	if o.Std == 0 {
		o.Std = 0.3
	}
	if o.LearningRate == 0 {
		o.LearningRate = 0.003
	}
	if o.ReportSteps == 0 {
		o.ReportSteps = 1 << 16
	}
	return o
}

func (o Options) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("nn: "+format, args...)) }
	positive := func(name string, v int) {
		if v < 1 {
			bad("%s is %d, want 1 or more", name, v)
		}
	}
	positive("Inputs", o.Inputs)
	positive("Classes", o.Classes)
	positive("MaxBatch", o.MaxBatch)
	for i, w := range o.Hidden {
		positive(fmt.Sprintf("Hidden[%d]", i), w)
	}
	positive("ReportSteps", o.ReportSteps)
	if o.DecaySteps < 0 {
		bad("DecaySteps is %d, want 0 or more", o.DecaySteps)
	}
	if !(o.LearningRate > 0) {
		bad("LearningRate is %v, want more than 0", o.LearningRate)
	}
	if !(o.Std > 0) {
		bad("Std is %v, want more than 0", o.Std)
	}
	if !slices.Contains([]dtype.Type{dtype.Uint8, dtype.Float32}, o.Images) {
		bad("Images is %v, want uint8 or float32", o.Images)
	}
	if !slices.Contains([]dtype.Type{dtype.Uint8, dtype.Int32, dtype.Int64}, o.Labels) {
		bad("Labels is %v, want uint8, int32 or int64", o.Labels)
	}
	return errors.Join(errs...)
}
