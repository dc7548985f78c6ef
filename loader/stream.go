package loader

import (
	"context"
	"errors"
	"fmt"
)

// Stream is a dataset without random access that is cut into shards, each of which can be
// read from any place that was marked: files, or parts of them. Package loader/stream makes
// Streams and puts them together.
//
// The number of shards is part of the order and of a State: a run goes on only with as
// many as it began with, by any number of ranks up to that. A shard belongs to one rank,
// which reads all of it.
//
// One that has a method Err() error is asked by NewStream whether there were mistakes in its
// making.
type Stream interface {
	// Fields describes one sample. It is asked once.
	Fields() []Field
	// Shards is the number of shards, 1 or more, the same on every rank. It is asked once.
	Shards() int
	// Open begins to read a shard in a pass: at its beginning if mark is nil, and else
	// with the sample behind the one at which the mark was taken. All samples of a pass
	// are a function of the pass and the shard: the same on each call, in the same order.
	// Open may be called by several goroutines at once, and for a shard again while an
	// earlier reader of it is open. ctx is cancelled when the Run is closed.
	Open(ctx context.Context, pass Pass, shard int, mark []byte) (ShardReader, error)
}

// ShardReader reads a shard, sample by sample. It is for one goroutine.
type ShardReader interface {
	// Next returns the next sample, or false at the end of the shard. A record that can't
	// be read is an error, and the call after it goes on with the next record; where that
	// is impossible it returns the error again. The error Flush is no failure: see there.
	Next(ctx context.Context) (sample Encoder, ok bool, err error)
	// AppendMark appends to dst the mark of the place behind the last sample, record or
	// Flush that Next returned: a JSON value. A reader that can't tell returns ErrNoMark;
	// then the shard is read again from a mark before, and samples are left out. The mark
	// is small: what the reader has in buffers is read again and not saved.
	AppendMark(dst []byte) ([]byte, error)
	// Close ends the reader, and releases what it has opened. It is called once.
	Close() error
}

// Origin says where a sample comes from. The zero value says nothing.
type Origin struct {
	// File is its name.
	File string
	// Offset is where the sample's record begins in it, in bytes.
	Offset int64
	// Record is the record's number in the file, from 0; -1 if that is not known.
	Record int64
	// Line is the number of a line of text, from 1 as editors count; 0 if the record is none,
	// or if its number is not known.
	Line int64
}

// String is the origin for people.
func (o Origin) String() string {
	if o == (Origin{}) {
		return "unknown origin"
	}
	switch {
	case o.Line > 0:
		return fmt.Sprintf("%s, line %d at offset %d", o.File, o.Line, o.Offset)
	case o.Record < 0:
		return fmt.Sprintf("%s, offset %d", o.File, o.Offset)
	}
	return fmt.Sprintf("%s, record %d at offset %d", o.File, o.Record, o.Offset)
}

// Located is an Encoder that knows where its sample comes from, or an error of a ShardReader
// that knows it of its record. Errors say it. An Encoder is asked before each Encode, which
// may give the sample away: Origin only looks up what is known.
type Located interface {
	// Origin is that of the sample.
	Origin() Origin
}

var (
	// Skip is returned by the encode function of a Stream for a sample that is to be left
	// out. It is no failure: the next sample of the shard takes the place, and the sample
	// is counted.
	//
	//lint:ignore ST1012 it is no failure, as io.EOF is none
	Skip = errors.New("leat: skip this sample")
	// Flush is returned by a ShardReader, and yielded by an iterator in place of an error,
	// to have the samples before it delivered now: the batch that they are in ends with
	// them. It is for live sources; if no sample waits to be delivered it does nothing.
	//
	//lint:ignore ST1012 likewise
	Flush = errors.New("leat: flush")
	// ErrNoMark is returned by ShardReader.AppendMark where a place can't be marked.
	ErrNoMark = errors.New("leat: this place in the data has no mark")
)
