package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// MaxInMemory is the largest file, in bytes, that is held in memory because its fs.FS has
// no other way to read it from the middle.
const MaxInMemory = 64 << 20

// FS is a regular file of fsys, by its slash-separated name there.
//
// Files that are io.ReaderAts are read by that: those of embed, os.DirFS and
// testing/fstest. All others, such as those in a zip archive, are read to the end by Open
// and held in memory until Close, if they have at most MaxInMemory bytes; Open of a larger
// one is an error.
func FS(fsys fs.FS, name string) Source { return inFS{fsys, name} }

// inFS is a file of an fs.FS.
type inFS struct {
	fsys fs.FS
	name string
}

var errNoFS = errors.New("a nil fs.FS")

// Name implements Source.
func (s inFS) Name() string { return s.name }

// Stat implements Stater.
func (s inFS) Stat(ctx context.Context) (Info, error) {
	if err := begun(ctx, opStat, s.name); err != nil {
		return Info{}, err
	}
	if s.fsys == nil {
		return Info{}, failed(opStat, s.name, errNoFS)
	}
	stat, err := fs.Stat(s.fsys, s.name)
	if err == nil {
		err = irregular(stat.Mode())
	}
	if err != nil {
		return Info{}, failed(opStat, s.name, err)
	}
	return infoOf(stat), nil
}

// Open implements Source.
func (s inFS) Open(ctx context.Context) (File, error) {
	if err := begun(ctx, opOpen, s.name); err != nil {
		return nil, err
	}
	if s.fsys == nil {
		return nil, failed(opOpen, s.name, errNoFS)
	}
	f, err := s.fsys.Open(s.name)
	if err != nil {
		return nil, failed(opOpen, s.name, err)
	}
	h, err := s.handle(ctx, f)
	if err != nil {
		_ = f.Close()
		return nil, failed(opOpen, s.name, err)
	}
	return h, nil
}

// handle makes a File of an open one, and owns it from here on unless there is an error.
func (s inFS) handle(ctx context.Context, f fs.File) (File, error) {
	stat, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := irregular(stat.Mode()); err != nil {
		return nil, err
	}
	info := infoOf(stat)
	if info.Size < 0 {
		return nil, fmt.Errorf("it says that it has %d bytes", info.Size)
	}
	if body, ok := f.(io.ReaderAt); ok {
		return NewFile(s.name, info, readsAt(body), f.Close), nil
	}
	data, err := contents(ctx, f, info.Size)
	if err != nil {
		return nil, err
	}
	return NewFile(s.name, info, readsAt(bytes.NewReader(data)), f.Close), nil
}

// contents reads all of a file that says that it has size bytes. What memory there is
// grows with what arrives.
func contents(ctx context.Context, r io.Reader, size int64) ([]byte, error) {
	if size > MaxInMemory {
		return nil, fmt.Errorf("it has %d bytes and can be read from the front only; at most %d are held in memory", size, MaxInMemory)
	}
	var b bytes.Buffer
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		const step = 1 << 20
		// One byte more than there should be, so that the end is seen, and with it the
		// checksum of a zip archive.
		n, err := io.CopyN(&b, r, min(step, size+1-int64(b.Len())))
		switch {
		case int64(b.Len()) > size:
			return nil, fmt.Errorf("it has more than the %d bytes that it says", size)
		case err == io.EOF && int64(b.Len()) < size:
			return nil, fmt.Errorf("it has %d bytes, and says %d", b.Len(), size)
		case err == io.EOF:
			return b.Bytes(), nil
		case err != nil:
			return nil, err
		case n == 0:
			return nil, io.ErrNoProgress
		}
	}
}
