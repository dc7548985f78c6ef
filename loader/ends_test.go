package loader_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
)

// errs is an error of a type that cannot be compared.
type errs []error

func (e errs) Error() string   { return fmt.Sprint([]error(e)) }
func (e errs) Unwrap() []error { return e }

// endings are errors of the user's that have to do with some Run's end: they may read from
// one Run to feed another.
func endings(own error) map[string]error {
	all := map[string]error{"io.EOF": io.EOF, "uncomparable": errs{own, loader.ErrEpochEnd}}
	for _, end := range []error{loader.ErrEpochEnd, loader.ErrEnd, loader.ErrClosed} {
		all[end.Error()] = end
		all["wrapped "+end.Error()] = fmt.Errorf("the inner run: %w", end)
		all["joined "+end.Error()] = errors.Join(own, end)
		all["deep "+end.Error()] = &loader.Error{Sample: 1, Err: fmt.Errorf("the inner run: %w", end)}
	}
	return all
}

func requireNoEnd(t *testing.T, err error) {
	require.Error(t, err)
	for _, end := range []error{loader.ErrEpochEnd, loader.ErrEnd, loader.ErrClosed} {
		require.NotErrorIs(t, err, end)
	}
}

func TestAnErrorThatWrapsAnEndIsAFailure(t *testing.T) {
	own := errors.New("the user's own")
	for name, ending := range endings(own) {
		for _, place := range []string{loader.StageRead, loader.StageEncode, loader.StageIterate, loader.StageSlot, "panic"} {
			t.Run(place+"/"+name, func(t *testing.T) {
				o := loader.Options{Workers: 2, Epochs: 3}
				at := func(where string, i int) error {
					if i == 4 && place == where {
						return ending
					}
					return nil
				}
				read := func(_ context.Context, i int, _ *loader.Row) error {
					if err := at("panic", i); err != nil {
						panic(err)
					}
					return at(loader.StageRead, i)
				}
				l := newNumbers(t, numbers{n: 10, before: read}, 2, o)
				if place == loader.StageEncode || place == loader.StageIterate {
					samples := func(yield func(int, error) bool) {
						for i := range 10 {
							if !yield(i, at(loader.StageIterate, i)) {
								return
							}
						}
					}
					var err error
					l, err = loader.NewIterable(loader.FromSeqFunc(numberFields, each(iter.Seq2[int, error](samples)), func(_ context.Context, i int, row *loader.Row) error {
						writeNumber(i, row)
						return at(loader.StageEncode, i)
					}), 2, o)
					require.NoError(t, err)
				}
				mem := &oddMemory{Heap: heap(t, l, 4)}
				mem.get = func(_ context.Context, n int, get func() (loader.Slot, error)) (loader.Slot, error) {
					if err := at(loader.StageSlot, n+1); err != nil { // the third's
						return loader.Slot{}, err
					}
					return get()
				}
				run := l.Start(t.Context(), loader.Cursor{}, mem)
				batches, err := readEpoch(l, run, mem.Heap)
				require.Equal(t, []int64{0, 1, 2, 3}, indices(batches))
				requireNoEnd(t, err)
				var failure *loader.Error
				require.ErrorAs(t, err, &failure)
				require.Equal(t, 2, failure.Batch)
				if errors.Is(ending, own) {
					require.ErrorIs(t, err, own)
				}
				if ending == io.EOF {
					require.ErrorIs(t, err, io.EOF)
				}
				require.Contains(t, err.Error(), ending.Error())
				_, again := run.Next(t.Context())
				require.Equal(t, err, again)
				require.Equal(t, err, run.Err())
				require.NoError(t, run.Close())
			})
		}
	}
}

// The cause of a context is the user's too: of the Run's, and of the caller's.
func TestACauseThatIsAnEndIsNone(t *testing.T) {
	own := errors.New("the user's own")
	for name, ending := range endings(own) {
		if ending == loader.ErrClosed {
			continue // and so it is
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				waits := func(ctx context.Context, i int, _ *loader.Row) error {
					if i >= 4 {
						<-ctx.Done()
					}
					return nil
				}
				l := newNumbers(t, numbers{n: 10, before: waits}, 2, loader.Options{Workers: 2, Epochs: 3})
				mem := heap(t, l, 4)
				ctx, cancel := context.WithCancelCause(t.Context())
				run := l.Start(ctx, loader.Cursor{}, mem)
				caller, giveUp := context.WithCancelCause(t.Context())
				giveUp(ending)
				_, err := run.Next(caller)
				requireNoEnd(t, err)
				require.NoError(t, run.Err(), "the run goes on")

				b, err := read(l, run, mem)
				require.NoError(t, err)
				require.Equal(t, []int64{0, 1}, b.indices)
				cancel(ending)
				_, err = run.Next(t.Context())
				requireNoEnd(t, err)
				require.Equal(t, err, run.Err())
				require.NoError(t, run.Close())
				require.Equal(t, 4, mem.Free())
			})
		})
	}
}
