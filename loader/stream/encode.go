package stream

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"

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
	spare  sync.Pool // of *block[T]
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
	of    *encoded[T]
	block *block[T] // that the next samples are of, nil if there is none yet
	used  int       // samples of it
}

func (r *encodedReader[T]) Next(ctx context.Context) (loader.Encoder, bool, error) {
	if r.block == nil || r.used == blockSamples {
		r.block, r.used = r.of.spareBlock(), 0
	}
	s := &r.block.samples[r.used]
	ok, err := r.Reader.Next(ctx, &s.item)
	if !ok || err != nil {
		return nil, false, err
	}
	r.used++
	return s, true, nil
}

func (r *encodedReader[T]) Close() error {
	if r.block != nil {
		r.block.put(blockSamples - r.used)
	}
	return r.Reader.Close()
}

// blockSamples is how many samples of a shard are used again together.
const blockSamples = 32

// block is samples that are used again when all of them have been encoded. To have each by
// itself in a sync.Pool would make shards, which take, and workers, which give back, wait
// for each other's caches at every sample.
type block[T any] struct {
	of      *encoded[T]
	back    atomic.Int32 // samples that nobody has any more
	samples [blockSamples]sample[T]
}

// spareBlock is one to be filled.
func (e *encoded[T]) spareBlock() *block[T] {
	if b, ok := e.spare.Get().(*block[T]); ok {
		return b
	}
	b := &block[T]{of: e}
	for i := range b.samples {
		b.samples[i].in = b
	}
	return b
}

// put notes that nobody has so many of the samples any more, or ever will.
func (b *block[T]) put(samples int) {
	if b.back.Add(int32(samples)) == blockSamples {
		b.back.Store(0)
		b.of.spare.Put(b)
	}
}

// sample is a value on its way into a row.
type sample[T any] struct {
	in   *block[T]
	item Item[T]
}

// Origin implements loader.Located.
func (s *sample[T]) Origin() loader.Origin { return s.item.Origin }

// Encode implements loader.Encoder.
func (s *sample[T]) Encode(ctx context.Context, row *loader.Row) error {
	encode, value := s.in.of.encode, s.item.Value
	_ = s.Close()
	return encode(ctx, value, row)
}

// Close implements io.Closer, for a sample that no batch takes.
func (s *sample[T]) Close() error {
	s.item = Item[T]{} // what it refers to may be garbage from now on
	s.in.put(1)
	return nil
}
