package tokens

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/ends"
	"github.com/leat-go/leat/loader/internal/given"
	"github.com/leat-go/leat/loader/internal/mix"
	"github.com/leat-go/leat/loader/source"
)

// Options tunes Open. The zero value is for files that say what they have.
type Options struct {
	// DType is the type of the tokens in files that have no header: an integer. Where a file
	// has a header it must say the same; 0 takes what it says.
	DType dtype.Type
	// Stride is how many tokens there are from the beginning of a window to that of the next.
	// 0 means the windows' length.
	Stride int
	// Vocabulary is the number of tokens that there are: a sample with one that is not below
	// it is an error, as is a negative one. Files that are read as of another type have
	// plausible numbers otherwise. 0 means no check.
	Vocabulary int
	// Mapped maps the files that are paths into memory, which pays for files that lie in the
	// system's memory already: see source.Mapped.
	Mapped bool
}

// Dataset is the windows of some files, in the order of the files. It is a loader.Dataset, a
// loader.Fingerprinter and a loader.Locator. Its methods may be called by several goroutines at
// once.
type Dataset struct {
	length  int // of a window, without the one more
	options Options
	fields  []loader.Field
	parts   []part
	ends    ends.Ends
	sum     uint64
}

// part is the tokens of a file.
type part struct {
	source.File
	dtype  dtype.Type
	offset int64 // of the first
	count  int64
}

// field is the only one.
const field = "tokens"

// Open opens files of tokens and makes windows of length tokens and one more. Those of
// Megatron-LM come in pairs, in any order: the .bin and the .idx. The Dataset owns the open
// files: close it behind the loaders that read it.
//
// The error is a *source.Error for a file that can't be opened or read; a *source.FormatError
// for one that is broken, that is of another type than the first, or that has no window; and a
// *loader.OptionError for each mistake in the options, joined.
func Open(ctx context.Context, files []source.Source, length int, o Options) (*Dataset, error) {
	o, err := o.withDefaults(files, length)
	if err != nil {
		return nil, err
	}
	d := &Dataset{length: length, options: o}
	if err := d.open(ctx, files); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	sum, err := source.Fingerprint(ctx, files)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.sum = mix.Hash(sum, uint64(d.fields[0].DType), uint64(length), uint64(o.Stride))
	return d, nil
}

func (o Options) withDefaults(files []source.Source, length int) (Options, error) {
	var wrong []error
	check := func(ok bool, option string, value any, want string) {
		if !ok {
			wrong = append(wrong, &loader.OptionError{Package: "tokens", Option: option, Value: value, Want: want})
		}
	}
	check(length >= 1 && length < math.MaxInt32, "length", length, fmt.Sprintf("1 to %d", math.MaxInt32-1))
	check(o.DType == dtype.Invalid || integer(o.DType), "DType", o.DType, "0 (files have headers) or a type of integers")
	check(o.Stride >= 0, "Stride", o.Stride, "0 (the length) or more")
	check(o.Vocabulary >= 0, "Vocabulary", o.Vocabulary, "0 (no check) or more")
	if o.Stride == 0 {
		o.Stride = length
	}
	return o, errors.Join(append(wrong, given.Files("tokens", files))...)
}

func integer(t dtype.Type) bool { return t >= dtype.Uint8 && t <= dtype.Int64 }

// open opens the files and looks what they are.
func (d *Dataset) open(ctx context.Context, files []source.Source) error {
	for _, s := range files {
		if d.options.Mapped {
			s = source.Mapped(s)
		}
		f, err := s.Open(ctx)
		if err != nil {
			return err
		}
		d.parts = append(d.parts, part{File: f})
	}
	if err := d.pairs(ctx); err != nil {
		return err
	}
	for i := range d.parts {
		p := &d.parts[i]
		if p.dtype == dtype.Invalid { // else its .idx has said it
			if err := p.look(ctx, d.options.DType); err != nil {
				return err
			}
		}
		if err := d.add(p); err != nil {
			return err
		}
	}
	return nil
}

// add counts a file's windows.
func (d *Dataset) add(p *part) error {
	if d.fields == nil {
		d.fields = []loader.Field{{Name: field, DType: p.dtype, Shape: []int{d.length + 1}}}
		if _, err := loader.NewLayout(d.fields, 1); err != nil {
			return err
		}
	}
	switch {
	case p.dtype != d.fields[0].DType:
		return p.wrong(-1, fmt.Sprintf("%v, as the first file has", d.fields[0].DType), p.dtype.String())
	case d.options.DType.Valid() && p.dtype != d.options.DType:
		return p.wrong(-1, fmt.Sprintf("%v, as Options.DType says", d.options.DType), p.dtype.String())
	case p.count <= int64(d.length):
		return p.wrong(-1, fmt.Sprintf("at least the %d tokens of a window", d.length+1), fmt.Sprint(p.count))
	}
	windows := (p.count-1-int64(d.length))/int64(d.options.Stride) + 1
	if !d.ends.Add(windows) {
		return p.wrong(-1, fmt.Sprintf("at most %d windows in all files", math.MaxInt), "more")
	}
	return nil
}

func (p *part) wrong(at int64, want, got string) error {
	return &source.FormatError{Format: "tokens", File: p.Name(), Offset: at, Record: -1, Want: want, Got: got}
}

// Len is the number of windows in all files.
func (d *Dataset) Len() int { return d.ends.Len() }

// Fields are one: "tokens", of length+1 elements of the files' type.
func (d *Dataset) Fields() []loader.Field { return d.fields }

// Tokens is the number of tokens in all files, those included that fill no window.
func (d *Dataset) Tokens() (n int64) {
	for i := range d.parts {
		n += d.parts[i].count
	}
	return n
}

// Fingerprint tells the files from others by their names and sizes, and by the type of the
// tokens and how they are cut into windows: see source.Fingerprint.
func (d *Dataset) Fingerprint() uint64 { return d.sum }

// Origin is the file of a window, the offset of its first token, and its number there.
func (d *Dataset) Origin(index int) loader.Origin {
	p, window := d.ends.Locate(index)
	return loader.Origin{File: d.parts[p].Name(), Offset: d.at(p, window), Record: int64(window)}
}

// at is the offset of a window.
func (d *Dataset) at(p, window int) int64 {
	return d.parts[p].offset + int64(window)*int64(d.options.Stride)*int64(d.parts[p].dtype.Size())
}

// Read reads a window. The error is a *source.Error, or a *source.FormatError for a token
// outside of Options.Vocabulary, with the file and the offset.
func (d *Dataset) Read(ctx context.Context, index int, row *loader.Row) error {
	p, window := d.ends.Locate(index)
	part, to, from := &d.parts[p], row.Bytes(field), d.at(p, window)
	if err := source.ReadFull(ctx, part.File, to, from); err != nil {
		return err
	}
	if d.options.Vocabulary == 0 {
		return nil
	}
	if i, got := outside(to, part.dtype, uint64(d.options.Vocabulary)); i >= 0 {
		return &source.FormatError{Format: "tokens", File: part.Name(), Offset: from + int64(i*part.dtype.Size()), Record: int64(window),
			Field: fmt.Sprintf("token %d", i), Want: fmt.Sprintf("0 to %d", d.options.Vocabulary-1), Got: got}
	}
	return nil
}

// Close closes the files. It doesn't wait for reads under way; later ones fail with
// fs.ErrClosed.
func (d *Dataset) Close() error {
	var errs []error
	for i := range d.parts {
		errs = append(errs, d.parts[i].Close())
	}
	return errors.Join(errs...)
}
