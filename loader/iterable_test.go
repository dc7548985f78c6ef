package loader_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/loader"
)

// upTo gives 0 to n-1 each time it is ranged over.
func upTo(n int) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i := range n {
			if !yield(i, nil) {
				return
			}
		}
	}
}

// each is seq in every pass.
func each[S any](seq iter.Seq2[S, error]) func(context.Context, loader.Pass) iter.Seq2[S, error] {
	return func(context.Context, loader.Pass) iter.Seq2[S, error] { return seq }
}

func encodeNumber(_ context.Context, n int, row *loader.Row) error {
	writeNumber(n, row)
	return nil
}

func newStream(t require.TestingT, seq iter.Seq2[int, error], batchSize int, o loader.Options) *loader.Loader {
	l, err := loader.NewIterable(loader.FromSeqFunc(numberFields, each(seq), encodeNumber), batchSize, o)
	require.NoError(t, err)
	return l
}

func TestAnIterableIsTheDatasetOfTheSameSamples(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, batchSize, o := drawWorld(t)
		if o.Last == loader.Pad {
			o.Last = loader.Exact
		}
		o.Shuffle, o.Epochs = false, 2
		for rank := range o.Shard.Count {
			o.Shard.Index = rank
			want, err := readAll(t, newNumbers(t, numbers{n: n}, batchSize, o), loader.Cursor{}, 2)
			require.NoError(t, err)
			for i := range want {
				want[i].filled.LastOfEpoch = false // an iterable cannot know
			}
			l := newStream(t, upTo(n), batchSize, o)
			got, err := readAll(t, l, loader.Cursor{}, slotCount(t))
			require.NoError(t, err)
			require.Equal(t, want, got)

			stop := rapid.IntRange(0, len(want)-1).Draw(t, "stop")
			rest, err := readAll(t, l, want[stop].filled.After, slotCount(t))
			require.NoError(t, err)
			require.Equal(t, want, append(want[:stop+1:stop+1], rest...))
		}
	})
}

func TestWorkersDoNotMultiplyAnIterable(t *testing.T) {
	l := newStream(t, upTo(10), 3, loader.Options{Workers: 4, Epochs: 1})
	batches, err := readAll(t, l, loader.Cursor{}, 4)
	require.NoError(t, err)
	require.Equal(t, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, indices(batches))
	_, known := l.Batches()
	require.False(t, known)
}

func TestTheTailOfAnIterableIsDelivered(t *testing.T) {
	batches, err := readAll(t, newStream(t, upTo(130), 64, loader.Options{Epochs: 1}), loader.Cursor{}, 2)
	require.NoError(t, err)
	require.Len(t, batches, 3)
	require.Equal(t, 2, batches[2].filled.N)
	require.Equal(t, loader.Cursor{Position: 130}, batches[2].filled.After)
}

func TestAnIteratorThatCannotBeginAgainIsReported(t *testing.T) {
	used := false
	once := func(yield func(int, error) bool) {
		if used {
			return
		}
		used = true
		upTo(5)(yield)
	}
	l := newStream(t, once, 2, loader.Options{Epochs: 2})
	batches, err := readAll(t, l, loader.Cursor{}, 2)
	require.Len(t, batches, 3)
	var failure *loader.Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, 1, failure.Epoch)
	require.Equal(t, loader.StageIterate, failure.Stage)
	require.ErrorIs(t, err, loader.ErrNoSamples)
}

func TestTooShortIteratorsAreReported(t *testing.T) {
	_, err := readAll(t, newStream(t, upTo(3), 4, loader.Options{Last: loader.Drop, Epochs: 1}), loader.Cursor{}, 2)
	require.ErrorIs(t, err, loader.ErrTooFewSamples)
	_, err = readAll(t, newStream(t, upTo(3), 4, loader.Options{Epochs: 1}), loader.Cursor{Position: 4}, 2)
	require.ErrorContains(t, err, "the iterator gave 3 samples where it is to go on from 4")
}

func TestFailuresOfAnIterableComeAtTheirPlace(t *testing.T) {
	broken := errors.New("broken pipe")
	stopAt := func(n int, end func(yield func(int, error) bool)) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			for i := range n {
				if !yield(i, nil) {
					return
				}
			}
			end(yield)
		}
	}
	for name, c := range map[string]struct {
		end   func(yield func(int, error) bool)
		check func(t *testing.T, err error)
	}{
		"error": {
			func(yield func(int, error) bool) { yield(0, broken) },
			func(t *testing.T, err error) { require.ErrorIs(t, err, broken) },
		},
		"panic": {
			func(func(int, error) bool) { panic(broken) },
			func(t *testing.T, err error) {
				var caught *loader.PanicError
				require.ErrorAs(t, err, &caught)
				require.ErrorIs(t, err, broken)
				require.Contains(t, string(caught.Stack), "TestFailuresOfAnIterableComeAtTheirPlace")
			},
		},
		"goexit": {
			func(func(int, error) bool) { runtime.Goexit() },
			func(t *testing.T, err error) { require.ErrorContains(t, err, "runtime.Goexit") },
		},
	} {
		for _, at := range []int{0, 7, 8, 9} { // before the first, within a batch, between two
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := newStream(t, stopAt(at, c.end), 4, loader.Options{Epochs: 1, Workers: 2})
					batches, err := readAll(t, l, loader.Cursor{}, 3)
					require.Len(t, batches, at/4)
					var failure *loader.Error
					require.ErrorAs(t, err, &failure)
					require.Equal(t, at, failure.Sample)
					require.Equal(t, at/4, failure.Batch)
					require.Equal(t, loader.StageIterate, failure.Stage)
					c.check(t, err)
				})
			})
		}
	}
}

func TestAnEncodeThatFailsComesBeforeTheIteratorsLaterFailure(t *testing.T) {
	seq := func(yield func(int, error) bool) {
		for i := range 6 {
			if !yield(i, nil) {
				return
			}
		}
		yield(0, errors.New("later"))
	}
	encode := func(ctx context.Context, n int, row *loader.Row) error {
		if n == 5 {
			return &corrupt{n}
		}
		return encodeNumber(ctx, n, row)
	}
	l, err := loader.NewIterable(loader.FromSeqFunc(numberFields, each(seq), encode), 8, loader.Options{Epochs: 1})
	require.NoError(t, err)
	_, err = readAll(t, l, loader.Cursor{}, 1)
	var failure *loader.Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, 5, failure.Sample)
	require.Equal(t, loader.StageEncode, failure.Stage)
	var own *corrupt
	require.ErrorAs(t, err, &own)
}

func TestAnIteratorThatHangsIsNamedAsTheStage(t *testing.T) {
	for _, n := range []int{6, 8} { // within a batch, and between two
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			seq := func(yield func(int, error) bool) {
				upTo(n)(yield)
				<-release
			}
			l := newStream(t, seq, 4, loader.Options{Epochs: 1, StallTimeout: time.Second, GracePeriod: time.Second})
			mem := newLedger(t, l, 3)
			run := l.Start(t.Context(), loader.Cursor{}, mem)
			batches, err := readEpoch(l, run, mem.Heap)
			require.Len(t, batches, n/4)
			var failure *loader.Error
			require.ErrorAs(t, err, &failure)
			require.Equal(t, loader.StageIterate, failure.Stage)
			require.Equal(t, n, failure.Sample)
			var stall *loader.StallError
			require.ErrorAs(t, err, &stall)
			require.Equal(t, time.Second, stall.Age)
			require.Contains(t, string(stall.Stack), "TestAnIteratorThatHangsIsNamedAsTheStage")

			err = run.Close()
			var stuck *loader.StuckError
			require.ErrorAs(t, err, &stuck)
			require.Equal(t, loader.StageIterate, stuck.Stage)
			require.Empty(t, mem.quarantined, "an iterator writes to no slot")
			require.Equal(t, 3, mem.Free())
			close(release)
			synctest.Wait()
			require.Equal(t, 3, mem.Free())
		})
	}
}

func TestAnIteratorIsStoppedByItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := loader.NewIterable(waiting{}, 4, loader.Options{})
		require.NoError(t, err)
		mem := heap(t, l, 2)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		synctest.Wait()
		require.NoError(t, run.Close())
		require.Equal(t, 2, mem.Free())
	})
}

// waiting is an Iterable written by hand, which has nothing to give.
type waiting struct{}

func (waiting) Fields() []loader.Field { return numberFields }

func (waiting) Samples(ctx context.Context, _ int) iter.Seq2[loader.Encoder, error] {
	return func(yield func(loader.Encoder, error) bool) {
		<-ctx.Done()
		yield(nil, ctx.Err())
	}
}

func TestAnEndlessIteratorIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endless := func(yield func(int, error) bool) {
			for i := 0; yield(i, nil); i++ {
			}
		}
		l := newStream(t, endless, 4, loader.Options{Workers: 3})
		mem := heap(t, l, 3)
		for i := range 300 {
			run := l.Start(t.Context(), loader.Cursor{Position: int64(i)}, mem)
			for range i % 4 {
				b, err := read(l, run, mem)
				require.NoError(t, err)
				require.EqualValues(t, b.filled.Position, b.indices[0])
			}
			require.NoError(t, run.Close())
			require.Equal(t, 3, mem.Free())
		}
	})
}

func TestAnIterableAllocatesNothingInSteadyState(t *testing.T) {
	endless := func(yield func(int, error) bool) {
		for i := 0; yield(i, nil); i++ {
		}
	}
	l := newStream(t, endless, 16, loader.Options{Workers: 1})
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
	// Samples go through a sync.Pool, which the collector empties now and then
	// and the race detector at random.
	require.Less(t, testing.AllocsPerRun(1000, next), 16.0)
	require.NoError(t, run.Close())
}
