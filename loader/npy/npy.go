package npy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/columns"
	"github.com/leat-go/leat/loader/internal/given"
	"github.com/leat-go/leat/loader/internal/mix"
	"github.com/leat-go/leat/loader/source"
)

// Options tunes Open. The zero value is ready to use.
type Options struct {
	// Name is the field that the array of a .npy file becomes, which has no name of its own.
	// Empty means "data".
	Name string
	// Arrays are those to take of .npz archives, in this order. Empty means all, in the order
	// of the first archive.
	Arrays []string
	// Void is the type of elements of which a file says only the width: BFloat16 for those of
	// ml_dtypes, which NumPy calls V2. Without it they are refused.
	Void dtype.Type
	// MemoryBytes is the most memory for what can't be read row by row: arrays in Fortran
	// order of more than one dimension, and compressed ones. 0 means 4 GiB. Memory grows with
	// the data that is there, not with what a header says is to come.
	MemoryBytes int64
	// Mapped maps the files that are paths into memory, which pays for small samples of files
	// that lie in the system's memory already: see source.Mapped.
	Mapped bool
}

// Dataset is the samples of some arrays. It is a loader.Dataset, a loader.Fingerprinter and a
// loader.Locator. Its methods may be called by several goroutines at once.
type Dataset struct {
	columns *columns.Dataset
	files   []source.File
	sum     uint64
}

// Open opens files, each a .npy file or an .npz archive by what it begins with. Those of
// several are one behind the other, and must be alike but for their first dimension. The
// Dataset owns the open files: close it behind the loaders that read it.
//
// The error is a *source.Error for a file that can't be opened or read, a
// *source.FormatError for one that is broken or that doesn't fit, and a *loader.OptionError
// for a mistake in the options.
func Open(ctx context.Context, files []source.Source, o Options) (*Dataset, error) {
	o, err := o.withDefaults(files)
	if err != nil {
		return nil, err
	}
	d := &Dataset{columns: columns.New("npy")}
	in := &opening{dataset: d, options: o, memory: o.MemoryBytes}
	for _, s := range files {
		if err := in.add(ctx, s); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	sum, err := source.Fingerprint(ctx, files)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.sum = mix.Hash(append([]uint64{sum}, in.sums...)...)
	return d, nil
}

func (o Options) withDefaults(files []source.Source) (Options, error) {
	var wrong []error
	check := func(ok bool, option string, value any, want string) {
		if !ok {
			wrong = append(wrong, &loader.OptionError{Package: "npy", Option: option, Value: value, Want: want})
		}
	}
	check(o.MemoryBytes >= 0, "MemoryBytes", o.MemoryBytes, "0 (4 GiB) or more")
	check(o.Void == dtype.Invalid || o.Void.Valid(), "Void", o.Void, "a type of elements")
	for i, name := range o.Arrays {
		check(!slices.Contains(o.Arrays[:i], name), fmt.Sprintf("Arrays[%d]", i), fmt.Sprintf("%q again", name), "each once")
	}
	if o.Name == "" {
		o.Name = "data"
	}
	if o.MemoryBytes == 0 {
		o.MemoryBytes = 4 << 30
	}
	o.MemoryBytes = min(o.MemoryBytes, math.MaxInt) // 32-bit machines have less
	return o, errors.Join(append(wrong, given.Files("npy", files))...)
}

// opening is what Open knows on its way.
type opening struct {
	dataset *Dataset
	options Options
	memory  int64    // that is left
	names   []string // of an archive's arrays, once they are known
	sums    []uint64 // what goes into the fingerprint beside names and sizes
}

// add adds a file.
func (in *opening) add(ctx context.Context, s source.Source) error {
	if in.options.Mapped {
		s = source.Mapped(s)
	}
	opened, err := s.Open(ctx)
	if err != nil {
		return err
	}
	in.dataset.files = append(in.dataset.files, opened)
	f := file{opened, 0, opened.Size(), ""}
	start := make([]byte, min(4, f.size))
	if err := source.ReadFull(ctx, f, start, 0); err != nil {
		return err
	}
	var arrays []columns.Array
	if isZip(start) {
		arrays, err = in.archive(ctx, f)
	} else {
		var a columns.Array
		a, err = in.array(ctx, f, in.options.Name)
		arrays = append(arrays, a)
	}
	if err != nil {
		return err
	}
	return in.dataset.columns.Add(f.Name(), arrays)
}

// array is that of a .npy file.
func (in *opening) array(ctx context.Context, f file, name string) (columns.Array, error) {
	h, err := f.header(ctx, in.options)
	if err != nil {
		return columns.Array{}, err
	}
	in.sums = append(in.sums, uint64(h.DType), uint64(len(h.Shape)))
	for _, dim := range h.Shape {
		in.sums = append(in.sums, uint64(dim))
	}
	a := columns.Array{Name: name, DType: h.DType, Shape: h.Shape, File: f.File, Offset: f.base + h.Offset, BigEndian: h.BigEndian}
	if h.Fortran && len(h.Shape) > 1 && h.Bytes > 0 {
		in.sums = append(in.sums, 1)
		if err := in.take(f, h.Bytes, "an array in Fortran order"); err != nil {
			return a, err
		}
		rows, err := f.rows(ctx, h)
		if err != nil {
			return a, err
		}
		a.File, a.Offset = columns.Memory(f.Name(), rows), 0
	}
	return a, nil
}

// take takes memory, if there is as much.
func (in *opening) take(f file, n int64, what string) error {
	if n < 0 || n > in.memory {
		return f.wrong(0, fmt.Sprintf("%s of at most the %d bytes that are left of Options.MemoryBytes", what, in.memory), fmt.Sprint(n))
	}
	in.memory -= n
	return nil
}

// Len is the number of samples in all files.
func (d *Dataset) Len() int { return d.columns.Len() }

// Fields are those of a sample: of an array one, without the array's first dimension.
func (d *Dataset) Fields() []loader.Field { return d.columns.Fields() }

// Fingerprint tells the files from others by their names and sizes, the types and shapes of
// their arrays, and the checksums that archives have: see source.Fingerprint.
func (d *Dataset) Fingerprint() uint64 { return d.sum }

// Origin is the file of a sample, where its first field begins, and its number there. The
// offset is in what is read: behind an array that was decompressed or turned into rows, it is
// in the memory that holds it.
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
