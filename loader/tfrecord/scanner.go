package tfrecord

import (
	"context"
	"encoding/binary"
	"io"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/shardfiles"
	"github.com/leat-go/leat/loader/internal/unpack"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/stream"
)

// open begins to read a file, compressed or not.
func open(ctx context.Context, f source.File) (*unpack.Reader, error) {
	var first [head]byte
	kind := unpack.Plain
	if n := min(f.Size(), head); n > 0 {
		if err := source.ReadFull(ctx, f, first[:n], 0); err != nil {
			return nil, err
		}
	}
	if isHead(first[:]) {
		return unpack.Bare(ctx, f, "tfrecord")
	}
	// A header of zlib: deflate, and a multiple of 31 (RFC 1950).
	if first[0]&0x0f == 8 && first[0]>>4 <= 7 && binary.BigEndian.Uint16(first[:])%31 == 0 {
		kind = unpack.Zlib
	}
	return unpack.New(ctx, f, "tfrecord", kind)
}

// NewStream is the records of files as a stream, each file read from front to back. Files may be
// compressed by gzip, zlib or zstd. To be gone on with in the middle, a compressed file is
// decompressed up to there. A record whose checksum is wrong is the failure of that record; a length
// that is wrong or too large, and a file that is cut off, end the shard with the error. A record is
// the caller's.
func NewStream(files []source.Source, o Options) stream.Stream[[]byte] {
	o, err := o.filled()
	if err != nil {
		return stream.Failed[[]byte](err)
	}
	return shardfiles.New(files, shardfiles.Options{Format: "tfrecord", Shards: o.Shards, Shuffle: o.Shuffle},
		func(ctx context.Context, f source.File, offset, record int64) (shardfiles.Scanner[[]byte], error) {
			in, err := open(ctx, f)
			if err != nil {
				return nil, err
			}
			s := &scanner{in: in, options: o, record: record}
			if err := in.Skip(ctx, offset); err != nil {
				in.Close()
				return nil, s.failed(err, "the place that was marked")
			}
			return s, nil
		})
}

// scanner goes through the records of a file.
type scanner struct {
	in      *unpack.Reader
	options Options
	offset  int64 // where the record under way begins
	record  int64 // its number
	broken  error
}

func (s *scanner) place() place { return place{file: s.in.Name(), offset: s.offset, record: s.record} }

// head reads a length, io.EOF at the end.
func (s *scanner) head(ctx context.Context) (int64, error) {
	var b [head]byte
	s.offset = s.in.Offset()
	if _, err := s.in.Full(ctx, b[:]); err == io.EOF {
		return 0, err
	} else if err != nil {
		return 0, s.failed(err, "a whole length")
	}
	n, err := s.place().length(b[:], s.options)
	if err != nil {
		return 0, err
	}
	if size := s.in.Size(); size >= 0 && n > size-s.in.Offset()-4 {
		return 0, s.failed(io.ErrUnexpectedEOF, "the whole of a record")
	}
	return n, nil
}

// skip passes over the record.
func (s *scanner) skip(ctx context.Context, n int64) error {
	if err := s.in.Skip(ctx, n+4); err != nil {
		return s.failed(err, "the whole of a record")
	}
	s.record++
	return nil
}

// failed is the error of reading.
func (s *scanner) failed(err error, want string) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return s.place().failure(want, "the end of the file")
	}
	return err
}

// Next implements shardfiles.Scanner.
func (s *scanner) Next(ctx context.Context, item *stream.Item[[]byte]) (bool, error) {
	if s.broken == io.EOF {
		return false, nil
	}
	if s.broken != nil {
		return false, s.broken
	}
	n, err := s.head(ctx)
	item.Origin = loader.Origin{File: s.in.Name(), Offset: s.offset, Record: s.record}
	var b []byte
	if err == nil {
		if b, err = s.in.Append(ctx, []byte{}, n+4); err != nil {
			err = s.failed(err, "the whole of a record")
		}
	}
	if err != nil {
		s.broken = err
		if err == io.EOF {
			return false, nil
		}
		return false, err
	}
	item.Value, err = s.place().check(b)
	s.record++
	return err == nil, err
}

// Place implements shardfiles.Scanner.
func (s *scanner) Place() (offset, record int64) { return s.in.Offset(), s.record }

// Close implements shardfiles.Scanner.
func (s *scanner) Close() error {
	s.in.Close()
	return nil
}
