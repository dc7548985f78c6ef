package loader

import (
	"context"
	"iter"
	"slices"
	"sync"
)

// Iterable is a dataset that gives its samples one after the other and cannot be
// asked for any other.
type Iterable interface {
	// Fields describes one sample. It is asked once, by NewIterable.
	Fields() []Field
	// Samples is asked once for each epoch, and ranged over by one goroutine, at
	// most once. The loop may end early. A panic, and an error that is not nil,
	// end the run as that sample's failure. ctx is cancelled when the Run is
	// closed; an iterator that may take long should heed it.
	Samples(ctx context.Context, epoch int) iter.Seq2[Encoder, error]
}

// Encoder is one sample of an Iterable, ready to be written.
type Encoder interface {
	// Encode writes the sample to row under the rules of Dataset.Read, except that
	// it is called at most once. It runs on a worker, after the iterator may have
	// gone on.
	Encode(ctx context.Context, row *Row) error
}

// FromSeq makes an Iterable of an iterator, which is ranged over once in each
// epoch and must begin again every time. encode writes a sample to a row under
// the rules of Dataset.Read; it runs on the workers, in parallel with each other
// and with the iterator, so a sample must stay as it is after the iterator has
// gone on.
//
// A plain iterator cannot seek: to resume in mid-epoch it is replayed, and the
// samples before the cursor are discarded without being encoded, which takes time
// in proportion to the position.
func FromSeq[S any](fields []Field, seq iter.Seq2[S, error], encode func(ctx context.Context, sample S, row *Row) error) Iterable {
	return &sequence[S]{fields: slices.Clone(fields), seq: seq, encode: encode}
}

type sequence[S any] struct {
	fields []Field
	seq    iter.Seq2[S, error]
	encode func(context.Context, S, *Row) error
	// spare holds *sample[S], so that a sample costs no allocation.
	spare sync.Pool
}

func (s *sequence[S]) Fields() []Field { return s.fields }

func (s *sequence[S]) Samples(context.Context, int) iter.Seq2[Encoder, error] {
	return func(yield func(Encoder, error) bool) {
		for value, err := range s.seq {
			if err != nil {
				yield(nil, err)
				return
			}
			e, ok := s.spare.Get().(*sample[S])
			if !ok {
				e = &sample[S]{sequence: s}
			}
			e.value = value
			if !yield(e, nil) {
				return
			}
		}
	}
}

// sample is one value on its way from the iterator to a worker.
type sample[S any] struct {
	sequence *sequence[S]
	value    S
}

// Encode implements Encoder. The sample goes back to its sequence.
func (e *sample[S]) Encode(ctx context.Context, row *Row) error {
	s, value := e.sequence, e.value
	e.value = *new(S) // what it refers to may be garbage from now on
	s.spare.Put(e)
	return s.encode(ctx, value, row)
}
