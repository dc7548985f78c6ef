package compose

import (
	"context"
	"errors"
	"fmt"

	"github.com/leat-go/leat/loader"
)

// Zip has in sample i the fields of sample i of all datasets, in the order of the
// datasets. They must be equally long, and no two may have a field of the same name. Each
// is lent the whole row, in which the fields of the others stand too; their random numbers
// follow one another.
func Zip(datasets ...loader.Dataset) (loader.Dataset, error) {
	parts, err := newParts("Zip: datasets", datasets)
	if err != nil {
		return nil, err
	}
	z := &zipped{parts: parts}
	if z.fields, err = joined(parts); err != nil {
		return nil, err
	}
	return z, nil
}

// joined are the fields of all parts, which must fit side by side.
func joined(parts []part) (fields []loader.Field, err error) {
	var errs []error
	owner := make(map[string]int)
	for i, p := range parts {
		name := fmt.Sprintf("Zip: datasets[%d]", i)
		if p.length != parts[0].length {
			errs = append(errs, mistake(name, fmt.Sprintf("a dataset of %d samples", p.length),
				fmt.Sprintf("%d, as many as datasets[0] has", parts[0].length)))
		}
		for _, f := range p.fields {
			if first, taken := owner[f.Name]; taken {
				errs = append(errs, mistake(name, fmt.Sprintf("a dataset with the field %v", f),
					fmt.Sprintf("a name that no field of datasets[%d] has", first)))
			}
			owner[f.Name] = i
		}
		fields = append(fields, p.fields...)
	}
	if len(errs) == 0 { // else it would say the same again
		if _, err := loader.NewLayout(fields, 1); err != nil { // such as lengths of one name
			errs = append(errs, fmt.Errorf("Zip: the fields of all: %w", err))
		}
	}
	return fields, errors.Join(errs...)
}

type zipped struct {
	parts  []part
	fields []loader.Field
}

func (z *zipped) Len() int                { return z.parts[0].length }
func (z *zipped) Fields() []loader.Field  { return z.fields }
func (z *zipped) Fingerprint() uint64     { return fingerprint(kindZip, z.parts) }
func (z *zipped) Parts() []loader.Dataset { return datasets(z.parts) }
func (z *zipped) varies() bool            { return vary(z.parts) }

// Part is that of the first dataset: a sample is made of one of each.
func (z *zipped) Part(pass uint64, index int) (part, at int, partPass uint64) { return 0, index, pass }

func (z *zipped) Read(ctx context.Context, index int, row *loader.Row) error {
	return z.read(ctx, uint64(row.Epoch()), index, row)
}

func (z *zipped) read(ctx context.Context, pass uint64, index int, row *loader.Row) error {
	for i := range z.parts {
		if err := z.parts[i].read(ctx, pass, index, row); err != nil {
			return err
		}
	}
	return nil
}
