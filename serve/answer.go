package serve

import (
	"fmt"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// Answers are the results of a batch in host memory, a row for each request, in the order of
// the batch's rows. prefetch.Column sees a field of all rows.
type Answers struct {
	fields []prefetch.Field
	asked  []bool // which of them a HostStep has asked for
	rows   int
}

// Len is the number of rows.
func (a Answers) Len() int { return a.rows }

// Lookup returns the field of that name, if there is one.
func (a Answers) Lookup(name string) (prefetch.Field, bool) {
	for i, f := range a.fields {
		if f.Name == name {
			if a.asked != nil {
				a.asked[i] = true
			}
			return f, true
		}
	}
	return prefetch.Field{}, false
}

// unwritten is why a step can't have written all fields: it never asked for one. Its rows
// would be those of other requests.
func (a Answers) unwritten() error {
	for i, asked := range a.asked {
		f := &a.fields[i]
		if !asked && len(f.Bytes) > 0 {
			return &loader.UnwrittenError{Field: loader.Field{Name: f.Name, DType: f.DType, Shape: f.Shape[1:]}}
		}
	}
	return nil
}

// Answer is one request's row of results. It lends none of its memory, which other batches
// use again: what is read from it is a copy.
type Answer struct {
	of  Answers
	row int
}

// row is the elements of a field.
func row[T dtype.Element](a Answer, field string) ([]T, error) {
	all, err := prefetch.Column[T](a.of, field)
	if err != nil {
		return nil, err
	}
	n := len(all) / max(a.of.rows, 1)
	return all[a.row*n : (a.row+1)*n], nil
}

// Values is a copy of the elements of the field of that name, which is the caller's. It is a
// *prefetch.ColumnError if there is no such field, or if its elements are of another type.
func Values[T dtype.Element](a Answer, field string) ([]T, error) {
	r, err := row[T](a, field)
	return append([]T(nil), r...), err
}

// Value is the element of the field of that name, which has one. It is an error as of Values,
// and if there is any other number of them.
func Value[T dtype.Element](a Answer, field string) (value T, err error) {
	r, err := row[T](a, field)
	if err == nil && len(r) != 1 {
		err = &prefetch.ColumnError{Field: field, Err: fmt.Errorf("it has %d elements, not 1", len(r))}
	}
	if err != nil {
		return value, err
	}
	return r[0], nil
}

// Copy copies the elements of the field of that name to dst, which must have as many, and
// stays as it is if there is an error. It is Values for memory that the caller has already.
func Copy[T dtype.Element](dst []T, a Answer, field string) error {
	r, err := row[T](a, field)
	if err == nil && len(r) != len(dst) {
		err = &prefetch.ColumnError{Field: field, Err: fmt.Errorf("it has %d elements, not %d", len(r), len(dst))}
	}
	if err != nil {
		return err
	}
	copy(dst, r)
	return nil
}
