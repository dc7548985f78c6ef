package lines

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/given"
	"github.com/leat-go/leat/loader/internal/unpack"
	"github.com/leat-go/leat/loader/source"
)

// Options tunes Open. The zero value is ready to use.
type Options struct {
	// Index is the folder that indexes are kept in, which exists. Empty means that each is
	// beside its file, if that is one of the operating system: of a.txt it is .a.txt.lines.
	Index string
	// InMemory keeps no index in a file.
	InMemory bool
	// MaxLine is the length of the longest line, in bytes; a longer one is an error of Open.
	// 0 means 16 MiB, the largest is 1 GiB.
	MaxLine int
	// Mapped maps the files that are paths into memory, which pays for files that lie in the
	// system's memory already: see source.Mapped.
	Mapped bool
	// Split says what a record is. The zero value is the lines that are not empty.
	Split Split
}

// Split finds the records of a file.
type Split struct {
	// Kind names the rule, so that an index of another rule is not used. It changes where
	// anything changes that the rule depends on.
	Kind string
	// Scan calls record for each record of the file in their order, with its offset and its
	// bytes, which are borrowed until record returns. A record begins at the beginning of a
	// line and ends at the end of one, without the "\n" or "\r\n". It returns the error of
	// record at once. No record may be longer than most bytes.
	Scan func(ctx context.Context, f source.File, most int, record func(offset int64, text []byte) error) error
}

const (
	defaultMaxLine = 16 << 20
	mostMaxLine    = 1 << 30
)

func (o Options) withDefaults(files []source.Source) (Options, error) {
	var wrong []error
	check := func(ok bool, option string, value any, want string) {
		if !ok {
			wrong = append(wrong, &loader.OptionError{Package: "lines", Option: option, Value: value, Want: want})
		}
	}
	check(o.MaxLine >= 0 && o.MaxLine <= mostMaxLine, "MaxLine", o.MaxLine, fmt.Sprintf("0 (16 MiB) to %d", mostMaxLine))
	check((o.Split.Kind == "") == (o.Split.Scan == nil), "Split", "a Kind or a Scan alone", "both or none")
	check(o.Index == "" || !o.InMemory, "Index", fmt.Sprintf("%q beside InMemory", o.Index), "one of them")
	if o.MaxLine == 0 {
		o.MaxLine = defaultMaxLine
	}
	if o.Split.Scan == nil {
		o.Split = Split{Kind: "lines", Scan: scanLines}
	}
	return o, errors.Join(append(wrong, given.Files("lines", files))...)
}

// byteOrderMark begins the files of some programs. It is no part of the text.
const byteOrderMark = "\xef\xbb\xbf"

// scanLines has the lines that are not empty.
func scanLines(ctx context.Context, f source.File, most int, record func(offset int64, text []byte) error) error {
	r := source.NewReader(f, 0, source.Options{MaxLine: most})
	for first := true; ; first = false {
		at := r.Offset()
		text, err := r.Line(ctx)
		if err != nil {
			return scanned(f, err)
		}
		if kind := unpack.Sniff(text); first && kind != unpack.Plain {
			return &source.FormatError{Format: "lines", File: f.Name(), Offset: 0, Record: -1,
				Want: "text", Got: fmt.Sprintf("a %s file, which has no lines by number: decompress it, or read it by NewStream", kind)}
		}
		if first && len(text) >= 3 && string(text[:3]) == byteOrderMark {
			at, text = at+3, text[3:]
		}
		if len(text) == 0 {
			continue
		}
		if err := record(at, text); err != nil {
			return err
		}
	}
}

// scanned is how a scan ends.
func scanned(f source.File, err error) error {
	var long *source.LineError
	switch {
	case err == io.EOF:
		return nil
	case errors.As(err, &long):
		return &source.FormatError{Format: "lines", File: f.Name(), Offset: long.Offset, Record: -1,
			Want: fmt.Sprintf("a line of at most the %d bytes of MaxLine", long.Limit), Got: "more", Err: err}
	}
	return err
}
