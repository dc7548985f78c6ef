package unpack

import (
	"bufio"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/leat-go/leat/loader/source"
)

// Kind is how a file is compressed.
type Kind string

const (
	Plain Kind = ""
	Gzip  Kind = "gzip"
	Zlib  Kind = "zlib"
	Zstd  Kind = "zstd"
)

// Sniff is the Kind of a file with these first bytes; never Zlib, which has no sign of its own.
func Sniff(head []byte) Kind {
	switch {
	case len(head) >= 2 && head[0] == 0x1f && head[1] == 0x8b:
		return Gzip
	case len(head) >= 4 && string(head[:4]) == "\x28\xb5\x2f\xfd",
		len(head) >= 4 && head[0]&0xf0 == 0x50 && string(head[1:4]) == "\x2a\x4d\x18": // a frame to be skipped
		return Zstd
	}
	return Plain
}

// Reader reads a file's contents in order. It is for one goroutine. It borrows the File.
type Reader struct {
	format string
	file   *at
	raw    *bufio.Reader
	kind   Kind
	in     io.Reader // what raw is decompressed to, raw itself of a plain file
	gzip   *gzip.Reader
	zstd   *zstd.Decoder
	pos    int64
	ended  bool
}

// bufferBytes is how much of a file is asked for at a time.
const bufferBytes = 256 << 10

// maxWindow is how far back zstd may refer: memory for that is taken before any data comes. It is
// the most that zstd's own command accepts without being told to.
const maxWindow = 128 << 20

// Bare makes a Reader of a file that is not compressed, whatever its first bytes are.
func Bare(ctx context.Context, f source.File, format string) (*Reader, error) {
	r := newReader(ctx, f, format)
	r.in = r.raw
	return r, nil
}

func newReader(ctx context.Context, f source.File, format string) *Reader {
	r := &Reader{format: format, file: &at{ctx: ctx, f: f}}
	r.raw = bufio.NewReaderSize(r.file, int(min(max(f.Size(), 512), bufferBytes)))
	return r
}

// New makes a Reader of a file that is compressed as its first bytes say, or by kind if that
// is not Plain. format is for errors.
func New(ctx context.Context, f source.File, format string, kind Kind) (*Reader, error) {
	r := newReader(ctx, f, format)
	head, err := r.raw.Peek(4)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if r.kind = kind; kind == Plain {
		r.kind = Sniff(head)
	}
	switch r.in = r.raw; r.kind {
	case Gzip:
		r.gzip, err = gzip.NewReader(r.raw)
		if err == nil {
			r.gzip.Multistream(false) // so that what follows a part is looked at here
			r.in = r.gzip
		}
	case Zlib:
		r.in, err = zlib.NewReader(r.raw)
	case Zstd:
		// One goroutine, the caller's, and memory that follows the data.
		r.zstd, err = zstd.NewReader(r.raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		r.in = r.zstd
	default:
		return r, nil
	}
	if err != nil {
		return nil, r.broken(err)
	}
	return r, nil
}

// Kind is how the file is compressed.
func (r *Reader) Kind() Kind { return r.kind }

// Offset is how much of the contents has been read.
func (r *Reader) Offset() int64 { return r.pos }

// Size is the length of the contents, -1 if they are compressed.
func (r *Reader) Size() int64 {
	if r.kind != Plain {
		return -1
	}
	return r.file.f.Size()
}

// Name is that of the file.
func (r *Reader) Name() string { return r.file.f.Name() }

// Full fills p. The error is io.EOF itself at the end of the contents, io.ErrUnexpectedEOF if
// they end within p, a *source.FormatError if they can't be decompressed, or the File's.
func (r *Reader) Full(ctx context.Context, p []byte) (n int, err error) {
	r.file.ctx = ctx
	for n < len(p) {
		// The File looks at ctx too, but a piece of it that was read may hold gigabytes.
		if ctx.Err() != nil {
			return n, &source.Error{Source: r.Name(), Op: "read", Offset: r.packed(), Err: context.Cause(ctx)}
		}
		m, err := r.read(p[n:])
		n += m
		r.pos += int64(m)
		if err != nil {
			if err == io.EOF && n > 0 {
				err = io.ErrUnexpectedEOF
			}
			return n, err
		}
	}
	return n, nil
}

// Append appends the next n bytes to dst, under the rules of Full. It takes memory as the
// data comes, so that a length which was made up costs no more than there is.
func (r *Reader) Append(ctx context.Context, dst []byte, n int64) ([]byte, error) {
	for n > 0 {
		step := n
		if r.kind != Plain || r.file.f.Size()-r.pos < n {
			step = min(n, max(int64(len(dst)), 1<<16))
		}
		at := len(dst)
		dst = slices.Grow(dst, int(step))[:at+int(step)]
		m, err := r.Full(ctx, dst[at:])
		dst = dst[:at+m]
		if err != nil {
			if err == io.EOF && at > 0 {
				err = io.ErrUnexpectedEOF
			}
			return dst, err
		}
		n -= step
	}
	return dst, nil
}

// Skip passes over n bytes. Of a plain file it reads none of them. At the end of the contents
// the error is io.ErrUnexpectedEOF.
func (r *Reader) Skip(ctx context.Context, n int64) error {
	r.file.ctx = ctx
	if r.kind == Plain {
		if n > r.file.f.Size()-r.pos {
			return io.ErrUnexpectedEOF
		}
		if buffered := int64(r.raw.Buffered()); n > buffered {
			r.file.off += n - buffered
			r.raw.Reset(r.file)
		} else if _, err := r.raw.Discard(int(n)); err != nil {
			return err
		}
		r.pos += n
		return nil
	}
	scratch := make([]byte, min(n, 64<<10))
	for n > 0 {
		m, err := r.Full(ctx, scratch[:min(n, int64(len(scratch)))])
		if n -= int64(m); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// Close ends the Reader, and leaves the File open.
func (r *Reader) Close() {
	if r.zstd != nil {
		r.zstd.Close()
	}
}

func (r *Reader) read(p []byte) (n int, err error) {
	if r.ended {
		return 0, io.EOF
	}
	for n == 0 && err == nil {
		n, err = r.in.Read(p)
		if err == io.EOF && n == 0 {
			if err = r.next(); err == io.EOF {
				r.ended = true
			}
		}
		if n > 0 {
			return n, nil
		}
	}
	if err != nil && err != io.EOF {
		err = r.broken(err)
	}
	return n, err
}

// next goes on behind the end of a compressed part: gzip files may be put together, and be
// filled up with zeros. Anything else there is no end.
func (r *Reader) next() error {
	if r.kind != Gzip && r.kind != Zlib {
		return io.EOF
	}
	for {
		b, err := r.raw.ReadByte()
		if err != nil {
			return err
		}
		if b == 0 {
			continue
		}
		if err := r.raw.UnreadByte(); err != nil {
			return err
		}
		head, err := r.raw.Peek(2)
		if err != nil && err != io.EOF {
			return err
		}
		if r.kind != Gzip || Sniff(head) != Gzip {
			return &source.FormatError{
				Format: r.format, File: r.Name(), Offset: r.packed(), Record: -1,
				Want: fmt.Sprintf("the end of the compressed file, zeros or another part of %s", r.kind), Got: fmt.Sprintf("% x", head),
			}
		}
		if err := r.gzip.Reset(r.raw); err != nil {
			return err
		}
		r.gzip.Multistream(false)
		return nil
	}
}

// packed is where in the file reading stands.
func (r *Reader) packed() int64 { return r.file.off - int64(r.raw.Buffered()) }

// broken is the error for data that can't be decompressed, unless it is the file's own.
func (r *Reader) broken(err error) error {
	var format *source.FormatError
	if r.file.err != nil {
		return r.file.err
	}
	if errors.As(err, &format) || r.kind == Plain {
		return err
	}
	got := err.Error()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		got = "the end of the file"
	}
	return &source.FormatError{
		Format: r.format, File: r.Name(), Offset: r.packed(), Record: -1,
		Want: fmt.Sprintf("whole %s data in the compressed file", r.kind), Got: got, Err: err,
	}
}

// at reads a File from an offset on, under the context of the call that is under way.
type at struct {
	ctx context.Context
	f   source.File
	off int64
	err error // what the File has returned last, if it is no end
}

func (a *at) Read(p []byte) (int, error) {
	n, err := a.f.ReadAt(a.ctx, p, a.off)
	a.off += int64(n)
	a.err = nil
	if err != nil && err != io.EOF {
		a.err = err
	}
	return n, err
}
