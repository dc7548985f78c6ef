package safetensors

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/columns"
	"github.com/leat-go/leat/loader/internal/given"
	"github.com/leat-go/leat/loader/internal/mix"
	"github.com/leat-go/leat/loader/source"
)

// Options tunes Open. The zero value is ready to use.
type Options struct {
	// Tensors are those to take, in this order. Empty means all of the first file, in the order
	// of its header.
	Tensors []string
	// Mapped maps the files that are paths into memory, which pays for small samples of files
	// that lie in the system's memory already: see source.Mapped.
	Mapped bool
}

// Dataset is the samples of some tensors. It is a loader.Dataset, a loader.Fingerprinter and a
// loader.Locator. Its methods may be called by several goroutines at once.
type Dataset struct {
	columns *columns.Dataset
	files   []source.File
	sum     uint64
}

// Open opens files, whose samples are one behind the other. Each has the tensors that are taken,
// all of the same first dimension, and alike in all files but for that. The Dataset owns the
// open files: close it behind the loaders that read it.
//
// The error is a *source.Error for a file that can't be opened or read, a
// *source.FormatError for one that is broken or that doesn't fit, and a *loader.OptionError
// for a mistake in the options.
func Open(ctx context.Context, files []source.Source, o Options) (*Dataset, error) {
	if err := o.validate(files); err != nil {
		return nil, err
	}
	d := &Dataset{columns: columns.New("safetensors")}
	names := o.Tensors
	var sums []uint64
	for _, s := range files {
		if o.Mapped {
			s = source.Mapped(s)
		}
		f, err := s.Open(ctx)
		if err != nil {
			return nil, errors.Join(err, d.Close())
		}
		d.files = append(d.files, f)
		h, err := ReadHeader(ctx, f)
		if err == nil {
			if len(names) == 0 {
				names = h.names()
			}
			err = d.add(f, &h, names)
		}
		if err != nil {
			return nil, errors.Join(err, d.Close())
		}
		sums = append(sums, uint64(h.sum))
	}
	sum, err := source.Fingerprint(ctx, files)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	for _, f := range d.Fields() {
		sums = append(sums, uint64(crc32.ChecksumIEEE([]byte(f.Name))))
	}
	d.sum = mix.Hash(append(sums, sum)...)
	return d, nil
}

func (o Options) validate(files []source.Source) error {
	var wrong []error
	for i, name := range o.Tensors {
		if slices.Contains(o.Tensors[:i], name) {
			wrong = append(wrong, &loader.OptionError{Package: "safetensors", Option: fmt.Sprintf("Tensors[%d]", i), Value: fmt.Sprintf("%q again", name), Want: "each once"})
		}
	}
	return errors.Join(append(wrong, given.Files("safetensors", files))...)
}

// names are those of all tensors.
func (h *Header) names() (names []string) {
	for _, t := range h.Tensors {
		names = append(names, t.Name)
	}
	return names
}

// add adds the samples of a file.
func (d *Dataset) add(f source.File, h *Header, names []string) error {
	places := make(map[string]int, len(h.Tensors)) // a header may have a million
	for i := range h.Tensors {
		places[h.Tensors[i].Name] = i
	}
	var arrays []columns.Array
	for _, name := range names {
		i, ok := places[name]
		if !ok {
			return wrong(f, -1, "", fmt.Sprintf("a tensor %q", name), fmt.Sprintf("%q", h.names()))
		}
		t := &h.Tensors[i]
		if !t.DType.Valid() {
			return wrong(f, -1, name, "elements of a type that Leat has", t.Kind)
		}
		arrays = append(arrays, columns.Array{Name: name, DType: t.DType, Shape: t.Shape, File: f, Offset: t.Offset})
	}
	return d.columns.Add(f.Name(), arrays)
}

// Len is the number of samples in all files.
func (d *Dataset) Len() int { return d.columns.Len() }

// Fields are those of a sample: of a tensor one, without the tensor's first dimension.
func (d *Dataset) Fields() []loader.Field { return d.columns.Fields() }

// Fingerprint tells the files from others by their names, sizes and headers: see
// source.Fingerprint.
func (d *Dataset) Fingerprint() uint64 { return d.sum }

// Origin is the file of a sample, where its first field begins, and its number there.
func (d *Dataset) Origin(index int) loader.Origin { return d.columns.Origin(index) }

// Read reads a sample. The error is a *source.Error, or a *source.FormatError for a bool that
// is neither 0 nor 1, with the file and the offset.
func (d *Dataset) Read(ctx context.Context, index int, row *loader.Row) error {
	return d.columns.Read(ctx, index, row)
}

// Close closes the files. It doesn't wait for reads under way; later ones fail with
// fs.ErrClosed.
func (d *Dataset) Close() error {
	var errs []error
	for _, f := range d.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
