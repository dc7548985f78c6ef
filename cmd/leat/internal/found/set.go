package found

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/source"
)

// Options says what can't be seen in the data. The zero value is ready to use.
type Options struct {
	// Format is one of Formats. Empty means the one that is found.
	Format string
	// DType is the type of tokens in files without a header. 0 means Uint16, which most have.
	DType dtype.Type
	// Window is the length of a window of tokens. 0 means 1024.
	Window int
	// Side is the height and the width that encoded pictures are scaled to. 0 means 64, which
	// is enough to look at.
	Side int
	// Probe is how many samples are looked at to know the fields of samples that don't state
	// them. 0 means 1000.
	Probe int
}

func (o Options) withDefaults() Options {
	if o.DType == dtype.Invalid {
		o.DType = dtype.Uint16
	}
	if o.Window == 0 {
		o.Window = 1024
	}
	if o.Side == 0 {
		o.Side = 64
	}
	if o.Probe == 0 {
		o.Probe = 1000
	}
	return o
}

func (o Options) validate() error {
	var errs []error
	if o.Format != "" && !slices.Contains(Formats(), o.Format) {
		errs = append(errs, fmt.Errorf("Format is %q, have %s", o.Format, strings.Join(Formats(), ", ")))
	}
	for _, n := range []struct {
		name string
		v    int
	}{{"Window", o.Window}, {"Side", o.Side}, {"Probe", o.Probe}} {
		if n.v < 0 {
			errs = append(errs, fmt.Errorf("%s is %d, want 0 or more", n.name, n.v))
		}
	}
	if o.Side > 4096 {
		errs = append(errs, fmt.Errorf("Side is %d, want at most 4096", o.Side))
	}
	return errors.Join(errs...)
}

// A Set is data that was found and opened.
type Set struct {
	// Format is one of Formats.
	Format string
	// Path is where it was looked for, Files is what was found there; nil for a folder whose
	// files the format itself looks for.
	Path  string
	Files []source.Source
	// Bytes is the size of the files, -1 if it is not known.
	Bytes int64
	// Data are the samples.
	Data loader.Dataset
	// Fields are those of Data.
	Fields []loader.Field
	// Names are the names that the numbers of a field stand for, by field.
	Names map[string][]string
	// Notes are what a person should know.
	Notes []string

	code  code
	close func() error
}

// Len is the number of samples.
func (s *Set) Len() int { return s.Data.Len() }

// Origin is where a sample comes from, as far as that is known.
func (s *Set) Origin(index int) loader.Origin {
	if l, ok := s.Data.(loader.Locator); ok {
		return l.Origin(index)
	}
	return loader.Origin{}
}

// Close closes the files.
func (s *Set) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close()
}

func (s *Set) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

// opened sets what all formats have.
func (s *Set) opened(data loader.Dataset, close func() error) error {
	s.Data, s.close = data, close
	var err error
	_, s.Fields, err = loader.Describe(data)
	return err
}

// Open finds out what is at a path, and opens it: a file, a folder, or a pattern of
// source.Glob. The caller closes the Set.
func Open(ctx context.Context, path string, o Options) (s *Set, err error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	s, err = look(ctx, path, o)
	if err != nil {
		return nil, err
	}
	f := formats[slices.IndexFunc(formats, func(f format) bool { return f.name == s.Format })]
	if err := f.open(ctx, s, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.measure(ctx)
	return s, nil
}

// measure sets Bytes.
func (s *Set) measure(ctx context.Context) {
	if s.Bytes = 0; len(s.Files) == 0 {
		s.Bytes = -1
	}
	for _, f := range s.Files {
		info, err := source.Stat(ctx, f)
		if err != nil || info.Size > math.MaxInt64-s.Bytes {
			s.Bytes = -1
			return
		}
		s.Bytes += info.Size
	}
}
