package lines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/shardfiles"
	"github.com/leat-go/leat/loader/internal/unpack"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/stream"
)

// StreamOptions tunes NewStream. The zero value is ready to use.
type StreamOptions struct {
	// Shards is the number of shards, at most that of the files. File i belongs to shard
	// i%Shards. 0 means one for each file.
	Shards int
	// Shuffle reads the files of each shard in another order in each pass.
	Shuffle bool
	// MaxLine is the length of the longest line, in bytes. 0 means 16 MiB.
	MaxLine int
}

// NewStream is the lines of files one after the other, for files that may be compressed by gzip
// or zstd, which their first bytes show: those have no lines by number. With stream.JSON it
// reads JSON lines. (stream.Lines cuts files into parts, and reads none that are compressed.)
// Lines that are empty are left out.
//
// A mark in a compressed file is a place in what it holds, so to go on from there it is
// decompressed up to there. A line that is too long is the failure of that line; a file that
// can't be decompressed ends its shard with a *source.FormatError, behind the lines before. A
// line is the caller's.
func NewStream(files []source.Source, o StreamOptions) stream.Stream[[]byte] {
	if o.MaxLine < 0 || o.MaxLine > mostMaxLine {
		return stream.Failed[[]byte](&loader.OptionError{Package: "lines", Option: "MaxLine", Value: o.MaxLine, Want: fmt.Sprintf("0 (16 MiB) to %d", mostMaxLine)})
	}
	if o.MaxLine == 0 {
		o.MaxLine = defaultMaxLine
	}
	return shardfiles.New(files, shardfiles.Options{Format: "lines", Shards: o.Shards, Shuffle: o.Shuffle},
		func(ctx context.Context, f source.File, offset, record int64) (shardfiles.Scanner[[]byte], error) {
			in, err := unpack.New(ctx, f, "lines", unpack.Plain)
			if err != nil {
				return nil, err
			}
			s := &scanner{in: in, most: o.MaxLine, offset: offset, record: record}
			if err := in.Skip(ctx, offset); err != nil {
				in.Close()
				if err == io.ErrUnexpectedEOF {
					err = &source.FormatError{Format: "lines", File: f.Name(), Offset: offset, Record: record,
						Want: "a line at the place that was marked", Got: "the end of the file"}
				}
				return nil, err
			}
			return s, nil
		})
}

// scanner goes through the lines of a file.
type scanner struct {
	in     *unpack.Reader
	most   int
	buffer []byte
	lo, hi int   // buffer[lo:hi] was read and not returned
	offset int64 // of buffer[lo]
	record int64 // the next one's number
	ended  error // why no more can be read
}

// readBytes is how much is decompressed at a time.
const readBytes = 64 << 10

// Next implements shardfiles.Scanner.
func (s *scanner) Next(ctx context.Context, item *stream.Item[[]byte]) (bool, error) {
	for {
		begin := s.offset
		line, err := s.line(ctx)
		if begin == 0 && bytes.HasPrefix(line, []byte(byteOrderMark)) {
			begin, line = int64(len(byteOrderMark)), line[len(byteOrderMark):]
		}
		item.Origin = loader.Origin{File: s.in.Name(), Offset: begin, Record: s.record}
		switch {
		case err == io.EOF:
			return false, nil
		case err == errLong:
			long := &source.FormatError{Format: "lines", File: s.in.Name(), Offset: begin, Record: s.record,
				Want: fmt.Sprintf("a line of at most the %d bytes of MaxLine", s.most), Got: "more"}
			s.record++
			return false, long
		case err != nil:
			return false, err
		case len(line) > 0:
			item.Value = bytes.Clone(line)
			s.record++
			return true, nil
		}
	}
}

var errLong = errors.New("a line is too long")

// line is the next line, without its end.
func (s *scanner) line(ctx context.Context) ([]byte, error) {
	for searched, long := 0, false; ; {
		if i := bytes.IndexByte(s.buffer[s.lo+searched:s.hi], '\n'); i >= 0 {
			return s.take(searched+i, 1, long)
		}
		searched = s.hi - s.lo
		if long = long || searched > s.most+1; long { // the one more could be "\r"
			s.pass(searched)
			searched = 0
		}
		switch {
		case s.ended == nil:
			s.fill(ctx)
		case long || s.ended == io.EOF && searched > 0:
			return s.take(searched, 0, long)
		default:
			return nil, s.ended
		}
	}
}

// take returns n bytes as a line, and passes over them and their end.
func (s *scanner) take(n, end int, long bool) ([]byte, error) {
	line := bytes.TrimSuffix(s.buffer[s.lo:s.lo+n], []byte{'\r'})
	s.pass(n + end)
	if long || len(line) > s.most {
		return nil, errLong
	}
	return line, nil
}

func (s *scanner) pass(n int) {
	s.lo += n
	s.offset += int64(n)
}

// fill reads more.
func (s *scanner) fill(ctx context.Context) {
	s.hi = copy(s.buffer, s.buffer[s.lo:s.hi])
	s.lo = 0
	if len(s.buffer)-s.hi < readBytes {
		s.buffer = append(s.buffer, make([]byte, max(readBytes, s.hi))...)
	}
	n, err := s.in.Full(ctx, s.buffer[s.hi:s.hi+readBytes])
	s.hi += n
	if err == io.ErrUnexpectedEOF { // what there was is there
		err = io.EOF
	}
	s.ended = err
}

// Place implements shardfiles.Scanner.
func (s *scanner) Place() (offset, record int64) { return s.offset, s.record }

// Close implements shardfiles.Scanner.
func (s *scanner) Close() error {
	s.in.Close()
	return nil
}
