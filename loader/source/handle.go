package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// NewFile makes a File of what a Source has of its own, and does the rest: sizes, the end,
// contexts that are done, Close beside reads, and errors with the place.
//
// read fills p, which has at least one byte and lies inside of info.Size, with the bytes
// from offset off on, and returns how many it has put there; fewer than all need an error,
// in which io.EOF means that the file is shorter than it was. read may be called by several
// goroutines at once, and should return when ctx is done, if it can. release gives back
// what is held, after Close and behind the last read; it may be nil.
func NewFile(name string, info Info, read func(ctx context.Context, p []byte, off int64) (int, error), release func() error) File {
	if info.Size < 0 {
		panic(fmt.Sprintf("source: NewFile of %s with a size of %d bytes", name, info.Size))
	}
	h := &handle{name: name, info: info, read: read}
	if release == nil {
		release = func() error { return nil }
	}
	h.uses.release = release
	return h
}

// handle is what all kinds of files have in common.
type handle struct {
	name string
	info Info
	read func(ctx context.Context, p []byte, off int64) (int, error)
	uses uses
}

// readsAt is the function for NewFile of what knows no context.
func readsAt(r io.ReaderAt) func(context.Context, []byte, int64) (int, error) {
	return func(_ context.Context, p []byte, off int64) (int, error) { return r.ReadAt(p, off) }
}

func (h *handle) Name() string    { return h.name }
func (h *handle) Size() int64     { return h.info.Size }
func (h *handle) Version() string { return h.info.Version }

// ReadAt implements File.
func (h *handle) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if ctx.Err() != nil {
		return 0, h.failed(off, context.Cause(ctx))
	}
	if off < 0 {
		return 0, h.failed(off, errNegative)
	}
	if !h.uses.begin() {
		return 0, h.failed(off, fs.ErrClosed)
	}
	defer h.uses.end() // read may be a user's, and panic
	inside := int(min(int64(len(p)), max(0, h.info.Size-off)))
	if inside > 0 {
		n, err := h.read(ctx, p[:inside], off)
		if n != inside {
			return h.short(n, inside, off, err)
		}
	}
	if inside < len(p) {
		return inside, io.EOF
	}
	return inside, nil
}

// short is what ReadAt returns where n bytes were read of those that there were.
func (h *handle) short(n, inside int, off int64, err error) (int, error) {
	if n < 0 || n > inside {
		return 0, h.failed(off, fmt.Errorf("ReadAt returned %d for %d bytes", n, inside))
	}
	var told *Error
	switch {
	case errors.As(err, &told) && told.Source == h.name:
		return n, told
	case err == nil:
		err = io.ErrNoProgress
	case err == io.EOF:
		err = h.shrunk(off + int64(n))
	}
	if inner, ok := err.(*fs.PathError); ok {
		err = inner.Err
	}
	return n, h.failed(off+int64(n), err)
}

// shrunk is the error for a file that ends at a byte that it once had.
func (h *handle) shrunk(at int64) error {
	return fmt.Errorf("%w: it had %d bytes, and ends at or before byte %d now", ErrChanged, h.info.Size, at)
}

func (h *handle) failed(off int64, err error) error {
	return &Error{Source: h.name, Op: opRead, Offset: off, Err: err}
}

// Close implements File.
func (h *handle) Close() error {
	if err := h.uses.close(); err != nil {
		return failed(opClose, h.name, err)
	}
	return nil
}
