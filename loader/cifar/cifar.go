// Package cifar has the pictures of CIFAR-10 and CIFAR-100 in their binary versions
// (https://www.cs.toronto.edu/~kriz/cifar.html): data_batch_1.bin to data_batch_5.bin and
// test_batch.bin, or train.bin and test.bin.
//
//	files, err := source.Glob("cifar-10-batches-bin/data_batch_{1..5}.bin")
//	data, err := cifar.Open(ctx, files, cifar.Options{})
//	defer data.Close()
package cifar

import (
	"context"
	"fmt"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/given"
	"github.com/leat-go/leat/loader/records"
	"github.com/leat-go/leat/loader/source"
)

// Options tunes Open. The zero value is ready to use.
type Options struct {
	// Classes is 10 or 100. 0 means that the files' sizes say which: a picture takes 3073 bytes
	// in CIFAR-10, with one label, and 3074 in CIFAR-100, with two.
	Classes int
	// Mapped maps the files that are paths into memory, which pays where they lie in the
	// system's memory already: see source.Mapped.
	Mapped bool
}

// Dataset is the pictures of some files, in the order of the files. It is a loader.Dataset, a
// loader.Fingerprinter and a loader.Locator. Its methods may be called by several goroutines at
// once.
type Dataset struct {
	*records.Dataset
	labels []label
}

// label is a field of one byte, which is less than a number.
type label struct {
	name    string
	classes int
}

// kinds are the labels of a picture by the number of classes, as they lie in a file.
var kinds = map[int][]label{
	10:  {{"label", 10}},
	100: {{"coarse_label", 20}, {"label", 100}},
}

const pixels = 3 * 32 * 32

// Open opens files of one of the two. The fields of a sample are "label" and "image", both
// uint8; the image has the shape 3, 32, 32: the red, the green and the blue of all pixels,
// which lie in rows from the top. Of CIFAR-100 there is "coarse_label" too, the one of 20 kinds
// that the class is of, in front of "label". The Dataset owns the open files: close it behind
// the loaders that read it.
//
// The error is a *source.Error for a file that can't be opened, a *source.FormatError for one
// of another size, and a *loader.OptionError for a mistake in the options.
func Open(ctx context.Context, files []source.Source, o Options) (*Dataset, error) {
	if err := given.Files("cifar", files); err != nil {
		return nil, err
	}
	if o.Classes == 0 {
		classes, err := seen(ctx, files)
		if err != nil {
			return nil, err
		}
		o.Classes = classes
	}
	labels, ok := kinds[o.Classes]
	if !ok {
		return nil, &loader.OptionError{Package: "cifar", Option: "Classes", Value: o.Classes, Want: "10, 100, or 0 (as the files' sizes say)"}
	}
	if err := fit(ctx, files, o.Classes); err != nil {
		return nil, err
	}
	var fields []loader.Field
	for _, l := range labels {
		fields = append(fields, loader.Field{Name: l.name, DType: dtype.Uint8})
	}
	fields = append(fields, loader.Field{Name: "image", DType: dtype.Uint8, Shape: []int{3, 32, 32}})
	all, err := records.Open(ctx, files, fields, records.Options{Mapped: o.Mapped})
	if err != nil {
		return nil, err
	}
	return &Dataset{Dataset: all, labels: labels}, nil
}

// seen is the number of classes that all files can have by their sizes.
func seen(ctx context.Context, files []source.Source) (int, error) {
	ten, hundred := true, true
	for _, s := range files {
		info, err := source.Stat(ctx, s)
		if err != nil {
			return 0, err
		}
		ten, hundred = ten && info.Size%(pixels+1) == 0, hundred && info.Size%(pixels+2) == 0
		if !ten && !hundred {
			return 0, wrongSize(s, fmt.Sprintf("pictures of %d bytes each or of %d, as in all files", pixels+1, pixels+2), info.Size)
		}
	}
	switch {
	case ten && hundred:
		return 0, &loader.OptionError{Package: "cifar", Option: "Classes", Value: 0, Want: "10 or 100: files of these sizes can be either"}
	case ten:
		return 10, nil
	}
	return 100, nil
}

// fit looks whether the files have whole pictures.
func fit(ctx context.Context, files []source.Source, classes int) error {
	record := int64(len(kinds[classes]) + pixels)
	for _, s := range files {
		info, err := source.Stat(ctx, s)
		if err != nil {
			return err
		}
		if info.Size%record != 0 {
			return wrongSize(s, fmt.Sprintf("pictures of CIFAR-%d, of %d bytes each", classes, record), info.Size)
		}
	}
	return nil
}

func wrongSize(s source.Source, want string, size int64) error {
	return &source.FormatError{Format: "cifar", File: s.Name(), Offset: -1, Record: -1, Want: want, Got: fmt.Sprintf("%d bytes", size)}
}

// Read reads a picture. The error is a *source.Error, or a *source.FormatError for a label
// that is none, with the file and the offset.
func (d *Dataset) Read(ctx context.Context, index int, row *loader.Row) error {
	if err := d.Dataset.Read(ctx, index, row); err != nil {
		return err
	}
	for i, l := range d.labels {
		if got := row.Bytes(l.name)[0]; int(got) >= l.classes {
			at := d.Origin(index)
			return &source.FormatError{Format: "cifar", File: at.File, Offset: at.Offset + int64(i), Record: at.Record,
				Field: l.name, Want: fmt.Sprintf("0 to %d", l.classes-1), Got: fmt.Sprint(got)}
		}
	}
	return nil
}
