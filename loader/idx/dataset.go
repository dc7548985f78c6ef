package idx

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/leat-go/leat/loader"
)

// Dataset pairs images with their labels: field "image" of images' type and of
// their shape without the first dimension, and field "label" likewise, a scalar
// where there is one number for each image. It borrows both arrays for good.
func Dataset(images, labels *Array) (loader.Dataset, error) {
	if images == nil || labels == nil {
		return nil, fmt.Errorf("idx: a dataset of no images or no labels")
	}
	if err := errors.Join(images.validate("images"), labels.validate("labels")); err != nil {
		return nil, err
	}
	n := images.Shape[0]
	if labels.Shape[0] != n {
		return nil, fmt.Errorf("idx: %d images and %d labels, want as many", n, labels.Shape[0])
	}
	d := &dataset{samples: n}
	d.add("image", images)
	d.add("label", labels)
	return d, nil
}

// validate checks an array that may not have come from Read: rows cut from data of
// another size would be parts of others.
func (a *Array) validate(what string) error {
	if len(a.Shape) == 0 {
		return fmt.Errorf("idx: %s have no dimension, want at least one", what)
	}
	l, err := loader.NewLayout([]loader.Field{{Name: what, DType: a.DType, Shape: a.Shape}}, 1)
	if err != nil {
		return fmt.Errorf("idx: %s: %w", what, err)
	}
	if l.Size() != int64(len(a.Data)) {
		return fmt.Errorf("idx: %s of %v%v have %d bytes of data, want %d", what, a.DType, a.Shape, len(a.Data), l.Size())
	}
	return nil
}

type dataset struct {
	samples     int
	fields      []loader.Field
	data        [][]byte
	bytes       []int // of a sample
	fingerprint uint64
}

func (d *dataset) add(name string, a *Array) {
	d.fields = append(d.fields, loader.Field{Name: name, DType: a.DType, Shape: a.Shape[1:]})
	d.data = append(d.data, a.Data)
	d.bytes = append(d.bytes, len(a.Data)/max(d.samples, 1))
	// At several gigabytes a second this costs little beside reading the file.
	sum := crc32.Checksum(a.Data, crc32.MakeTable(crc32.Castagnoli))
	d.fingerprint = d.fingerprint<<32 | uint64(sum)
}

// Len implements loader.Dataset.
func (d *dataset) Len() int { return d.samples }

// Fields implements loader.Dataset.
func (d *dataset) Fields() []loader.Field { return d.fields }

// Fingerprint implements loader.Fingerprinter by the contents.
func (d *dataset) Fingerprint() uint64 { return d.fingerprint }

// Read implements loader.Dataset.
func (d *dataset) Read(_ context.Context, index int, row *loader.Row) error {
	for i, n := range d.bytes {
		copy(row.Bytes(d.fields[i].Name), d.data[i][index*n:])
	}
	return nil
}
