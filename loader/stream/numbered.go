package stream

import (
	"context"
	"strconv"

	"github.com/leat-go/leat/loader"
)

// numbered is the mark of an operator whose only state is a count.
type numbered struct {
	N  uint64 `json:"n"`
	At raw    `json:"at"`
}

// openNumbered opens s for an operator whose marks appendNumbered makes, and returns its
// count: 0 at the beginning.
func openNumbered[T any](operator string, s Stream[T], ctx context.Context, pass loader.Pass, shard int, mark []byte) (Reader[T], uint64, error) {
	if mark == nil {
		up, err := s.open(ctx, pass, shard, nil)
		return up, 0, err
	}
	var m numbered
	if err := parse(operator, mark, &m); err != nil {
		return nil, 0, err
	}
	at, err := inner(operator, m.At)
	if err != nil {
		return nil, 0, err
	}
	up, err := s.open(ctx, pass, shard, at)
	return up, m.N, err
}

// appendNumbered appends the mark of an operator whose count is n, on up.
func appendNumbered[T any](dst []byte, n uint64, up Reader[T]) ([]byte, error) {
	out := append(dst, `{"n":`...)
	out = strconv.AppendUint(out, n, 10)
	out = append(out, `,"at":`...)
	out, err := up.AppendMark(out)
	if err != nil {
		return dst, err
	}
	return append(out, '}'), nil
}
