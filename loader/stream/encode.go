package stream

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/leat-go/leat/loader"
)

// Encode makes s what loader.NewStream takes: the end of a chain. encode writes a value to a
// row of fields under the rules of loader.Dataset.Read; it runs on the workers, in
// parallel with each other and with what is before it in the chain. loader.Skip leaves the
// value out.
func Encode[T any](s Stream[T], fields []loader.Field, encode func(ctx context.Context, value T, row *loader.Row) error) loader.Stream {
	return &encoded[T]{
		s:      then(s, s.open, needs(encode == nil, "Encode", "encode")),
		fields: slices.Clone(fields),
		encode: encode,
	}
}

type encoded[T any] struct {
	s      Stream[T]
	fields []loader.Field
	encode func(context.Context, T, *loader.Row) error
	spare  sync.Pool // of *sample[T]
}

func (e *encoded[T]) Fields() []loader.Field { return e.fields }
func (e *encoded[T]) Shards() int            { return e.s.shards }
func (e *encoded[T]) Fingerprint() uint64    { return e.s.fingerprint }

// Kept implements loader.Keeper.
func (e *encoded[T]) Kept() json.RawMessage { return marshal(e.s.appended) }

// Extends implements loader.Keeper.
func (e *encoded[T]) Extends(kept json.RawMessage) error { return extends(e.s.appended, kept) }

// Err joins the mistakes of the chain. loader.NewStream asks for it.
func (e *encoded[T]) Err() error { return e.s.Err() }

func (e *encoded[T]) Open(ctx context.Context, pass loader.Pass, shard int, mark []byte) (loader.ShardReader, error) {
	up, err := e.s.Open(ctx, pass, shard, mark)
	if err != nil {
		return nil, err
	}
	return &encodedReader[T]{Reader: up, of: e}, nil
}

type encodedReader[T any] struct {
	Reader[T]
	of   *encoded[T]
	next *sample[T] // that a Next without a result has left over
}

func (r *encodedReader[T]) Next(ctx context.Context) (loader.Encoder, bool, error) {
	s := r.next
	if s == nil {
		s = r.of.sample()
	}
	r.next = nil
	ok, err := r.Reader.Next(ctx, &s.item)
	if !ok || err != nil {
		r.next = s
		return nil, false, err
	}
	return s, true, nil
}

// sample is one to be filled.
func (e *encoded[T]) sample() *sample[T] {
	s, ok := e.spare.Get().(*sample[T])
	if !ok {
		s = &sample[T]{of: e}
	}
	return s
}

// sample is a value on its way into a row. It is used again for others.
type sample[T any] struct {
	of   *encoded[T]
	item Item[T]
}

// Origin implements loader.Located.
func (s *sample[T]) Origin() loader.Origin { return s.item.Origin }

// Encode implements loader.Encoder.
func (s *sample[T]) Encode(ctx context.Context, row *loader.Row) error {
	of, value := s.of, s.item.Value
	_ = s.Close()
	return of.encode(ctx, value, row)
}

// Close implements io.Closer, for a sample that no batch takes.
func (s *sample[T]) Close() error {
	s.item = Item[T]{} // what it refers to may be garbage from now on
	s.of.spare.Put(s)
	return nil
}
