package source

import (
	"context"
	"errors"
	"io"
)

// Source is something that can be opened to be read. It owns nothing: a list of a million
// costs little more than their names. Its methods may be called by several goroutines at
// once.
type Source interface {
	// Name says which it is, in errors and in fingerprints. No two sources of a dataset
	// have the same.
	Name() string
	// Open opens it. The caller owns the File, and must Close it.
	Open(ctx context.Context) (File, error)
}

// File is an open Source. Its methods may be called by several goroutines at once, Close
// beside the others too.
type File interface {
	// Name is that of its Source.
	Name() string
	// Size is the number of bytes when it was opened.
	Size() int64
	// Version differs where the contents may differ: between two files, and of one file
	// before and after it was written to. It can be compared with nothing but other
	// versions from the same kind of Source on the same machine.
	Version() string
	// ReadAt fills p with the bytes from offset off on, and returns how many it has put
	// there. If these are fewer than len(p) there is an error: io.EOF itself, not wrapped,
	// where the File ends, else an *Error. If they are all, there is none, at the File's
	// end too. p is borrowed until ReadAt returns.
	//
	// When ctx is done, ReadAt returns its cause as soon as it can. What comes over a
	// network can be given up; a read of a local file is not begun any more, but one that
	// is under way is waited for.
	ReadAt(ctx context.Context, p []byte, off int64) (n int, err error)
	// Close ends the File. It doesn't wait for reads under way, which end as if it were
	// open; what the File holds is given back by the last of them. Later reads fail with
	// fs.ErrClosed, and later calls of Close do nothing.
	Close() error
}

// Info is what is known of a Source without reading it.
type Info struct {
	// Size is in bytes.
	Size int64
	// Version is as in File.
	Version string
}

// Stater is a Source that can tell its Info without being opened.
type Stater interface {
	Stat(ctx context.Context) (Info, error)
}

// Stat is the Info of s as it is now: asked for if s is a Stater, else s is opened and
// closed.
func Stat(ctx context.Context, s Source) (Info, error) {
	if stater, ok := s.(Stater); ok {
		return stater.Stat(ctx)
	}
	f, err := s.Open(ctx)
	if err != nil {
		return Info{}, err
	}
	info := Info{Size: f.Size(), Version: f.Version()}
	return info, f.Close()
}

// ReadFull fills p with the bytes of f from offset off on. It is an *Error if it can't:
// one that wraps io.ErrUnexpectedEOF if f has fewer.
func ReadFull(ctx context.Context, f File, p []byte, off int64) error {
	n, err := f.ReadAt(ctx, p, off)
	if err == io.EOF {
		return &Error{Source: f.Name(), Op: opRead, Offset: off + int64(n), Err: io.ErrUnexpectedEOF}
	}
	return err
}

// ReaderAt is f for packages that know no context: all reads are under ctx. With
// io.NewSectionReader it is an io.ReadSeeker:
//
//	r := io.NewSectionReader(source.ReaderAt(ctx, f), 0, f.Size())
func ReaderAt(ctx context.Context, f File) io.ReaderAt {
	return readerAt(func(p []byte, off int64) (int, error) { return f.ReadAt(ctx, p, off) })
}

type readerAt func(p []byte, off int64) (int, error)

func (r readerAt) ReadAt(p []byte, off int64) (int, error) { return r(p, off) }

// errors of a Source that is used wrongly.
var (
	errNegative = errors.New("a negative offset")
	errNoName   = errors.New("a file without a name")
)
