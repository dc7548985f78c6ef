package prefetch

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// Column is a field of a Batch, a Result or a Clone as elements of T, the rows one behind
// the other: Len times the product of the field's shape. It borrows the field's memory, in
// which the elements lie, and is valid as long as that. Float16 and BFloat16 are seen as
// uint16, their bits.
//
// It is a *ColumnError if there is no such field, if its elements are of another type, and
// if it lies in device memory, where View has it.
func Column[T dtype.Element, Of columned](of Of, name string) ([]T, error) {
	f, err := holds[T](of, name)
	if err != nil {
		return nil, err
	}
	if f.Bytes == nil && f.View.Size() > 0 {
		return nil, &ColumnError{Field: name, Err: errOnDevice}
	}
	return dtype.As[T](f.Bytes), nil
}

// holds is a field that has elements of T.
func holds[T dtype.Element, Of columned](of Of, name string) (Field, error) {
	f, ok := of.Lookup(name)
	switch {
	case !ok:
		return Field{}, noField(of, name)
	case !dtype.Holds[T](f.DType):
		return Field{}, &ColumnError{Field: name, Err: fmt.Errorf("its elements are %v, not %T", f.DType, *new(T))}
	}
	return f, nil
}

// noField is the error of a name that no field has, with the names that there are. It is a
// function of its own so that of becomes an interface's value only where it is missing.
func noField(of any, name string) error {
	var names []string
	switch of := of.(type) {
	case Batch:
		names = namesOf(of.p.stages.sizes.out)
	case Result:
		names = namesOf(of.use("Field").extent.layout)
	case *Clone:
		for _, f := range of.fields {
			names = append(names, strconv.Quote(f.Name))
		}
	}
	err := errNoField
	if len(names) > 0 {
		err = fmt.Errorf("%w, there is %s", err, strings.Join(names, ", "))
	}
	return &ColumnError{Field: name, Err: err}
}

func namesOf(l *loader.Layout) (names []string) {
	for _, f := range l.Fields() {
		names = append(names, strconv.Quote(f.Name))
	}
	return names
}

// columned is what has fields by name: a Batch, a Result or a *Clone. As a type parameter,
// and not as an interface's value, it is not allocated with every call.
type columned interface {
	Lookup(name string) (Field, bool)
}

// ColumnError says why a field can't be had as a column.
type ColumnError struct {
	// Field is the field's name.
	Field string
	Err   error
}

func (e *ColumnError) Error() string { return fmt.Sprintf("prefetch: field %q: %v", e.Field, e.Err) }

func (e *ColumnError) Unwrap() error { return e.Err }
