package shardfiles

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/given"
	"github.com/leat-go/leat/loader/internal/mix"
	"github.com/leat-go/leat/loader/internal/permute"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/stream"
)

// Scanner reads the records of one file. It is for one goroutine.
type Scanner[T any] interface {
	// Next sets item to the next record, or returns false at the end. After an error the next
	// call goes on with the record behind; where that is impossible it returns the error again.
	Next(ctx context.Context, item *stream.Item[T]) (ok bool, err error)
	// Place is where the next record begins in the file's contents, and its number. It is
	// behind the last record that Next has returned, whatever was read ahead.
	Place() (offset, record int64)
	Close() error
}

// Opener opens a file at a record: its beginning is (0, 0). It borrows the File, which stays open
// as long as the Scanner.
type Opener[T any] func(ctx context.Context, f source.File, offset, record int64) (Scanner[T], error)

// Options are those of all formats.
type Options struct {
	// Format names the package in errors and marks.
	Format string
	// Shards is the number of shards, 0 for one of each file. File i belongs to shard i%Shards.
	Shards int
	// Shuffle reads the files of each shard in another order in each pass.
	Shuffle bool
}

// New makes a stream of files.
func New[T any](files []source.Source, o Options, open Opener[T]) stream.Stream[T] {
	s := &sharded[T]{files: files, shards: o.Shards, options: o, open: open}
	if s.shards == 0 {
		s.shards = len(files)
	}
	var wrong []error
	check := func(ok bool, option string, value any, want string) {
		if !ok {
			wrong = append(wrong, &loader.OptionError{Package: o.Format, Option: option, Value: value, Want: want})
		}
	}
	check(o.Shards >= 0 && o.Shards <= len(files), "Shards", o.Shards, fmt.Sprintf("0 (one for each file) to %d, the number of files", len(files)))
	if err := errors.Join(append(wrong, given.Files(o.Format, files))...); err != nil {
		return stream.Failed[T](err)
	}
	return stream.Fingerprinted(stream.New(s.shards, s.openShard), s.fingerprint())
}

type sharded[T any] struct {
	files   []source.Source
	shards  int
	options Options
	open    Opener[T]
}

// fingerprint is of the names and of how they are shared out. What is in the files would have
// to be asked for.
func (s *sharded[T]) fingerprint() uint64 {
	words := []uint64{uint64(s.shards), uint64(len(s.files))}
	if s.options.Shuffle {
		words = append(words, 1)
	}
	h := mix.Hash(words...)
	for _, f := range s.files {
		for _, b := range []byte(f.Name()) {
			h = mix.Fold(h, uint64(b))
		}
		h = mix.Fold(h, 1<<8)
	}
	return h
}

// mark is a place: the file by its number in the order in which the shard's are read.
type mark struct {
	File   int   `json:"file"`
	Offset int64 `json:"offset,omitempty"`
	Record int64 `json:"record,omitempty"`
}

func (s *sharded[T]) openShard(_ context.Context, pass loader.Pass, shard int, given []byte) (stream.Reader[T], error) {
	r := &reader[T]{of: s, shard: shard, files: (len(s.files) - shard + s.shards - 1) / s.shards}
	if s.options.Shuffle {
		const use = 0x66696c65 // tells this order from others that are drawn of the same pass
		r.order = permute.New(mix.Hash(pass.Seed, uint64(pass.Epoch), uint64(shard), use), uint64(r.files))
	}
	if given == nil {
		return r, nil
	}
	d := json.NewDecoder(bytes.NewReader(given))
	d.DisallowUnknownFields()
	err := d.Decode(&r.at)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("something stands behind it")
		}
	}
	if err == nil && (r.at.File < 0 || r.at.File > r.files || r.at.Offset < 0 || r.at.Record < 0) {
		err = fmt.Errorf("file %d, offset %d, record %d of %d files", r.at.File, r.at.Offset, r.at.Record, r.files)
	}
	if err != nil {
		return nil, &stream.MarkError{Operator: s.options.Format, Err: err}
	}
	return r, nil
}

// reader reads a shard.
type reader[T any] struct {
	of           *sharded[T]
	shard, files int
	order        permute.Permutation
	at           mark // of the next record
	file         source.File
	scanner      Scanner[T] // nil if the file is not open
	broken       error      // what opening the file has returned
	closed       error      // what closing files has returned
}

// Next implements stream.Reader.
func (r *reader[T]) Next(ctx context.Context, item *stream.Item[T]) (ok bool, err error) {
	for r.broken == nil && r.at.File < r.files {
		if r.scanner == nil {
			if err := r.openFile(ctx); err != nil {
				r.closeFile()
				if ctx.Err() == nil {
					r.broken = err
				}
				return false, err
			}
		}
		ok, err := r.scanner.Next(ctx, item)
		switch {
		case err != nil && ctx.Err() != nil:
			r.closeFile() // the next call opens it again: a decompressor can't go on
			return false, err
		case ok || err != nil:
			r.at.Offset, r.at.Record = r.scanner.Place()
			return ok, err
		}
		r.closeFile()
		r.at = mark{File: r.at.File + 1}
	}
	return false, r.broken
}

func (r *reader[T]) openFile(ctx context.Context) error {
	i := r.at.File
	if r.of.options.Shuffle {
		i = int(r.order.At(uint64(i)))
	}
	var err error
	if r.file, err = r.of.files[r.shard+i*r.of.shards].Open(ctx); err != nil {
		return err
	}
	scanner, err := r.of.open(ctx, r.file, r.at.Offset, r.at.Record)
	if err == nil {
		r.scanner = scanner
	}
	return err
}

func (r *reader[T]) closeFile() {
	if r.scanner != nil {
		r.closed = errors.Join(r.closed, r.scanner.Close())
	}
	if r.file != nil {
		r.closed = errors.Join(r.closed, r.file.Close())
	}
	r.scanner, r.file = nil, nil
}

// AppendMark implements stream.Reader.
func (r *reader[T]) AppendMark(dst []byte) ([]byte, error) {
	dst = strconv.AppendInt(append(dst, `{"file":`...), int64(r.at.File), 10)
	if r.at.Offset > 0 || r.at.Record > 0 {
		dst = strconv.AppendInt(append(dst, `,"offset":`...), r.at.Offset, 10)
		dst = strconv.AppendInt(append(dst, `,"record":`...), r.at.Record, 10)
	}
	return append(dst, '}'), nil
}

// Close implements stream.Reader.
func (r *reader[T]) Close() error {
	r.closeFile()
	return r.closed
}
