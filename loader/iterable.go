package loader

import (
	"context"
	"errors"
	"io"
	"iter"
	"reflect"
	"sync"
)

// Iterable is a dataset that gives its samples one after the other and cannot be
// asked for any other. FromSeqFunc and FromSeq make one of an iterator.
//
// An Iterable can be asked for any epoch at any time, also for the same one again: to
// resume in the middle of an epoch, in this process or in another, its iterator is started
// again and the samples before the cursor are skipped. So an epoch must give the same
// samples in the same order each time, and on every rank. Random numbers must depend on
// the epoch and on a seed that does not change, and on nothing else. A source that
// cannot start again is for FromSeq.
type Iterable interface {
	// Fields describes one sample. It is asked once, by NewIterable.
	Fields() []Field
	// Samples begins an epoch. The iterator is ranged over by one goroutine, at most
	// once; the loop may end early. A panic, and an error that is not nil, end the
	// run as that sample's failure; a sample yielded with an error is ignored. The error
	// Flush is no failure: it has the samples before it delivered now. ctx is
	// cancelled when the Run is closed; an iterator that may take long should return
	// then.
	Samples(ctx context.Context, epoch int) iter.Seq2[Encoder, error]
}

// Pass is one pass over the samples of FromSeqFunc: all that they may depend on.
type Pass struct {
	// Epoch counts from 0.
	Epoch int
	// Seed is Options.Seed.
	Seed uint64
}

// Encoder is one sample of an Iterable, ready to be written.
//
// A sample that owns something, a file or memory that Go does not see, is an
// io.Closer. Either Encode or Close is called, and only once. Encode takes the sample and
// releases what it owns, also if it returns an error. Close is called for a sample that no
// batch takes, because it lies before the cursor, belongs to another rank, or the run ends
// before its turn. Close runs on a goroutine of its own; the iterator may have gone on by
// then. An error or a panic of Close is returned by Run.Close, which waits for it no longer
// than Options.GracePeriod and then returns a *StuckError.
type Encoder interface {
	// Encode writes the sample to row under the rules of Dataset.Read, except that
	// it is called at most once. It runs on a worker; the iterator may have gone on by
	// then.
	Encode(ctx context.Context, row *Row) error
}

// FromSeqFunc makes an Iterable of a function that gives an iterator over the
// samples of a pass. It may be called for any pass, also more than once for the
// same, and must then give the same samples: a shuffle buffer, say, takes its random
// numbers from a generator made of pass.Seed and pass.Epoch. ctx is cancelled when
// the Run is closed.
//
// encode writes a sample to a row under the rules of Dataset.Read; it runs on the
// workers, in parallel with each other and with the iterator. A sample that is an
// io.Closer is encode's to close; one that encode is not called for is closed by the
// loader: see Encoder.
//
// A sample must not change after it is yielded. An iterator that uses a buffer again
// must copy it: the Bytes of a bufio.Scanner, for example, are overwritten by its next
// Scan. Without a copy batches hold wrong data, and there is no error. (The race detector
// reports such a write: go test -race.)
//
// An iterator that yields Flush, beside any value, has the samples before it delivered now:
// the batch that they are in ends with them. It is for live sources, and for one rank.
//
// An iterator cannot seek: to resume in the middle of an epoch it is started again, and
// the samples before the cursor are skipped without being encoded, which takes
// time in proportion to the position.
func FromSeqFunc[S any](
	fields []Field,
	samples func(ctx context.Context, pass Pass) iter.Seq2[S, error],
	encode func(ctx context.Context, sample S, row *Row) error,
) Iterable {
	return &sequence[S]{fields: cloneFields(fields), samples: samples, spare: newSpare(encode)}
}

// seedKey is how a context carries Options.Seed to Samples: also through an Iterable
// that wraps another.
type seedKey struct{}

type sequence[S any] struct {
	fields  []Field
	samples func(context.Context, Pass) iter.Seq2[S, error]
	spare   *spare[S]
}

func (s *sequence[S]) Fields() []Field { return s.fields }

func (s *sequence[S]) missing() error {
	return errors.Join(required("samples", s.samples, "a function"), required("encode", s.spare.encode, "a function"))
}

func (s *sequence[S]) Samples(ctx context.Context, epoch int) iter.Seq2[Encoder, error] {
	seed, _ := ctx.Value(seedKey{}).(uint64)
	seq := s.samples(ctx, Pass{Epoch: epoch, Seed: seed})
	if seq == nil {
		return nil
	}
	return s.spare.encoders(seq)
}

// spare makes Encoders of values, and uses them again, so that a sample costs no
// allocation.
type spare[S any] struct {
	encode func(context.Context, S, *Row) error
	closes bool // whether a value may be an io.Closer
	pool   sync.Pool
}

func newSpare[S any](encode func(context.Context, S, *Row) error) *spare[S] {
	// Asking each value would make an interface of it, which allocates.
	t := reflect.TypeFor[S]()
	closes := t.Kind() == reflect.Interface || t.Implements(reflect.TypeFor[io.Closer]())
	return &spare[S]{encode: encode, closes: closes}
}

// encoders is seq with an Encoder for each value.
func (s *spare[S]) encoders(seq iter.Seq2[S, error]) iter.Seq2[Encoder, error] {
	return func(yield func(Encoder, error) bool) {
		for value, err := range seq {
			if err != nil {
				if !yield(nil, err) {
					return
				}
				continue
			}
			e, ok := s.pool.Get().(*sample[S])
			if !ok {
				e = &sample[S]{spare: s}
			}
			e.value = value
			if !yield(e, nil) {
				return
			}
		}
	}
}

// sample is one value on its way from the iterator into a row.
type sample[S any] struct {
	spare *spare[S]
	value S
}

// Encode implements Encoder.
func (e *sample[S]) Encode(ctx context.Context, row *Row) error {
	s, value := e.spare, e.take()
	return s.encode(ctx, value, row)
}

// Close implements io.Closer.
func (e *sample[S]) Close() error {
	c := e.closer()
	e.take()
	if c == nil {
		return nil
	}
	return c.Close()
}

// closer is the value as an io.Closer, nil if it is none.
func (e *sample[S]) closer() io.Closer {
	if !e.spare.closes {
		return nil
	}
	c, _ := any(e.value).(io.Closer)
	return c
}

// try is Encode, but the sample keeps its value.
func (e *sample[S]) try(ctx context.Context, row *Row) error {
	return e.spare.encode(ctx, e.value, row)
}

// drop is the end of a sample whose value encode has had.
func (e *sample[S]) drop() { e.take() }

// take returns the value. The sample may become another from here on.
func (e *sample[S]) take() S {
	value := e.value
	e.value = *new(S) // what it refers to may be garbage from now on
	e.spare.pool.Put(e)
	return value
}
