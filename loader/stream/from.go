package stream

import (
	"context"
	"errors"
	"iter"
	"strconv"

	"github.com/leat-go/leat/loader"
)

// FromSeqs makes a Stream of a function that gives an iterator over the values of a shard in
// a pass, under the rules of loader.FromSeqFunc: the same values each time. ctx is the one
// that the shard was opened with.
//
// An iterator can't be entered in the middle, so no place in the stream has a mark: to go
// on from one the shard is read again from its beginning. New is for what can do better.
func FromSeqs[T any](shards int, values func(ctx context.Context, pass loader.Pass, shard int) iter.Seq2[T, error]) Stream[T] {
	s := newStream("FromSeqs", shards, func(ctx context.Context, pass loader.Pass, shard int, mark []byte) (Reader[T], error) {
		if mark != nil {
			return nil, &MarkError{Operator: "FromSeqs", Err: loader.ErrNoMark}
		}
		seq := values(ctx, pass, shard)
		if seq == nil {
			return nil, errors.New("stream: FromSeqs: values returned nil, want an iterator")
		}
		next, stop := iter.Pull2(seq)
		return &pulled[T]{next: next, stop: stop}, nil
	})
	s.err = errors.Join(s.err, needs(values == nil, "FromSeqs", "values"))
	return s
}

type pulled[T any] struct {
	next  func() (T, error, bool)
	stop  func()
	ended error // how the iterator ended, if not by itself
}

// errIterator is what an iterator that has panicked gives from then on: to iter.Pull it
// looks as if it had come to its end.
var errIterator = errors.New("stream: the iterator has panicked, or ended its goroutine")

func (p *pulled[T]) Next(_ context.Context, item *Item[T]) (ok bool, err error) {
	if p.ended != nil {
		return false, p.ended
	}
	p.ended = errIterator
	item.Value, err, ok = p.next()
	p.ended = nil
	item.Origin = loader.Origin{}
	return ok && err == nil, err
}

func (p *pulled[T]) AppendMark(dst []byte) ([]byte, error) { return dst, loader.ErrNoMark }

func (p *pulled[T]) Close() error {
	p.stop()
	return nil
}

// FromSlice makes a Stream of values, which it borrows for good. Value i belongs to shard
// i%shards, so that a loader, which takes one of each shard in turn, gives them in their order.
func FromSlice[T any](values []T, shards int) Stream[T] {
	s := newStream("FromSlice", shards, func(_ context.Context, _ loader.Pass, shard int, mark []byte) (Reader[T], error) {
		r := &sliced[T]{values: values, shard: shard, shards: shards, share: int(share(int64(len(values)), shard, shards))}
		if mark == nil {
			return r, nil
		}
		var n int64
		if err := parse("FromSlice", mark, &n); err != nil {
			return nil, err
		}
		if err := outside("FromSlice", "the number of values read", n, 0, int64(r.share)); err != nil {
			return nil, err
		}
		r.n = int(n)
		return r, nil
	})
	s.fingerprint = uint64(len(values))
	return s
}

type sliced[T any] struct {
	values        []T
	shard, shards int
	n, share      int // values read, and in all
}

func (s *sliced[T]) Next(_ context.Context, item *Item[T]) (ok bool, err error) {
	if s.n == s.share {
		return false, nil
	}
	*item = Item[T]{Value: s.values[s.shard+s.n*s.shards]}
	s.n++
	return true, nil
}

func (s *sliced[T]) AppendMark(dst []byte) ([]byte, error) {
	return strconv.AppendInt(dst, int64(s.n), 10), nil
}

func (s *sliced[T]) Close() error { return nil }
