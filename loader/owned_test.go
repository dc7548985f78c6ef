package loader_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
)

// owner is a sample that owns something: either encode takes it, or Close, and once.
type owner struct {
	n     int
	ends  atomic.Int32
	close func(n int) error
}

func (o *owner) Close() error {
	o.ends.Add(1)
	if o.close != nil {
		return o.close(o.n)
	}
	return nil
}

// owners gives n samples that own something, and remembers them all.
type owners struct {
	n     int
	given []*owner
	close func(n int) error
}

func (s *owners) seq(yield func(*owner, error) bool) {
	for i := range s.n {
		o := &owner{n: i, close: s.close}
		s.given = append(s.given, o)
		if !yield(o, nil) {
			return
		}
	}
}

func (s *owners) ended(t *testing.T) {
	t.Helper()
	for _, o := range s.given {
		require.EqualValues(t, 1, o.ends.Load(), "the ends of sample %d", o.n)
	}
}

func encodeOwner(_ context.Context, o *owner, row *loader.Row) error {
	defer o.ends.Add(1)
	writeNumber(o.n, row)
	return nil
}

// A sample that owns something is encoded or closed, one of the two and once, however
// the run ends and whoever's the sample is.
func TestASampleIsEncodedOrClosed(t *testing.T) {
	const n = 62
	bad := errors.New("bad")
	for name, c := range map[string]struct {
		o      loader.Options
		at     int64
		stop   int // batches, 0 for all
		once   bool
		encode func(n int) error
	}{
		"whole":            {},
		"left":             {stop: 3},
		"left at once":     {stop: -1},
		"gone on with":     {at: 30},
		"gone on and left": {at: 30, stop: 2},
		"ranks":            {o: loader.Options{Last: loader.Drop, Shard: loader.Shard{Index: 1, Count: 2}}},
		"last of ranks":    {o: loader.Options{Last: loader.Exact, Shard: loader.Shard{Index: 2, Count: 3}}, stop: 2},
		"dropped tail":     {o: loader.Options{Last: loader.Drop}},
		"too few":          {o: loader.Options{Last: loader.Drop, Shard: loader.Shard{Count: 40}}},
		"beyond the end":   {at: 70},
		"error":            {encode: func(n int) error { return bad }},
		"panic":            {encode: func(n int) error { panic(bad) }},
		"goexit":           {encode: func(n int) error { runtime.Goexit(); return nil }},
	} {
		for _, workers := range []int{1, 3} {
			for _, once := range []bool{false, true} {
				if once && (c.at > 0 || c.o.Shard.Count > 1) {
					continue
				}
				t.Run(name, func(t *testing.T) {
					source := &owners{n: n}
					encode := func(ctx context.Context, o *owner, row *loader.Row) error {
						if c.encode != nil && o.n == 21 {
							defer o.ends.Add(1)
							return c.encode(o.n)
						}
						return encodeOwner(ctx, o, row)
					}
					it := loader.FromSeqFunc(numberFields, each(iter.Seq2[*owner, error](source.seq)), encode)
					if once {
						it = loader.FromSeq(numberFields, iter.Seq2[*owner, error](source.seq), encode)
					}
					o := c.o
					o.Workers, o.Epochs = workers, 1
					l, err := loader.NewIterable(it, 4, o)
					require.NoError(t, err)
					mem := heap(t, l, 3)
					run := l.Start(t.Context(), loader.Cursor{Position: c.at}, mem)
					for i := 0; c.stop == 0 || i < c.stop; i++ {
						if _, err := read(l, run, mem); err != nil {
							break
						}
					}
					require.NoError(t, run.Close())
					require.NoError(t, l.Close())
					source.ended(t)
				})
			}
		}
	}
}

// The same for an Encoder of the user's own, whose iterator is left in all the ways.
func TestAnEncoderIsEncodedOrClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for stop := range 20 {
			source := &owners{n: 62}
			l, err := loader.NewIterable(source, 4, loader.Options{Workers: 2, Epochs: 1})
			require.NoError(t, err)
			mem := heap(t, l, 3)
			ctx, cancel := context.WithCancel(t.Context())
			run := l.Start(ctx, loader.Cursor{}, mem)
			for range stop {
				_, _ = read(l, run, mem)
			}
			if stop%2 == 0 {
				synctest.Wait() // all slots are full, and the iterator waits for another
			}
			cancel()
			require.NoError(t, run.Close())
			source.ended(t)
		}
	})
}

func (s *owners) Fields() []loader.Field { return numberFields }

func (s *owners) Samples(context.Context, int) iter.Seq2[loader.Encoder, error] {
	return func(yield func(loader.Encoder, error) bool) {
		s.seq(func(o *owner, err error) bool { return yield(o, err) })
	}
}

func (o *owner) Encode(ctx context.Context, row *loader.Row) error { return encodeOwner(ctx, o, row) }

// What goes wrong in a sample's Close is returned by the Close of who called it, and
// keeps no other sample from its end.
func TestAFailureToCloseASampleIsReported(t *testing.T) {
	broken := errors.New("broken handle")
	for name, fail := range map[string]func(n int) error{
		"error":  func(int) error { return broken },
		"panic":  func(int) error { panic(broken) },
		"goexit": func(int) error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &owners{n: 62, close: fail}
				l, err := loader.NewIterable(loader.FromSeqFunc(numberFields, each(iter.Seq2[*owner, error](source.seq)), encodeOwner),
					4, loader.Options{Workers: 1, Epochs: 1, Last: loader.Exact, Shard: loader.Shard{Index: 1, Count: 2}})
				require.NoError(t, err)
				mem := heap(t, l, 3)
				run := l.Start(t.Context(), loader.Cursor{}, mem)
				batches, err := readEpoch(l, run, mem)
				require.Equal(t, loader.ErrEpochEnd, err)
				require.Len(t, batches, 8)
				err = run.Close()
				if name == "goexit" {
					require.ErrorContains(t, err, "runtime.Goexit")
				} else {
					require.ErrorIs(t, err, broken)
				}
				var where *loader.Error
				require.ErrorAs(t, err, &where)
				require.Equal(t, loader.StageClose, where.Stage)
				require.Equal(t, 0, where.Sample)
				source.ended(t)
			})
		})
	}
}
