package stream

import (
	"context"

	"github.com/leat-go/leat/loader"
)

// Take is the first n values of s, in the order in which a loader takes them: one of each
// shard in turn. So shard i gives its first n/S values, and one more if i < n%S, where S is
// the number of shards; less if it has less. Take and Skip with one n share s out between
// them: no value is in both, and none in neither.
func Take[T any](s Stream[T], n int64) Stream[T] {
	return then(s, func(ctx context.Context, pass loader.Pass, shard int, mark []byte) (Reader[T], error) {
		up, taken, err := openNumbered("Take", s, ctx, pass, shard, mark)
		if err != nil {
			return nil, err
		}
		return &taking[T]{Reader: up, taken: taken, share: share(n, shard, s.shards)}, nil
	}, check(n >= 0, "Take", "n", n, "0 or more")).as("Take", uint64(n))
}

// share is the part of n values that a shard has if each has one in turn.
func share(n int64, shard, shards int) uint64 {
	all := n / int64(shards)
	if int64(shard) < n%int64(shards) {
		all++
	}
	return uint64(all)
}

type taking[T any] struct {
	Reader[T]
	taken, share uint64
}

func (t *taking[T]) Next(ctx context.Context, item *Item[T]) (ok bool, err error) {
	if t.taken >= t.share {
		return false, nil
	}
	ok, err = t.Reader.Next(ctx, item)
	if ok && err == nil {
		t.taken++
	}
	return ok, err
}

func (t *taking[T]) AppendMark(dst []byte) ([]byte, error) {
	return appendNumbered(dst, t.taken, t.Reader)
}

// Skip is s without the values that Take would give. They are read and left out when the
// first value is asked for; one of them that can't be read is an error, as it is in s.
func Skip[T any](s Stream[T], n int64) Stream[T] {
	return then(s, func(ctx context.Context, pass loader.Pass, shard int, mark []byte) (Reader[T], error) {
		up, skipped, err := openNumbered("Skip", s, ctx, pass, shard, mark)
		if err != nil {
			return nil, err
		}
		return &skipping[T]{Reader: up, skipped: skipped, share: share(n, shard, s.shards)}, nil
	}, check(n >= 0, "Skip", "n", n, "0 or more")).as("Skip", uint64(n))
}

type skipping[T any] struct {
	Reader[T]
	skipped, share uint64
}

func (s *skipping[T]) Next(ctx context.Context, item *Item[T]) (ok bool, err error) {
	for {
		ok, err = s.Reader.Next(ctx, item)
		if !ok || err != nil || s.skipped >= s.share {
			return ok, err
		}
		s.skipped++
		if err := context.Cause(ctx); err != nil {
			return false, err
		}
	}
}

func (s *skipping[T]) AppendMark(dst []byte) ([]byte, error) {
	return appendNumbered(dst, s.skipped, s.Reader)
}
