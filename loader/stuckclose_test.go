package loader_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
)

// stuckOwners are n samples, and the Close of one of them returns only with release.
func stuckOwners(n, stuck int) (source *owners, release func()) {
	done := make(chan struct{})
	return &owners{n: n, close: func(n int) error {
		if n == stuck {
			<-done
		}
		return nil
	}}, func() { close(done) }
}

// requireStuck requires that err is about the Close of one sample.
func requireStuck(t *testing.T, err error, sample, batch int, grace time.Duration) {
	t.Helper()
	var stuck *loader.StuckError
	require.ErrorAs(t, err, &stuck)
	require.Equal(t, loader.StageClose, stuck.Stage)
	require.Equal(t, sample, stuck.Sample)
	require.EqualValues(t, sample, stuck.Position)
	require.Equal(t, batch, stuck.Batch)
	require.Equal(t, grace, stuck.Grace)
	require.Contains(t, string(stuck.Stack), "stuckOwners")
}

// A sample's Close that does not return is reported after the grace, whoever's the
// sample is and however the run ends. Meanwhile it holds up neither a batch nor a
// failure, and no slot, since it writes to none; later the other samples are closed.
func TestACloseThatDoesNotReturnIsReported(t *testing.T) {
	const grace = 2 * time.Second
	bad := errors.New("bad")
	for name, c := range map[string]struct {
		o     loader.Options
		at    int64
		stuck int
		batch int
		bad   int   // the sample that encode fails for, -1 if none
		want  int   // batches before
		end   error // what Next returns then, nil if it is not asked
	}{
		"another rank's":     {o: loader.Options{Last: loader.Drop, Shard: loader.Shard{Count: 2}}, stuck: 6, bad: -1, want: 2},
		"the ranks' ends":    {o: loader.Options{Last: loader.Exact, Shard: loader.Shard{Count: 2}}, stuck: 60, batch: 7, bad: -1, want: 8, end: loader.ErrEpochEnd},
		"before the cursor":  {at: 30, stuck: 17, batch: 4, bad: -1, want: 3},
		"read ahead":         {stuck: 16, batch: 4, bad: -1, want: 1},
		"behind a failure":   {stuck: 6, batch: 1, bad: 5, want: 1, end: bad},
		"of the dropped end": {o: loader.Options{Last: loader.Drop}, stuck: 61, batch: 15, bad: 60, want: 15, end: loader.ErrEpochEnd},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, release := stuckOwners(62, c.stuck)
				encode := func(ctx context.Context, o *owner, row *loader.Row) error {
					if o.n == c.bad {
						time.Sleep(time.Nanosecond) // until what can be given is given
						o.ends.Add(1)
						return bad
					}
					return encodeOwner(ctx, o, row)
				}
				o := c.o
				o.Workers, o.Epochs, o.GracePeriod = 1, 1, grace
				l, err := loader.NewIterable(loader.FromSeqFunc(numberFields, each(iter.Seq2[*owner, error](source.seq)), encode), 4, o)
				require.NoError(t, err)
				mem := newLedger(t, l, 3)
				run := l.Start(t.Context(), loader.Cursor{Position: c.at}, mem)
				began := time.Now()
				for range c.want {
					_, err := read(l, run, mem.Heap)
					require.NoError(t, err)
				}
				if c.end != nil {
					_, err := run.Next(t.Context())
					require.ErrorIs(t, err, c.end)
				}
				synctest.Wait()
				require.LessOrEqual(t, time.Since(began), time.Duration(1))
				began = time.Now()
				err = run.Close()
				require.Equal(t, grace, time.Since(began))
				requireStuck(t, err, c.stuck, c.batch, grace)
				require.Equal(t, 3, mem.Free())
				require.Empty(t, mem.quarantined)
				release()
				synctest.Wait()
				source.ended(t)
			})
		})
	}
}

// A stall behind such a Close, when the iterator would outrun it, names it.
func TestAStallInACloseIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, release := stuckOwners(1000, 6)
		l, err := loader.NewIterable(loader.FromSeqFunc(numberFields, each(iter.Seq2[*owner, error](source.seq)), encodeOwner),
			4, loader.Options{Workers: 2, Epochs: 1, Last: loader.Drop, Shard: loader.Shard{Count: 2},
				StallTimeout: time.Minute, GracePeriod: time.Second})
		require.NoError(t, err)
		mem := heap(t, l, 3)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		began := time.Now()
		_, err = readEpoch(l, run, mem)
		require.Equal(t, time.Minute, time.Since(began))
		require.Less(t, len(source.given), 100, "what is open at once has a limit")
		var where *loader.Error
		require.ErrorAs(t, err, &where)
		require.Equal(t, loader.StageClose, where.Stage)
		require.Equal(t, 6, where.Sample)
		var stall *loader.StallError
		require.ErrorAs(t, err, &stall)
		require.Contains(t, string(stall.Stack), "stuckOwners")
		requireStuck(t, run.Close(), 6, 0, time.Second)
		release()
		synctest.Wait()
		source.ended(t)
	})
}

// A Close that is only slow holds the iterator back, and loses nothing.
func TestASlowCloseHoldsTheIteratorBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &owners{n: 400, close: func(int) error { time.Sleep(time.Second); return nil }}
		l, err := loader.NewIterable(loader.FromSeqFunc(numberFields, each(iter.Seq2[*owner, error](source.seq)), encodeOwner),
			4, loader.Options{Workers: 2, Epochs: 1, Last: loader.Drop, Shard: loader.Shard{Index: 1, Count: 2}, GracePeriod: time.Minute})
		require.NoError(t, err)
		batches, err := readAll(t, l, loader.Cursor{}, 3)
		require.NoError(t, err)
		require.Len(t, batches, 50)
		source.ended(t)
	})
}

// A source of one pass, too, ends in the grace. Who tells it what is delivered waits
// for no Close.
func TestACloseOfASourceOfOnePassThatDoesNotReturnIsReported(t *testing.T) {
	const grace = 2 * time.Second
	t.Run("read ahead", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			source, release := stuckOwners(62, 16)
			l, mem := onceOf(t, source, encodeOwner, grace)
			run := l.Start(t.Context(), loader.Cursor{}, mem)
			_, err := read(l, run, mem)
			require.NoError(t, err)
			synctest.Wait()
			require.NoError(t, run.Close())
			began := time.Now()
			err = l.Close()
			require.Equal(t, grace, time.Since(began))
			requireStuck(t, err, 16, 4, grace)
			release()
			synctest.Wait()
			source.ended(t)
		})
	})
	t.Run("delivered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			source, release := stuckOwners(6, 5)
			bad := func(ctx context.Context, o *owner, row *loader.Row) error {
				if o.n == 4 {
					time.Sleep(time.Nanosecond) // until the iterator has ended
					o.ends.Add(1)
					return errors.New("bad")
				}
				return encodeOwner(ctx, o, row)
			}
			l, mem := onceOf(t, source, bad, grace)
			run := l.Start(t.Context(), loader.Cursor{}, mem)
			began := time.Now()
			batches, err := readEpoch(l, run, mem) // without the end of the iterator, which is dropped
			require.Equal(t, loader.ErrEpochEnd, err)
			require.Len(t, batches, 1)
			require.NoError(t, run.Close())
			require.LessOrEqual(t, time.Since(began), time.Duration(1))
			began = time.Now()
			err = l.Close()
			require.Equal(t, grace, time.Since(began))
			requireStuck(t, err, 5, 1, grace)
			release()
			synctest.Wait()
			source.ended(t)
		})
	})
	t.Run("given too late", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			source, release := stuckOwners(5, 4)
			last := make(chan struct{})
			seq := func(yield func(*owner, error) bool) {
				source.seq(func(o *owner, err error) bool {
					if o.n == 4 {
						<-last
					}
					return yield(o, err)
				})
			}
			l, err := loader.NewIterable(loader.FromSeq(numberFields, seq, encodeOwner),
				4, loader.Options{Workers: 1, GracePeriod: grace})
			require.NoError(t, err)
			mem := heap(t, l, 2)
			run := l.Start(t.Context(), loader.Cursor{}, mem)
			_, err = read(l, run, mem)
			require.NoError(t, err)
			require.NoError(t, run.Close())
			began := time.Now()
			time.AfterFunc(time.Second, func() { close(last) })
			err = l.Close()
			require.Equal(t, grace, time.Since(began))
			requireStuck(t, err, 4, 1, grace)
			release()
			synctest.Wait()
			source.ended(t)
		})
	})
}

// onceOf is a Loader of a source of one pass, whose last batch is dropped.
func onceOf(t *testing.T, source *owners, encode func(context.Context, *owner, *loader.Row) error, grace time.Duration) (*loader.Loader, *loader.Heap) {
	l, err := loader.NewIterable(loader.FromSeq(numberFields, iter.Seq2[*owner, error](source.seq), encode),
		4, loader.Options{Workers: 1, Last: loader.Drop, GracePeriod: grace})
	require.NoError(t, err)
	return l, heap(t, l, 3)
}

// A failure of a Close that nobody is there to tell is the Loader's, with its place.
func TestAFailureToCloseASampleOfOnePassIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken handle")
		source := &owners{n: 62, close: func(int) error { return broken }}
		l, mem := onceOf(t, source, encodeOwner, time.Second)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		synctest.Wait() // the slots are full
		require.NoError(t, run.Close())
		err := l.Close()
		require.ErrorIs(t, err, broken)
		var where *loader.Error
		require.ErrorAs(t, err, &where)
		require.Equal(t, loader.StageClose, where.Stage)
		require.Equal(t, 3, where.Batch)
		require.Equal(t, 12, where.Sample)
		require.EqualValues(t, 12, where.Position)
		source.ended(t)
	})
}

// shared is a sample without end: it can be encoded and closed for ever.
type shared struct{}

func (*shared) Close() error { return nil }

func (*shared) Encode(_ context.Context, row *loader.Row) error {
	writeNumber(0, row)
	return nil
}

func (*shared) Fields() []loader.Field { return numberFields }

func (s *shared) Samples(context.Context, int) iter.Seq2[loader.Encoder, error] {
	return func(yield func(loader.Encoder, error) bool) {
		for yield(s, nil) {
		}
	}
}

func TestDiscardingSamplesAllocatesNothingInSteadyState(t *testing.T) {
	l, err := loader.NewIterable(new(shared), 64, loader.Options{Workers: 1, Last: loader.Drop, Shard: loader.Shard{Count: 2}})
	require.NoError(t, err)
	mem := heap(t, l, 2)
	run := l.Start(t.Context(), loader.Cursor{}, mem)
	next := func() {
		f, err := run.Next(context.Background())
		if err != nil {
			panic(err)
		}
		mem.Put(f.Slot)
	}
	for range 200 {
		next()
	}
	require.Zero(t, testing.AllocsPerRun(1000, next))
	require.NoError(t, run.Close())
}
