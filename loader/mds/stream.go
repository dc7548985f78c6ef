package mds

import (
	"context"
	"fmt"
	"io"
	"io/fs"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/shardfiles"
	"github.com/leat-go/leat/loader/internal/unpack"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/stream"
)

// NewStream is the samples of a folder as a stream, each shard read from front to back: the plain
// one if it is there, else the compressed one. To be gone on with in the middle, a compressed
// shard is decompressed up to there. A sample that is broken or too large is the failure of that
// sample; a shard that is none, or is cut off, is an error behind which nothing comes.
//
// It reads the index and asks which shards are there. What is wrong with them Err of the stream
// says.
func NewStream(ctx context.Context, path string, o Options) stream.Stream[*Sample] {
	return newStream(ctx, inFolder(path), o)
}

// NewStreamFS is NewStream for the root of an fs.FS.
func NewStreamFS(ctx context.Context, fsys fs.FS, o Options) stream.Stream[*Sample] {
	return newStream(ctx, inFS(fsys), o)
}

func newStream(ctx context.Context, file func(name string) source.Source, o Options) stream.Stream[*Sample] {
	o, err := o.filled()
	if err != nil {
		return stream.Failed[*Sample](err)
	}
	d, err := readIndex(ctx, file)
	if err != nil {
		return stream.Failed[*Sample](err)
	}
	var files []source.Source
	infos := map[string]opened{}
	for i := range d.shards {
		info := &d.shards[i]
		there, err := d.exists(ctx, info)
		if err != nil {
			return stream.Failed[*Sample](err)
		}
		f := file(info.Raw.Name)
		if !there {
			f = file(info.Zip.Name)
		}
		files, infos[f.Name()] = append(files, f), opened{info, there}
	}
	s := shardfiles.New(files, shardfiles.Options{Format: "mds", Shards: o.Shards, Shuffle: o.Shuffle},
		func(ctx context.Context, f source.File, offset, record int64) (shardfiles.Scanner[*Sample], error) {
			return newScanner(ctx, f, d.columns, infos[f.Name()], o, record)
		})
	return stream.Fingerprinted(s, s.Fingerprint()^d.sum)
}

// opened is a shard, and which of its forms is read. What a plain one begins with can look like
// the sign of a compressed one.
type opened struct {
	*shardInfo
	plain bool
}

// scanner reads the samples of one shard.
type scanner struct {
	in      *unpack.Reader
	columns []Column
	offsets []uint32
	options Options
	record  int64
	broken  error
}

func newScanner(ctx context.Context, f source.File, columns []Column, info opened, o Options, record int64) (*scanner, error) {
	begin := func() (*unpack.Reader, error) { return unpack.New(ctx, f, "mds", unpack.Plain) }
	if info.plain {
		begin = func() (*unpack.Reader, error) { return unpack.Bare(ctx, f, "mds") }
	}
	in, err := begin()
	if err != nil {
		return nil, err
	}
	s := &scanner{in: in, columns: columns, options: o, record: record}
	if err := s.begin(ctx, info.shardInfo); err != nil {
		in.Close()
		return nil, err
	}
	return s, nil
}

// begin goes to the first sample that is wanted.
func (s *scanner) begin(ctx context.Context, info *shardInfo) error {
	zipped := s.in.Kind() != unpack.Plain
	if size := s.in.Size(); !zipped && size != info.Raw.Bytes {
		return s.failure(fmt.Sprintf("a shard of %d bytes, plain or compressed by zstd or gzip", info.Raw.Bytes), fmt.Sprintf("%d bytes", size))
	}
	var err error
	s.offsets, err = info.offsets(s.in.Name(), func(p []byte) error {
		if _, err := s.in.Full(ctx, p); err != nil {
			return s.failed(err, "the offsets of all samples")
		}
		return nil
	})
	if err != nil {
		return err
	}
	if s.record > info.Samples {
		return s.failure(fmt.Sprintf("sample %d, which was marked", s.record), fmt.Sprintf("%d samples", info.Samples))
	}
	if err := s.in.Skip(ctx, int64(s.offsets[s.record])-s.in.Offset()); err != nil {
		return s.failed(err, "the place that was marked")
	}
	return nil
}

// Next implements shardfiles.Scanner.
func (s *scanner) Next(ctx context.Context, item *stream.Item[*Sample]) (bool, error) {
	if s.broken != nil || s.record == int64(len(s.offsets)-1) {
		return false, s.broken
	}
	from, to := int64(s.offsets[s.record]), int64(s.offsets[s.record+1])
	sample := &Sample{Origin: loader.Origin{File: s.in.Name(), Offset: from, Record: s.record}, columns: s.columns}
	item.Value, item.Origin = sample, sample.Origin
	var err, failed error
	if to-from > s.options.MaxBytes {
		failed = tooLarge(s.in.Name(), from, s.record, to-from, s.options)
		err = s.in.Skip(ctx, to-from)
	} else {
		sample.bytes, err = s.in.Append(ctx, nil, to-from)
	}
	if err != nil {
		s.broken = s.failed(err, "the whole of a sample")
		return false, s.broken
	}
	s.record++
	if failed == nil {
		failed = sample.cut()
	}
	return failed == nil, failed
}

func (s *scanner) failed(err error, want string) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return s.failure(want, "the end of the file")
	}
	return err
}

func (s *scanner) failure(want, got string) error {
	return &source.FormatError{Format: "mds", File: s.in.Name(), Offset: s.in.Offset(), Record: s.record, Want: want, Got: got}
}

// Place implements shardfiles.Scanner.
func (s *scanner) Place() (offset, record int64) { return 0, s.record }

// Close implements shardfiles.Scanner.
func (s *scanner) Close() error {
	s.in.Close()
	return nil
}
