package compose

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leat-go/leat/loader"
)

// composed is a Dataset of this package. What it has at an index may depend on the pass.
type composed interface {
	loader.Composed
	loader.Fingerprinter
	// read is Read in a pass. At the top a pass is the loader's epoch; below a Repeat or
	// a Mix there are several in an epoch, and no two have the same number.
	read(ctx context.Context, pass uint64, index int, row *loader.Row) error
	// varies reports whether the sample at an index depends on the pass.
	varies() bool
}

// part is a dataset that others are made of.
type part struct {
	dataset  loader.Dataset
	composed composed // the same, if it is of this package
	fields   []loader.Field
	length   int
}

// newPart describes a dataset; the error names it by the parameter that it came in.
func newPart(parameter string, ds loader.Dataset) (part, error) {
	length, fields, err := loader.Describe(ds)
	if err != nil {
		return part{}, fmt.Errorf("compose: %s: %w", parameter, err)
	}
	p := part{dataset: ds, fields: fields, length: length}
	p.composed, _ = ds.(composed)
	return p, nil
}

// newParts describes several, which came in the parameter of that name; there must be one
// at least.
func newParts(parameter string, datasets []loader.Dataset) ([]part, error) {
	if len(datasets) == 0 {
		return nil, mistake(parameter, "empty", "at least one dataset")
	}
	parts := make([]part, len(datasets))
	var errs []error
	for i, ds := range datasets {
		var err error
		parts[i], err = newPart(fmt.Sprintf("%s[%d]", parameter, i), ds)
		errs = append(errs, err)
	}
	return parts, errors.Join(errs...)
}

// read reads a sample of the part.
func (p *part) read(ctx context.Context, pass uint64, index int, row *loader.Row) error {
	if uint(index) >= uint(p.length) {
		return &IndexError{Index: index, Len: p.length}
	}
	if p.composed != nil {
		return p.composed.read(ctx, pass, index, row)
	}
	return p.dataset.Read(ctx, index, row)
}

// vary reports whether what one of the parts has at an index depends on the pass.
func vary(parts []part) bool {
	for i := range parts {
		if c := parts[i].composed; c != nil && c.varies() {
			return true
		}
	}
	return false
}

// datasets are those of the parts.
func datasets(parts []part) []loader.Dataset {
	all := make([]loader.Dataset, len(parts))
	for i := range parts {
		all[i] = parts[i].dataset
	}
	return all
}

// IndexError is an index that a dataset does not have: the user's function of a Select
// returned it, or Read was called with it.
type IndexError struct {
	// Index is what was asked for, Len the number of samples.
	Index, Len int
}

// Error implements error.
func (e *IndexError) Error() string {
	return fmt.Sprintf("compose: sample %d of a dataset of %d", e.Index, e.Len)
}

// mistake is a parameter that cannot be.
func mistake(parameter string, value any, want string) error {
	return &loader.OptionError{Package: "compose", Option: parameter, Value: value, Want: want}
}

// alike is an error that names both where two of the parts have other fields.
func alike(parameter string, parts []part) error {
	var errs []error
	for i, p := range parts {
		if !slices.EqualFunc(p.fields, parts[0].fields, loader.Field.Equal) {
			errs = append(errs, mistake(fmt.Sprintf("%s[%d]", parameter, i),
				"a dataset of "+listed(p.fields), fmt.Sprintf("%s, the fields of the first", listed(parts[0].fields))))
		}
	}
	return errors.Join(errs...)
}

// listed are fields for people to read.
func listed(fields []loader.Field) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.String()
	}
	return strings.Join(names, ", ")
}
