package loader_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// corrupt is a user's own type of error.
type corrupt struct{ index int }

func (c *corrupt) Error() string { return fmt.Sprintf("sample %d is corrupt", c.index) }

// failAt fails the samples listed.
func failAt(bad ...int) func(context.Context, int, *loader.Row) error {
	return func(_ context.Context, index int, _ *loader.Row) error {
		if slices.Contains(bad, index) {
			return &corrupt{index}
		}
		return nil
	}
}

func TestAFailureIsDeliveredAtItsPlaceWithTheUsersError(t *testing.T) {
	for name, sample := range map[string]int{"first": 0, "middle": 70, "last": 99} {
		t.Run(name, func(t *testing.T) {
			l := newNumbers(t, numbers{n: 100, before: failAt(sample)}, 10, loader.Options{Epochs: 2, Workers: 3})
			mem := heap(t, l, 4)
			run := l.Start(t.Context(), loader.Cursor{}, mem)
			batches, err := readEpoch(l, run, mem)
			require.Len(t, batches, sample/10, "the batches before it come first")

			var failure *loader.Error
			require.ErrorAs(t, err, &failure)
			require.Equal(t, 0, failure.Epoch)
			require.Equal(t, sample/10, failure.Batch)
			require.Equal(t, sample, failure.Sample)
			require.EqualValues(t, sample, failure.Position)
			require.Equal(t, loader.StageRead, failure.Stage)
			var own *corrupt
			require.ErrorAs(t, err, &own)
			require.Equal(t, sample, own.index)
			for range 3 {
				_, again := run.Next(t.Context())
				require.Equal(t, err, again, "and for ever after")
			}
			require.NoError(t, run.Close())
			require.Equal(t, 4, mem.Free())
		})
	}
}

func TestTheLowestPositionIsReportedWhicheverWorkerIsFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "n")
		bad := rapid.SliceOfN(rapid.IntRange(0, n-1), 1, 10).Draw(t, "bad")
		batchSize, o := rapid.IntRange(1, 20).Draw(t, "batch"), loader.Options{
			Shuffle: true, Seed: rapid.Uint64().Draw(t, "seed"),
			Workers: rapid.IntRange(1, 8).Draw(t, "workers"), Epochs: 1,
		}
		l := newNumbers(t, numbers{n: n, before: failAt(bad...)}, batchSize, o)
		order, first := l.Order(0), int64(0)
		for !slices.Contains(bad, order.At(first)) {
			first++
		}
		batches, err := readAll(t, l, loader.Cursor{}, rapid.IntRange(1, 4).Draw(t, "slots"))
		var failure *loader.Error
		require.ErrorAs(t, err, &failure)
		require.Equal(t, first, failure.Position)
		require.Equal(t, order.At(first), failure.Sample)
		require.Len(t, batches, int(first)/batchSize)
	})
}

func TestEndOfFileFromADatasetIsAFailure(t *testing.T) {
	eof := func(_ context.Context, index int, _ *loader.Row) error {
		if index == 5 {
			return io.EOF
		}
		return nil
	}
	l := newNumbers(t, numbers{n: 10, before: eof}, 2, loader.Options{Epochs: 1})
	batches, err := readAll(t, l, loader.Cursor{}, 2)
	require.Len(t, batches, 2)
	var failure *loader.Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, 5, failure.Sample)
	require.ErrorIs(t, err, io.EOF)
}

func TestAPanicBecomesAnErrorWithItsStack(t *testing.T) {
	explode := func(_ context.Context, index int, _ *loader.Row) error {
		if index == 12 {
			panic(&corrupt{index})
		}
		return nil
	}
	l := newNumbers(t, numbers{n: 20, before: explode}, 5, loader.Options{Epochs: 1, Workers: 2})
	batches, err := readAll(t, l, loader.Cursor{}, 2)
	require.Len(t, batches, 2)
	var failure *loader.Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, 12, failure.Sample)
	var caught *loader.PanicError
	require.ErrorAs(t, err, &caught)
	require.Contains(t, string(caught.Stack), "TestAPanicBecomesAnErrorWithItsStack")
	require.NotContains(t, err.Error(), "\n", "one line, with the place")
	require.Regexp(t, `panic: .* \(at .*failure_test\.go:\d+\)$`, err.Error())
	var own *corrupt
	require.ErrorAs(t, err, &own, "what was panicked with, if it is an error")
}

func TestASampleOfTheWrongTypeOrSizePanicsIntoAnError(t *testing.T) {
	wrong := func(_ context.Context, _ int, row *loader.Row) error {
		loader.Column[float32](row, "index")[0] = 1
		return nil
	}
	l := newNumbers(t, numbers{n: 1, before: wrong}, 1, loader.Options{Epochs: 1})
	_, err := readAll(t, l, loader.Cursor{}, 1)
	require.ErrorContains(t, err, "field index int64 asked for as float32")
}

func TestARaggedSampleIsNamed(t *testing.T) {
	ds := loader.FromSlice([][]float32{{1, 2, 3}, {4, 5, 6}, {7, 8, 9, 10}},
		[]loader.Field{{Name: "x", DType: dtype.Float32, Shape: []int{3}}},
		func(_ context.Context, x []float32, row *loader.Row) error { return loader.Write(row, "x", x...) })
	l, err := loader.New(ds, 3, loader.Options{Epochs: 1})
	require.NoError(t, err)
	run := l.Start(t.Context(), loader.Cursor{}, heap(t, l, 1))
	_, err = run.Next(t.Context())
	var failure *loader.Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, 2, failure.Sample)
	var size *loader.SizeError
	require.ErrorAs(t, err, &size)
	require.ErrorContains(t, err, "a value of 4 elements for field x float32[3], want 3")
	require.NoError(t, run.Close())
}

// testing's Fatal methods end the goroutine: the run must not hang on it, even
// with one worker and with claims of one sample, which slow samples make.
func TestGoexitInASampleIsAFailure(t *testing.T) {
	exit := func(_ context.Context, index int, _ *loader.Row) error {
		time.Sleep(time.Millisecond)
		if index >= 4 {
			runtime.Goexit()
		}
		return nil
	}
	for _, workers := range []int{1, 3} {
		for i, policy := range []loader.ErrorPolicy{loader.Fail, loader.Substitute, loader.Fail} {
			synctest.Test(t, func(t *testing.T) {
				l := newNumbers(t, numbers{n: 20, before: exit}, 4, loader.Options{
					Epochs: 1, Workers: workers, OnError: policy, ReadTimeout: time.Duration(i/2) * time.Hour,
				})
				batches, err := readAll(t, l, loader.Cursor{}, 1)
				require.Len(t, batches, 1)
				var failure *loader.Error
				require.ErrorAs(t, err, &failure)
				require.Equal(t, 4, failure.Sample)
				var exited *loader.GoexitError
				require.ErrorAs(t, err, &exited)
				require.Contains(t, string(exited.Stack), "TestGoexitInASampleIsAFailure")
				require.Regexp(t, `read: the goroutine was ended by runtime.Goexit \(at .*failure_test.go:\d+\)$`, err.Error())
			})
		}
	}
}

func TestSubstitutesKeepBatchesFullAndAreListed(t *testing.T) {
	o := loader.Options{Shuffle: true, Seed: 3, Epochs: 2, OnError: loader.Substitute, Workers: 1}
	bad := []int{3, 7}
	l := newNumbers(t, numbers{n: 20, before: failAt(bad...)}, 4, o)
	batches, err := readAll(t, l, loader.Cursor{}, 2)
	require.NoError(t, err)
	require.Len(t, batches, 10)
	replaced := 0
	for _, b := range batches {
		require.Equal(t, 4, b.filled.Valid)
		order := l.Order(b.filled.Epoch)
		substitute := map[int]int64{}
		for _, s := range b.filled.Substituted {
			require.Contains(t, bad, s.Sample)
			require.NotContains(t, bad, s.Substitute)
			require.Equal(t, b.filled.Position+int64(s.Row), s.Position)
			require.Equal(t, order.At(s.Position), s.Sample)
			require.Positive(t, s.Attempts)
			var own *corrupt
			require.ErrorAs(t, s.Err, &own)
			require.Equal(t, s.Sample, own.index)
			substitute[s.Row] = int64(s.Substitute)
			replaced++
		}
		for row, index := range b.indices {
			want, ok := substitute[row]
			if !ok {
				want = int64(order.At(b.filled.Position + int64(row)))
			}
			require.Equal(t, want, index)
			require.Equal(t, b.filled.Position+int64(row), b.positions[row], "no position shifts")
		}
	}
	require.Equal(t, 4, replaced)

	o.Workers = 5
	again, err := readAll(t, newNumbers(t, numbers{n: 20, before: failAt(bad...)}, 4, o), loader.Cursor{}, 4)
	require.NoError(t, err)
	require.Equal(t, batches, again, "substitutes do not depend on the workers")
	rest, err := readAll(t, newNumbers(t, numbers{n: 20, before: failAt(bad...)}, 4, o), batches[2].filled.After, 4)
	require.NoError(t, err)
	require.Equal(t, batches[3:], rest, "nor on where the run began")
}

func TestOneSubstituteTooManyEndsTheRun(t *testing.T) {
	bad := []int{2, 3, 9}
	for _, workers := range []int{1, 4} {
		l := newNumbers(t, numbers{n: 12, before: failAt(bad...)}, 4, loader.Options{
			Epochs: 2, OnError: loader.Substitute, MaxSubstituted: 2, Workers: workers,
		})
		batches, err := readAll(t, l, loader.Cursor{}, 3)
		require.Len(t, batches, 2)
		require.Len(t, batches[0].filled.Substituted, 2)
		var failure *loader.Error
		require.ErrorAs(t, err, &failure)
		require.Equal(t, 9, failure.Sample, "the third by position")
		var own *corrupt
		require.ErrorAs(t, err, &own)
	}
	l := newNumbers(t, numbers{n: 12, before: failAt(bad[:2]...)}, 4, loader.Options{
		Epochs: 5, OnError: loader.Substitute, MaxSubstituted: 2,
	})
	_, err := readAll(t, l, loader.Cursor{}, 3)
	require.NoError(t, err, "the number is for each epoch")
}

// Of a batch the last row fails first and the first last.
func TestSubstitutesAreCountedByPosition(t *testing.T) {
	for limit, want := range map[int]int{2: 2, 3: 3, 4: -1} {
		synctest.Test(t, func(t *testing.T) {
			before := func(ctx context.Context, index int, _ *loader.Row) error {
				time.Sleep(time.Duration(10-index) * time.Millisecond)
				return failAt(0, 1, 2, 3)(ctx, index, nil)
			}
			l := newNumbers(t, numbers{n: 8, before: before}, 4, loader.Options{
				Epochs: 1, OnError: loader.Substitute, MaxSubstituted: limit, Workers: 4,
			})
			batches, err := readAll(t, l, loader.Cursor{}, 1)
			if want < 0 {
				require.NoError(t, err)
				for row, s := range batches[0].filled.Substituted {
					require.Equal(t, row, s.Row)
				}
				return
			}
			var failure *loader.Error
			require.ErrorAs(t, err, &failure)
			require.Equal(t, want, failure.Sample)
		})
	}
}

func TestWhereEverySampleFailsSubstitutingEnds(t *testing.T) {
	l := newNumbers(t, numbers{n: 3, before: failAt(0, 1, 2)}, 3, loader.Options{OnError: loader.Substitute, Epochs: 1})
	_, err := readAll(t, l, loader.Cursor{}, 1)
	var failure *loader.Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, 0, failure.Sample)
	var both *loader.SubstituteError
	require.ErrorAs(t, err, &both)
	require.Error(t, both.Last)
	var own *corrupt
	require.ErrorAs(t, err, &own)
	require.Equal(t, 0, own.index)
}

func TestAStallNamesTheSampleAndShowsItsStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context, index int, _ *loader.Row) error {
			if index == 37 {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		l := newNumbers(t, numbers{n: 100, before: hang}, 10, loader.Options{
			Epochs: 1, StallTimeout: time.Second, Workers: 2,
		})
		mem := heap(t, l, 3)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		batches, err := readEpoch(l, run, mem)
		require.Len(t, batches, 3)
		var failure *loader.Error
		require.ErrorAs(t, err, &failure)
		require.Equal(t, 37, failure.Sample)
		require.Equal(t, 3, failure.Batch)
		require.Equal(t, loader.StageRead, failure.Stage)
		var stall *loader.StallError
		require.ErrorAs(t, err, &stall)
		require.Equal(t, time.Second, stall.Age)
		require.Contains(t, string(stall.Stack), "TestAStallNamesTheSampleAndShowsItsStack.func")
		require.NoError(t, run.Close())
		require.Equal(t, 3, mem.Free())
	})
}

// Of several samples that hang the first is named, and itself, not what was last
// read as a substitute.
func TestAStallNamesTheFirstSampleThatHangs(t *testing.T) {
	for range 5 { // which worker has which sample is left to chance
		synctest.Test(t, func(t *testing.T) {
			before := func(ctx context.Context, index int, _ *loader.Row) error {
				switch index {
				case 0, 1, 2:
					return &corrupt{index}
				case 3, 4, 5:
					<-ctx.Done()
				}
				return nil
			}
			l := newNumbers(t, numbers{n: 1 << 20, before: before}, 6, loader.Options{
				Epochs: 1, StallTimeout: time.Second, Workers: 6, OnError: loader.Substitute,
			})
			run := l.Start(t.Context(), loader.Cursor{}, heap(t, l, 1))
			_, err := run.Next(t.Context())
			var failure *loader.Error
			require.ErrorAs(t, err, &failure)
			require.Equal(t, 3, failure.Sample)
			require.NoError(t, run.Close())
		})
	}
}

// Many batches are open while the first is slow; their clocks start when it is
// done, and a consumer that keeps all slots is no stall.
func TestSlowIsNotStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(context.Context, int, *loader.Row) error {
			time.Sleep(900 * time.Millisecond)
			return nil
		}
		l := newNumbers(t, numbers{n: 6, before: slow}, 1, loader.Options{
			Epochs: 1, StallTimeout: time.Second, Workers: 1,
		})
		mem := heap(t, l, 3)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		var consumer sync.WaitGroup
		for i := range 6 {
			f, err := run.Next(t.Context())
			require.NoError(t, err, "batch %d", i)
			consumer.Go(func() {
				time.Sleep(10 * time.Second)
				mem.Put(f.Slot)
			})
		}
		consumer.Wait()
		require.NoError(t, run.Close())
	})
}

func TestAFailureBehindASlowBatchWaitsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := func(_ context.Context, index int, _ *loader.Row) error {
			if index == 0 {
				time.Sleep(time.Hour)
			}
			return failAt(3)(nil, index, nil)
		}
		l := newNumbers(t, numbers{n: 4, before: before}, 1, loader.Options{Epochs: 1, Workers: 4})
		batches, err := readAll(t, l, loader.Cursor{}, 4)
		require.Len(t, batches, 3)
		var own *corrupt
		require.True(t, errors.As(err, &own))
	})
}

// A panic that comes when the run is over is told by Close, but not where another sample would
// have been read in its place.
func TestALatePanicIsToldUnlessItIsNoFailure(t *testing.T) {
	for policy, told := range map[loader.ErrorPolicy]bool{loader.Fail: true, loader.Substitute: false} {
		synctest.Test(t, func(t *testing.T) {
			data := numbers{n: 8, before: func(ctx context.Context, index int, _ *loader.Row) error {
				if index == 5 {
					<-ctx.Done()
					panic("too late")
				}
				return nil
			}}
			l := newNumbers(t, data, 4, loader.Options{Workers: 1, OnError: policy})
			mem := heap(t, l, 2)
			run := l.Start(context.Background(), loader.Cursor{}, mem)
			_, err := read(l, run, mem)
			require.NoError(t, err)
			synctest.Wait()
			require.Equal(t, told, run.Close() != nil, "%v", policy)
			require.Equal(t, 2, mem.Free())
		})
	}
}
