package stream

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/leat-go/leat/loader"
)

// Item is a value on its way through a stream, with the place that it comes from.
type Item[T any] struct {
	Value T
	// Origin is the zero value where a source doesn't tell it.
	Origin loader.Origin
}

// Reader reads a shard of a Stream, item by item. It is for one goroutine. The rules are
// those of loader.ShardReader.
type Reader[T any] interface {
	// Next sets item to the next one, or returns false at the end of the shard. After an
	// error the call after it goes on with the next record; where that is impossible it
	// returns the error again. The error loader.Flush is no failure. Where it returns false
	// or an error, what item holds says nothing. The memory of item is the caller's: the
	// reader keeps no pointer to it.
	Next(ctx context.Context, item *Item[T]) (ok bool, err error)
	// AppendMark appends to dst the mark of the place behind what Next returned last: a
	// JSON value, not null. loader.ErrNoMark says that the place has none.
	AppendMark(dst []byte) ([]byte, error)
	// Close ends the reader. It is called once.
	Close() error
}

// Stream is a number of shards of values of type T, none of which is read before Open. It
// is a small value that doesn't change: any number of operators may stand on one, and any
// number of goroutines may use it. New makes one, and so do Lines and FromSeqs.
//
// What is wrong in the arguments of New and of the operators, Err says: all mistakes of a
// chain at once. Encode passes them on to loader.NewStream.
type Stream[T any] struct {
	shards      int
	open        opener[T]
	fingerprint uint64
	draws       int        // how many operators so far draw random numbers: each has its own
	appended    []appended // to the steps of its mixes
	err         error
}

// opener opens a shard in a pass: at its beginning if mark is empty.
type opener[T any] func(ctx context.Context, pass loader.Pass, shard int, mark []byte) (Reader[T], error)

// New makes a Stream of a function that opens a shard, under the rules of
// loader.Stream.Open. mark is nil at the beginning, and borrowed until open returns.
func New[T any](shards int, open func(ctx context.Context, pass loader.Pass, shard int, mark []byte) (Reader[T], error)) Stream[T] {
	return newStream("New", shards, open)
}

// Failed is a stream that could not be made: Err returns err, and so it does for every
// operator on it. It is for functions that make streams of their arguments.
func Failed[T any](err error) Stream[T] {
	return Stream[T]{shards: 1, err: err, open: func(context.Context, loader.Pass, int, []byte) (Reader[T], error) { return nil, err }}
}

// newStream is New for a function of that name, whose mistakes are told as its own.
func newStream[T any](name string, shards int, open opener[T]) Stream[T] {
	var errs []error
	if shards < 1 {
		errs = append(errs, misuse(name, "shards", shards, "1 or more"))
	}
	if open == nil {
		errs = append(errs, misuse(name, "open", nil, "a function"))
	}
	return Stream[T]{shards: shards, err: errors.Join(errs...), open: func(ctx context.Context, pass loader.Pass, shard int, mark []byte) (Reader[T], error) {
		r, err := open(ctx, pass, shard, mark)
		if err != nil {
			return nil, err
		}
		if r == nil {
			return nil, errors.New("stream: open returned neither a Reader nor an error")
		}
		return &guard[T]{Reader: r}, nil
	}}
}

// Fingerprinted is s with a fingerprint of its contents, under the rules of
// loader.Fingerprinter. Operators put their own names and arguments to it, but can't tell
// one function from another.
func Fingerprinted[T any](s Stream[T], fingerprint uint64) Stream[T] {
	s.fingerprint = fingerprint
	return s
}

// Shards is the number of shards.
func (s Stream[T]) Shards() int { return s.shards }

// Fingerprint is 0 if nothing is known of the contents.
func (s Stream[T]) Fingerprint() uint64 { return s.fingerprint }

// Err joins a *loader.OptionError for each mistake in the making of the stream.
func (s Stream[T]) Err() error {
	if s.err == nil && s.open == nil {
		return misuse("Stream", "Stream", "the zero value", "one that New or an operator has made")
	}
	return s.err
}

// Open begins to read a shard in a pass, at its beginning or at a mark that a Reader of
// the same stream and pass has given. Who has opened it closes it. A mark that is none, or
// of other data, is a *MarkError.
func (s Stream[T]) Open(ctx context.Context, pass loader.Pass, shard int, mark []byte) (Reader[T], error) {
	if err := s.Err(); err != nil {
		return nil, err
	}
	if shard < 0 || shard >= s.shards {
		return nil, fmt.Errorf("stream: shard %d of %d", shard, s.shards)
	}
	r, err := s.open(ctx, pass, shard, given(mark))
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Items ranges over a shard in a pass. An error is yielded in place of an item, and the
// loop goes on with the record behind it; a loop that doesn't leave at an error may never
// end. loader.Flush is not yielded. The shard is closed when the loop ends.
func (s Stream[T]) Items(ctx context.Context, pass loader.Pass, shard int) iter.Seq2[Item[T], error] {
	return func(yield func(Item[T], error) bool) {
		r, err := s.Open(ctx, pass, shard, nil)
		if err != nil {
			yield(Item[T]{}, err)
			return
		}
		defer func() {
			if err := r.Close(); err != nil && yield != nil {
				yield(Item[T]{}, err)
			}
		}()
		for {
			var item Item[T]
			ok, err := r.Next(ctx, &item)
			switch {
			case err == loader.Flush:
				continue
			case err != nil:
				item = Item[T]{}
			case !ok:
				return
			}
			if !yield(item, err) {
				yield = nil // the loop has ended
				return
			}
		}
	}
}

// then is the stream that open makes of s, with the mistakes of the operator.
func then[T, U any](s Stream[T], open opener[U], mistakes ...error) Stream[U] {
	return Stream[U]{
		shards:      s.shards,
		open:        open,
		fingerprint: s.fingerprint,
		draws:       s.draws,
		appended:    s.appended,
		err:         errors.Join(append([]error{s.Err()}, mistakes...)...),
	}
}

// misuse is a mistake in an operator's argument.
func misuse(operator, argument string, value any, want string) error {
	option := operator
	if argument != operator {
		option += ": " + argument
	}
	return &loader.OptionError{Package: "stream", Option: option, Value: value, Want: want}
}

// check is nil if ok, else what misuse returns.
func check(ok bool, operator, argument string, value any, want string) error {
	if ok {
		return nil
	}
	return misuse(operator, argument, value, want)
}

// needs is a mistake if the function that an operator is given is nil.
func needs(isNil bool, operator, argument string) error {
	return check(!isNil, operator, argument, nil, "a function")
}

// guard keeps the rules of Reader for a user's own.
type guard[T any] struct {
	Reader[T]
	ended bool
}

func (g *guard[T]) Next(ctx context.Context, item *Item[T]) (ok bool, err error) {
	if g.ended {
		return false, nil
	}
	ok, err = g.Reader.Next(ctx, item)
	g.ended = !ok && err == nil
	return ok && err == nil, err
}

func (g *guard[T]) AppendMark(dst []byte) ([]byte, error) {
	out, err := g.Reader.AppendMark(dst)
	if err != nil {
		return dst, err
	}
	if len(out) < len(dst) || !isMark(out[len(dst):]) {
		return dst, errors.New("stream: AppendMark of a Reader appended what is no JSON value, or null")
	}
	return out, nil
}
