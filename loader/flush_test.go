package loader_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/loader"
)

// pausing gives numbers, and asks for a flush behind each group of so many.
func pausing(groups ...int) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		n := 0
		for _, group := range groups {
			for range group {
				if !yield(n, nil) {
					return
				}
				n++
			}
			if !yield(0, loader.Flush) {
				return
			}
		}
	}
}

// flushing makes a shard's reader of such numbers.
func flushing(groups ...int) *cut {
	c := &cut{sizes: []int{0}, every: 1}
	var flushes []bool
	for _, group := range groups {
		for range group {
			flushes = append(flushes, false)
		}
		flushes = append(flushes, true)
	}
	c.sizes[0] = len(flushes)
	c.next = func(_ context.Context, _ loader.Pass, _, n int) (loader.Encoder, bool, error) {
		if flushes[n] {
			return nil, true, loader.Flush
		}
		before := 0
		for _, flush := range flushes[:n] {
			if !flush {
				before++
			}
		}
		return c.number(before), true, nil
	}
	return c
}

// Whatever the groups and the batch size: a flush ends the batch under way, and one with
// nothing before it does nothing. A run goes on behind each batch.
func TestAFlushEndsTheBatchUnderWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		groups := rapid.SliceOfN(rapid.IntRange(0, 7), 1, 6).Draw(t, "groups")
		batchSize := rapid.IntRange(1, 4).Draw(t, "batch")
		var want []int
		for _, group := range groups {
			for ; group > 0; group -= batchSize {
				want = append(want, min(group, batchSize))
			}
		}
		if len(want) == 0 {
			return
		}
		o := loader.Options{Epochs: 1, Workers: rapid.IntRange(1, 3).Draw(t, "workers")}
		iterable, err := loader.NewIterable(loader.FromSeqFunc(numberFields, each(pausing(groups...)), encodeNumber), batchSize, o)
		require.NoError(t, err)
		once, err := loader.NewIterable(loader.FromSeq(numberFields, pausing(groups...), encodeNumber), batchSize, o)
		require.NoError(t, err)
		stream := newCut(t, flushing(groups...), batchSize, o)
		for name, l := range map[string]*loader.Loader{"iterable": iterable, "once": once, "stream": stream} {
			steps, err := readStates(t, l, loader.Cursor{}, slotCount(t))
			require.NoError(t, err, name)
			var rows []int
			var numbers []int64
			for i, s := range steps {
				rows = append(rows, s.filled.N)
				numbers = append(numbers, s.indices...)
				require.Equal(t, i, s.filled.Batch, name)
				require.EqualValues(t, len(numbers), s.state.Position, name)
			}
			require.Equal(t, want, rows, name)
			for i, n := range numbers {
				require.EqualValues(t, i, n, name)
			}
			require.NoError(t, l.Close())
			if l == once {
				continue
			}
			stop := rapid.IntRange(0, len(steps)-1).Draw(t, "stop")
			rest, err := readStates(t, l, steps[stop].state.Cursor(), slotCount(t))
			require.NoError(t, err, name)
			require.Len(t, rest, len(steps)-stop-1, name)
			for i, s := range rest {
				require.Equal(t, steps[stop+1+i].indices, s.indices, name)
			}
		}
	})
}

// A flushed batch comes while its source waits for more.
func TestAFlushedBatchDoesNotWait(t *testing.T) {
	for name, data := range map[string]func(more <-chan int) loader.Iterable{
		"FromSeq": func(more <-chan int) loader.Iterable {
			return loader.FromSeq(numberFields, oneByOne(more), encodeNumber)
		},
		"FromSeqFunc": func(more <-chan int) loader.Iterable {
			return loader.FromSeqFunc(numberFields, each(oneByOne(more)), encodeNumber)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				more := make(chan int)
				l, err := loader.NewIterable(data(more), 8, loader.Options{Epochs: 1})
				require.NoError(t, err)
				mem := heap(t, l, 2)
				run := l.Start(t.Context(), loader.Cursor{}, mem)
				for n := range 5 {
					more <- n
					b, err := read(l, run, mem)
					require.NoError(t, err)
					require.Equal(t, []int64{int64(n)}, b.indices)
				}
				close(more)
				_, err = read(l, run, mem)
				require.Equal(t, loader.ErrEpochEnd, err)
				require.NoError(t, run.Close())
				require.NoError(t, l.Close())
			})
		})
	}
}

// oneByOne gives what comes from a channel, each by itself.
func oneByOne(more <-chan int) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for n := range more {
			if !yield(n, nil) || !yield(0, loader.Flush) {
				return
			}
		}
	}
}

func TestAFlushThatCannotBeIsAFailure(t *testing.T) {
	seq := loader.FromSeqFunc(numberFields, each(pausing(3)), encodeNumber)
	o := loader.Options{Epochs: 1, Last: loader.Exact, Shard: loader.Shard{Count: 2}}
	l, err := loader.NewIterable(seq, 4, o)
	require.NoError(t, err)
	_, err = readAll(t, l, loader.Cursor{}, 2)
	require.ErrorContains(t, err, "a reader returned Flush: with 2 ranks")

	l = newCut(t, flushing(3), 4, loader.Options{Epochs: 1, Steps: 2})
	_, err = readAll(t, l, loader.Cursor{}, 2)
	require.ErrorContains(t, err, "a reader returned Flush under Options.Steps")

	wrapped := func(yield func(int, error) bool) { yield(0, fmt.Errorf("not mine: %w", loader.Flush)) }
	_, err = readAll(t, newStream(t, wrapped, 4, loader.Options{Epochs: 1}), loader.Cursor{}, 2)
	require.ErrorContains(t, err, "not mine")
	require.True(t, errors.Is(err, loader.Flush))
}
