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

func (f *filtered[T]) Next(ctx context.Context) (item Item[T], ok bool, err error) {
	for {
		item, ok, err = f.Reader.Next(ctx)
		if !ok || err != nil {
			return item, false, err
		}
		keep, err := f.call(item.Value)
		if err != nil {
			return Item[T]{}, false, located(err, item.Origin)
		}
		if keep {
			return item, true, nil
		}
		if err := ctx.Err(); err != nil { // else an endless stream could be left out for ever
			return Item[T]{}, false, err
		}
	}
}

func (f *filtered[T]) call(value T) (keep bool, err error) {
	defer recovered(&err)
	return f.keep(value), nil
}
