package tensors

import (
	"bytes"
	"fmt"
	"slices"

	// Raised in go.mod too: tensor v0.9.24 panics at start on today's Go without it.
	_ "go4.org/unsafe/assume-no-moving-gc"
	"gorgonia.org/tensor"

	"github.com/leat-go/leat/prefetch"
)

// Of returns f as a tensor over f's own memory, valid as long as the batch is. It
// allocates a header, which [Cache.Of] does not.
//
// The error is a *FieldError: [ErrDeviceMemory], or [ErrNoElements].
func Of(f prefetch.Field) (*tensor.Dense, error) {
	e, err := check(f)
	if err != nil {
		return nil, err
	}
	return header(e, f), nil
}

// Clone returns f as a tensor over a copy of its memory, which is the caller's for
// good. Its errors are those of [Of].
func Clone(f prefetch.Field) (*tensor.Dense, error) {
	e, err := check(f)
	if err != nil {
		return nil, err
	}
	f.Bytes = bytes.Clone(f.Bytes)
	return header(e, f), nil
}

// check reports why there is no tensor of f.
func check(f prefetch.Field) (element, error) {
	fail := func(err error) (element, error) { return element{}, &FieldError{Name: f.Name, Err: err} }
	switch {
	case f.View.Size() > 0:
		return fail(ErrDeviceMemory)
	case len(f.Bytes) == 0:
		return fail(fmt.Errorf("of shape %v %w", f.Shape, ErrNoElements))
	}
	e, ok := elementOf(f.DType)
	if !ok {
		return fail(fmt.Errorf("has elements of type %v, want bool, an integer or a float", f.DType))
	}
	return e, nil
}

// header makes a tensor over f's memory. It does not keep f's shape, which is borrowed.
func header(e element, f prefetch.Field) *tensor.Dense {
	return tensor.New(tensor.WithShape(slices.Clone(f.Shape)...), tensor.WithBacking(e.backing(f.Bytes)))
}
