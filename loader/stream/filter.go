package stream

import (
	"context"

	"github.com/leat-go/leat/loader"
)

// Filter is the stream of the values of s that keep returns true for. A panic of keep is the
// failure of this value alone. keep is called by several goroutines at once, one for each
// shard that is read. To filter by what can fail, let the function of a Map return
// loader.Skip.
func Filter[T any](s Stream[T], keep func(value T) bool) Stream[T] {
	return then(s, func(ctx context.Context, pass loader.Pass, shard int, mark []byte) (Reader[T], error) {
		up, err := s.open(ctx, pass, shard, mark)
		if err != nil {
			return nil, err
		}
		return &filtered[T]{Reader: up, keep: keep}, nil
	}, needs(keep == nil, "Filter", "keep")).as("Filter")
}

// filtered has no state of its own: its marks are those below.
type filtered[T any] struct {
	Reader[T]
	keep func(T) bool
}

func (f *filtered[T]) Next(ctx context.Context, item *Item[T]) (ok bool, err error) {
	calling := false
	defer func() {
		if !calling {
			return
		}
		if p := recover(); p != nil {
			ok, err = false, located(panicked(p), item.Origin)
		}
	}()
	for {
		if ok, err = f.Reader.Next(ctx, item); !ok || err != nil {
			return false, err
		}
		calling = true
		ok = f.keep(item.Value)
		if calling = false; ok {
			return true, nil
		}
		if err := context.Cause(ctx); err != nil { // else an endless stream could be left out for ever
			return false, err
		}
	}
}
