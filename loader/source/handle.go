package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// handle is a File. It does what all kinds of files have in common; body reads inside of
// the size, with the errors of io.ReaderAt.
type handle struct {
	name string
	info Info
	body io.ReaderAt
	uses uses
}

func newHandle(name string, info Info, body io.ReaderAt, release func() error) *handle {
	h := &handle{name: name, info: info, body: body}
	h.uses.release = release
	return h
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
	defer h.uses.end() // the body may be a user's, and panic
	inside := int(min(int64(len(p)), max(0, h.info.Size-off)))
	if inside > 0 {
		n, err := h.body.ReadAt(p[:inside], off)
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
