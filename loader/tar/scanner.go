package tar

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/leat-go/leat/loader/internal/unpack"
	"github.com/leat-go/leat/loader/source"
)

// entry is a regular file in a tar file. Offsets are in the contents.
type entry struct {
	path   string
	offset int64 // of its first block
	data   int64
	size   int64
}

// end is where its blocks end.
func (e *entry) end() int64 { return e.data + padded(e.size) }

// padded is a size in whole blocks.
func padded(size int64) int64 { return (size + blockBytes - 1) &^ (blockBytes - 1) }

// scanner finds the regular files in a tar file, in order.
type scanner struct {
	in     *unpack.Reader
	head   block
	next   int64 // where the next header is
	closed bool  // whether blocks of zeros were read behind the last file
}

// maxExtended is the largest extended header: names are a few hundred bytes.
const maxExtended = 1 << 20

// find goes to the next regular file, io.EOF at the proper end.
func (s *scanner) find(ctx context.Context) (entry, error) {
	var ext extended
	start := int64(-1)
	for {
		if err := s.block(ctx); err != nil {
			if err == io.EOF && start >= 0 {
				err = s.failure("a header behind an extended one", "the end of the file", nil)
			}
			return entry{}, err
		}
		at := s.in.Offset() - blockBytes
		if start < 0 {
			start = at
		}
		size, err := number(s.head.size())
		if err != nil {
			return entry{}, s.failure("a size", fmt.Sprintf("%q", text(s.head.size())), nil)
		}
		kind := s.head.kind()
		switch kind {
		case 'x', 'L':
			if err := s.extend(ctx, &ext, kind, size); err != nil {
				return entry{}, err
			}
			continue
		case 'g', 'K', 'V', '2', '3', '4', '5', '6':
			// Comments and the like, the target of a link, a label; links, devices, folders.
			if kind != 'g' && kind != 'K' {
				ext, start, size = extended{}, -1, 0
			}
			if s.next += padded(size); s.next < s.in.Offset() {
				return entry{}, s.failure("a size", fmt.Sprint(size), nil)
			}
			continue
		}
		e := entry{path: s.head.path(), offset: start, data: s.in.Offset(), size: size}
		if ext.path != "" {
			e.path = ext.path
		}
		if ext.hasSize {
			e.size = ext.size
		}
		return e, s.check(&e, kind)
	}
}

// check refuses files that are not where a reader would look for them.
func (s *scanner) check(e *entry, kind byte) error {
	switch kind {
	case 0, '0', '7':
	case '1':
		return s.failure("the file "+e.path, "a hard link; pack it with --hard-dereference", nil)
	case 'S':
		return s.failure("the whole file "+e.path, "a sparse one; pack it without --sparse", nil)
	default:
		return s.failure("a type of file", fmt.Sprintf("%q", kind), nil)
	}
	if e.size > math.MaxInt64-blockBytes-e.data {
		return s.failure("a size", fmt.Sprint(e.size), nil)
	}
	if size := s.in.Size(); size >= 0 && e.size > size-e.data {
		return s.failure(fmt.Sprintf("%d bytes of %s", e.size, e.path), fmt.Sprintf("%d bytes to the end of the file", max(size-e.data, 0)), nil)
	}
	s.next = e.end()
	return nil
}

// block reads the next header, behind blocks of zeros.
func (s *scanner) block(ctx context.Context) error {
	if skip := s.next - s.in.Offset(); skip > 0 {
		if err := s.in.Skip(ctx, skip); err != nil {
			return s.failed(err, "the whole of a file")
		}
	}
	for {
		n, err := s.in.Full(ctx, s.head[:])
		switch {
		case err == io.EOF && s.closed:
			return io.EOF
		case err == io.ErrUnexpectedEOF && s.closed && isZero(s.head[:n]):
			return io.EOF
		case err != nil:
			return s.failed(err, "blocks of zeros at the end")
		case s.head.isZero():
			s.closed = true
			continue
		}
		s.next = s.in.Offset()
		if !s.head.summed() {
			return s.failure("a header with its checksum", fmt.Sprintf("%q", s.head[:16]), nil)
		}
		s.closed = false
		return nil
	}
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// extend reads an extended header.
func (s *scanner) extend(ctx context.Context, ext *extended, kind byte, size int64) error {
	if size > maxExtended {
		return s.failure(fmt.Sprintf("an extended header of at most %d bytes", maxExtended), fmt.Sprint(size), nil)
	}
	data, err := s.in.Append(ctx, nil, padded(size))
	if err != nil {
		return s.failed(err, "the whole of an extended header")
	}
	s.next = s.in.Offset()
	if kind == 'L' {
		ext.path = text(data[:size])
		return nil
	}
	if err := ext.pax(data[:size]); err != nil {
		return s.failure("an extended header", err.Error(), err)
	}
	return nil
}

// failed is the error of reading.
func (s *scanner) failed(err error, want string) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return s.failure(want, "the end of the file", err)
	}
	return err
}

// failure is an error at the header that was read last.
func (s *scanner) failure(want, got string, err error) error {
	return &source.FormatError{
		Format: "tar", File: s.in.Name(), Offset: max(s.in.Offset()-blockBytes, 0), Record: -1,
		Want: want, Got: got, Err: err,
	}
}
