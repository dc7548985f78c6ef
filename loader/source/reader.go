package source

import (
	"bytes"
	"context"
	"fmt"
	"io"
)

// Options tunes a Reader. The zero value is ready to use.
type Options struct {
	// ReadBytes is about how many bytes are asked for at a time. 0 or less means 256 KiB:
	// much more doesn't make a local file faster. Over a network 8 MiB is better.
	ReadBytes int
	// MaxLine is the length of the longest line that is returned, in bytes without its
	// end. 0 or less means 16 MiB. Memory grows with the lines that there are, up to
	// this.
	MaxLine int
}

func (o Options) withDefaults() Options {
	if o.ReadBytes <= 0 {
		o.ReadBytes = 256 << 10
	}
	if o.MaxLine <= 0 {
		o.MaxLine = 16 << 20
	}
	o.MaxLine = min(o.MaxLine, 1<<30) // so that no sum below wraps round
	return o
}

// Reader reads the lines of a File, one after the other, and knows where it stands. It is
// for one goroutine. It borrows the File, which stays the caller's to close.
type Reader struct {
	file    File
	options Options
	buffer  []byte
	lo, hi  int   // buffer[lo:hi] was read from the File and not returned
	offset  int64 // of buffer[lo] in the File
	long    int64 // where the line begins that is being passed over, -1 if none is
}

// NewReader returns a Reader of f that begins at an offset.
func NewReader(f File, from int64, o Options) *Reader {
	r := &Reader{options: o.withDefaults()}
	r.Reset(f, from)
	return r
}

// Reset goes on with another File, or from another offset. The memory is used again.
func (r *Reader) Reset(f File, from int64) {
	r.file, r.lo, r.hi, r.offset, r.long = f, 0, 0, from, -1
}

// Offset is where in the File the next line begins. After an error of the File it may be
// in the middle of a line that is being passed over.
func (r *Reader) Offset() int64 { return r.offset }

// LineError is a line longer than Options.MaxLine.
type LineError struct {
	// Source is the name of the file, Offset where in it the line begins.
	Source string
	Offset int64
	// Limit is MaxLine.
	Limit int
}

// Error implements error.
func (e *LineError) Error() string {
	return fmt.Sprintf("source: %s: the line at byte %d has more than %d bytes", e.Source, e.Offset, e.Limit)
}

// Line returns the next line without its end, which is "\n" or "\r\n", and may be missing
// at the File's end. The Reader owns the line, and overwrites it in the next call.
//
// At the end of the File the error is io.EOF, for ever. A *LineError costs its line only:
// the next call returns the one behind it. After any other error, of the File or of ctx,
// the next call tries again, and no line is lost.
func (r *Reader) Line(ctx context.Context) ([]byte, error) {
	if r.long >= 0 {
		return nil, r.passOver(ctx)
	}
	for searched := 0; ; {
		if i := bytes.IndexByte(r.buffer[r.lo+searched:r.hi], '\n'); i >= 0 {
			return r.take(searched+i, 1)
		}
		searched = r.hi - r.lo
		if searched > r.options.MaxLine+1 { // that one could be "\r"
			r.long = r.offset
			return nil, r.passOver(ctx)
		}
		err := r.fill(ctx)
		switch {
		case err == io.EOF && searched > 0:
			return r.take(searched, 0)
		case err != nil:
			return nil, err
		}
	}
}

// SeekLine goes to the first line that begins at offset off or later, which may be the
// File's end. So parts of a File, each read from SeekLine of its begin until Offset is at
// its end or beyond, have each line once. After an error it can be called again.
func (r *Reader) SeekLine(ctx context.Context, off int64) error {
	if off <= 0 {
		r.Reset(r.file, off)
		return nil
	}
	r.Reset(r.file, off-1)
	if err := r.discard(ctx); err != io.EOF {
		return err
	}
	return nil
}

// take returns the first n bytes of what was read as a line, and passes over them and
// their end.
func (r *Reader) take(n, end int) ([]byte, error) {
	line, begin := r.buffer[r.lo:r.lo+n:r.lo+n], r.offset
	r.advance(n + end)
	line = bytes.TrimSuffix(line, []byte{'\r'})
	if len(line) > r.options.MaxLine {
		return nil, r.tooLong(begin)
	}
	return line, nil
}

// passOver leaves out the rest of a line that is too long.
func (r *Reader) passOver(ctx context.Context) error {
	if err := r.discard(ctx); err != nil && err != io.EOF {
		return err
	}
	begin := r.long
	r.long = -1
	return r.tooLong(begin)
}

func (r *Reader) tooLong(begin int64) error {
	return &LineError{Source: r.file.Name(), Offset: begin, Limit: r.options.MaxLine}
}

// discard passes over all up to the next line's beginning.
func (r *Reader) discard(ctx context.Context) error {
	for {
		if i := bytes.IndexByte(r.buffer[r.lo:r.hi], '\n'); i >= 0 {
			r.advance(i + 1)
			return nil
		}
		r.advance(r.hi - r.lo)
		if err := r.fill(ctx); err != nil {
			return err
		}
	}
}

func (r *Reader) advance(n int) {
	r.lo += n
	r.offset += int64(n)
}

// fill reads more. What there is stays, and may move.
func (r *Reader) fill(ctx context.Context) error {
	have := r.hi - r.lo
	if r.offset+int64(have) >= r.file.Size() && r.offset >= 0 {
		return io.EOF
	}
	r.room(have)
	n, err := r.file.ReadAt(ctx, r.buffer[have:], r.offset+int64(have))
	if n < 0 || n > len(r.buffer)-have {
		return fmt.Errorf("source: %s: ReadAt returned %d for %d bytes", r.file.Name(), n, len(r.buffer)-have)
	}
	r.hi += n
	switch {
	case n > 0:
		return nil // whatever is wrong with what follows is told when it is asked for
	case err == nil:
		err = io.ErrNoProgress
	case err == io.EOF: // before the File's Size
		err = io.ErrUnexpectedEOF
	default:
		return err
	}
	return &Error{Source: r.file.Name(), Op: opRead, Offset: r.offset + int64(have), Err: err}
}

// room moves what there is to the front of the buffer, and makes it larger if it is full.
func (r *Reader) room(have int) {
	grown := r.buffer
	if have == len(r.buffer) {
		most := max(r.options.ReadBytes, r.options.MaxLine+2) // have is less: else the line is too long
		grown = make([]byte, min(most, max(r.options.ReadBytes, 2*have)))
	}
	copy(grown, r.buffer[r.lo:r.hi])
	r.buffer, r.lo, r.hi = grown, 0, have
}
