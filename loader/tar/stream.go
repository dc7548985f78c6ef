package tar

import (
	"context"
	"io"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/shardfiles"
	"github.com/leat-go/leat/loader/internal/unpack"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/stream"
)

// NewStream is the samples of tar files as a stream, each file read from front to back. Files may
// be compressed by gzip or zstd, which their first bytes show. To be gone on with in the middle, a
// compressed file is decompressed up to there. A sample that is too large, or has a part
// twice, is the failure of that sample; what is no whole tar file ends its shard with the
// error.
func NewStream(files []source.Source, o Options) stream.Stream[*Sample] {
	o, err := o.filled()
	if err != nil {
		return stream.Failed[*Sample](err)
	}
	return shardfiles.New(files, shardfiles.Options{Format: "tar", Shards: o.Shards, Shuffle: o.Shuffle},
		func(ctx context.Context, f source.File, offset, record int64) (shardfiles.Scanner[*Sample], error) {
			in, err := unpack.New(ctx, f, "tar", unpack.Plain)
			if err != nil {
				return nil, err
			}
			r := &sampleReader{in: in, scanner: scanner{in: in}, group: grouper{options: o, file: f.Name(), number: record}, next: offset, record: record}
			if err := in.Skip(ctx, offset); err != nil {
				in.Close()
				return nil, r.scanner.failed(err, "the place that was marked")
			}
			return r, nil
		})
}

// sampleReader reads the samples of one file.
type sampleReader struct {
	in      *unpack.Reader
	scanner scanner
	group   grouper
	pending *entry // the first part of the next sample, whose data is next in the file
	key     string
	suffix  string
	next    int64 // where that begins
	record  int64 // and its number
	broken  error
}

// Next implements shardfiles.Scanner.
func (r *sampleReader) Next(ctx context.Context, item *stream.Item[*Sample]) (bool, error) {
	if r.broken != nil {
		return false, r.end(r.broken)
	}
	return r.sample(ctx, item)
}

// sample reads the parts of a sample, and the header of the part behind.
func (r *sampleReader) sample(ctx context.Context, item *stream.Item[*Sample]) (bool, error) {
	if r.pending == nil {
		if err := r.part(ctx); err != nil {
			return false, r.end(err)
		}
	}
	first := r.pending
	s := &Sample{Key: r.key, Origin: loader.Origin{File: r.in.Name(), Offset: first.offset, Record: r.record}}
	item.Value, item.Origin = s, s.Origin
	var failed error // of this sample alone
	for {
		e := r.pending
		if failed == nil {
			failed = r.group.fits(e, r.suffix)
		}
		if failed == nil {
			data, err := r.in.Append(ctx, []byte{}, e.size)
			if err != nil {
				return false, r.end(r.scanner.failed(err, "the whole of "+e.path))
			}
			s.Parts = append(s.Parts, Part{Suffix: r.suffix, Data: data})
		}
		err := r.part(ctx)
		if err == nil && !r.group.begins {
			continue
		}
		switch {
		case err == nil:
			r.next = r.pending.offset
		case r.scanner.closed:
			// Its end was seen, whatever is wrong with what follows.
			r.broken, r.next = err, r.scanner.next
		default:
			return false, r.end(err)
		}
		r.record++
		return failed == nil, failed
	}
}

// part goes to the next file that is a part of a sample.
func (r *sampleReader) part(ctx context.Context) error {
	for {
		e, err := r.scanner.find(ctx)
		if err != nil {
			return err
		}
		key, suffix, is := r.group.take(&e)
		if is {
			r.pending, r.key, r.suffix = &e, key, suffix
			return nil
		}
	}
}

// end is the error behind which nothing comes, none at the end of the file.
func (r *sampleReader) end(err error) error {
	r.broken = err
	if err == io.EOF {
		return nil
	}
	return err
}

// Place implements shardfiles.Scanner.
func (r *sampleReader) Place() (offset, record int64) { return r.next, r.record }

// Close implements shardfiles.Scanner.
func (r *sampleReader) Close() error {
	r.in.Close()
	return nil
}
