package parquet

import (
	"context"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/leat-go/leat/loader/internal/shardfiles"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/stream"
)

// NewStream is the rows of files as a stream, each file read from front to back, a thousand rows at a
// time. It is gone on with at the row group of the place that was marked.
func NewStream(files []source.Source, o Options) stream.Stream[*Row] {
	o, err := o.filled()
	if err != nil {
		return stream.Failed[*Row](err)
	}
	return shardfiles.New(files, shardfiles.Options{Format: "parquet", Shards: o.Shards, Shuffle: o.Shuffle},
		func(ctx context.Context, f source.File, _, record int64) (shardfiles.Scanner[*Row], error) {
			t, err := openTable(ctx, f, o)
			if err != nil {
				return nil, err
			}
			if end := t.groups[len(t.groups)-1]; record > end {
				return nil, &source.FormatError{Format: "parquet", File: f.Name(), Offset: -1, Record: record, Want: "the row that was marked", Got: fmt.Sprintf("%d rows", end)}
			}
			return &scanner{table: t, options: o, record: record}, nil
		})
}

// scanner reads the rows of one file.
type scanner struct {
	table   *table
	options Options
	record  int64 // the next row
	reader  pqarrow.RecordReader
	begun   context.Context // what the reader was made with
	group   int             // what it reads
	batch   arrow.RecordBatch
	at      int64 // the next row in it
	broken  error
}

// Next implements shardfiles.Scanner.
func (s *scanner) Next(ctx context.Context, item *stream.Item[*Row]) (bool, error) {
	if s.broken != nil {
		return false, s.broken
	}
	if s.record == s.table.groups[len(s.table.groups)-1] {
		return false, nil
	}
	for s.batch == nil || s.at >= s.batch.NumRows() {
		if err := s.next(ctx); err != nil {
			s.broken = err
			return false, err
		}
	}
	item.Value = &Row{batch: s.batch, at: int(s.at), file: s.table.file.Name(), number: s.record, masks: s.options.Masks}
	item.Origin = item.Value.Origin()
	s.at++
	s.record++
	return true, nil
}

// next decodes the next rows. Each row group has its own memory, and under another context it is
// begun again.
func (s *scanner) next(ctx context.Context) error {
	group := s.table.group(s.record)
	return s.table.guard(group, func() (err error) {
		skip := int64(0)
		if s.reader == nil || s.begun != ctx || s.group != group {
			s.release()
			if s.reader, err = s.table.rows(ctx, group, newMeter(s.options.MaxBytes)); err != nil {
				return err
			}
			s.begun, s.group, skip = ctx, group, s.record-s.table.groups[group]
		}
		for {
			b, err := s.reader.Read()
			if err == io.EOF {
				return fmt.Errorf("%d rows in place of %d", s.record-s.table.groups[group], s.table.groups[group+1]-s.table.groups[group])
			}
			if err != nil {
				return err
			}
			if n := b.NumRows(); skip >= n {
				skip -= n
				continue
			}
			b.Retain() // the rows that were given out keep it
			s.batch, s.at = b, skip
			return nil
		}
	})
}

func (s *scanner) release() {
	if s.reader != nil {
		s.reader.Release()
		s.reader = nil
	}
}

// Place implements shardfiles.Scanner.
func (s *scanner) Place() (offset, record int64) { return 0, s.record }

// Close implements shardfiles.Scanner.
func (s *scanner) Close() error {
	s.release()
	return nil
}
