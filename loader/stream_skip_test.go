package loader_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/loader"
)

var errBad = errors.New("bad record")

// holed is a stream of which some records are left out: those of number 1 mod 5 are not
// wanted, 2 mod 7 can't be encoded, 3 mod 11 can't be read. sizes are what is left, by the
// reference.
func holed(sizes []int, every int) *cut {
	c := &cut{sizes: sizes, every: every}
	c.next = func(_ context.Context, pass loader.Pass, shard, n int) (loader.Encoder, bool, error) {
		if numberOf(pass.Epoch, shard, n)%11 == 3 {
			return nil, true, errBad
		}
		return nil, true, nil
	}
	c.encode = func(_ context.Context, number int) error {
		switch {
		case number%5 == 1:
			return fmt.Errorf("too short: %w", loader.Skip)
		case number%7 == 2:
			return errBad
		case number%13 == 4:
			panic("a mistake")
		}
		return nil
	}
	return c
}

func left(number int) bool {
	return number%11 != 3 && number%5 != 1 && number%7 != 2 && number%13 != 4
}

// What is left out shifts nobody but those behind it in its shard: the rest is read as if
// it were all that there is; and so it is behind every place.
func TestSamplesOfAStreamAreLeftOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		batchSize := rapid.IntRange(1, 4).Draw(t, "batch")
		c := holed(drawSizes(t, 40), rapid.IntRange(0, 3).Draw(t, "every"))
		o := loader.Options{Epochs: 1, Seed: 3, OnError: loader.SkipFailed, Workers: rapid.IntRange(1, 3).Draw(t, "workers")}
		l := newCut(t, c, batchSize, o)
		steps, err := readStates(t, l, loader.Cursor{}, slotCount(t))

		kept := make([][]int64, len(c.sizes)) // by shard
		n := 0
		for shard, size := range c.sizes {
			for i := range size {
				if left(numberOf(0, shard, i)) {
					kept[shard] = append(kept[shard], int64(numberOf(0, shard, i)))
					n++
				}
			}
		}
		if n == 0 {
			require.ErrorIs(t, err, loader.ErrNoSamples)
			return
		}
		require.NoError(t, err)
		var want []int64
		for i := 0; len(want) < n; i++ {
			for _, shard := range kept {
				if i < len(shard) {
					want = append(want, shard[i])
				}
			}
		}
		require.Equal(t, want, indices(batchesOf(steps)))
		stop := rapid.IntRange(0, len(steps)-1).Draw(t, "stop")
		rest, err := readStates(t, l, steps[stop].state.Cursor(), slotCount(t))
		require.NoError(t, err)
		requireSameStates(t, steps[stop+1:], rest)
		require.Equal(t, c.opened.Load(), c.closed.Load())
	})
}

func TestWhatWasLeftOutIsCountedAndTold(t *testing.T) {
	c := holed([]int{30}, 1)
	l := newCut(t, c, 4, loader.Options{Epochs: 1, OnError: loader.SkipFailed})
	mem := heap(t, l, 3)
	run := l.Start(t.Context(), loader.Cursor{}, mem)
	batches, err := readEpoch(l, run, mem)
	require.Equal(t, loader.ErrEpochEnd, err)
	require.NoError(t, run.Close())
	stats := run.Stats()
	require.EqualValues(t, 30-len(indices(batches)), stats.Skipped)
	require.Len(t, stats.FirstSkipped, 14)
	first := stats.FirstSkipped[0]
	require.ErrorIs(t, first.Err, loader.Skip)
	require.Equal(t, loader.Origin{File: "shard-0", Record: 1, Offset: 8}, first.Origin)
	require.EqualValues(t, 1, first.Position, "where the next one is")
	require.ErrorIs(t, stats.FirstSkipped[1].Err, errBad)
	require.Len(t, stats.Reading, 1)
}

// The limit is one of an epoch, whoever begins in the midst of it, and which sample is one
// too many does not depend on who came first.
func TestMoreThanMaxSkippedEndsTheRun(t *testing.T) {
	sizes := []int{30, 17, 30}
	unlimited := newCut(t, holed(sizes, 2), 4, loader.Options{Epochs: 1, OnError: loader.SkipFailed})
	all, err := readStates(t, unlimited, loader.Cursor{}, 3)
	require.NoError(t, err)
	skipped := total(sizes) - len(indices(batchesOf(all)))
	for limit := 1; limit <= skipped+1; limit++ {
		l := newCut(t, holed(sizes, 2), 4, loader.Options{Epochs: 1, OnError: loader.SkipFailed, MaxSkipped: limit})
		steps, err := readStates(t, l, loader.Cursor{}, 3)
		if limit >= skipped {
			require.NoError(t, err)
			require.Len(t, steps, len(all))
		} else {
			var tooMany *loader.SkipError
			require.ErrorAs(t, err, &tooMany)
			require.Equal(t, limit, tooMany.Max)
		}
		for _, stop := range steps {
			rest, again := readStates(t, l, stop.state.Cursor(), 3)
			require.Equal(t, err == nil, again == nil)
			if err != nil {
				require.Equal(t, err.Error(), again.Error())
			}
			require.Equal(t, len(steps)-stop.filled.Batch-1, len(rest))
		}
	}
}

func TestASkipThatIsNotDeclaredIsAFailure(t *testing.T) {
	c := &cut{sizes: []int{9}, every: 1}
	c.encode = func(_ context.Context, number int) error {
		if number == 6 {
			return loader.Skip
		}
		return nil
	}
	batches, err := readAll(t, newCut(t, c, 4, loader.Options{Epochs: 1}), loader.Cursor{}, 2)
	require.Len(t, batches, 1)
	require.ErrorContains(t, err, "Options.Skips")
	require.ErrorIs(t, err, loader.Skip)

	batches, err = readAll(t, newCut(t, c, 4, loader.Options{Epochs: 1, Skips: true}), loader.Cursor{}, 2)
	require.NoError(t, err)
	require.Equal(t, []int64{0, 1, 2, 3, 4, 5, 7, 8}, indices(batches))

	c.encode = func(context.Context, int) error { return errBad }
	_, err = readAll(t, newCut(t, c, 4, loader.Options{Epochs: 1, Skips: true}), loader.Cursor{}, 2)
	require.ErrorIs(t, err, errBad, "Skips is for Skip only")
	var failure *loader.Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, loader.StageEncode, failure.Stage)
	require.Equal(t, "shard-0", failure.Origin.File)
}

// A reader that fails for ever does not spin, and one that gets on may fail often.
func TestAReaderThatOnlyFailsEndsTheRun(t *testing.T) {
	for _, c := range []struct {
		name  string
		every int
		stuck bool
	}{{"without a mark", 0, true}, {"at one place", 1, true}, {"getting on", 1, false}} {
		t.Run(c.name, func(t *testing.T) {
			data := &cut{sizes: []int{5, 500}, every: c.every}
			data.next = func(_ context.Context, _ loader.Pass, shard, n int) (loader.Encoder, bool, error) {
				if shard == 1 && n < 400 {
					return nil, true, errBad
				}
				return nil, true, nil
			}
			var s loader.Stream = data
			if c.stuck && c.every > 0 {
				s = standing{data}
			}
			l, err := loader.NewStream(s, 4, loader.Options{Epochs: 1, OnError: loader.SkipFailed})
			require.NoError(t, err)
			batches, err := readAll(t, l, loader.Cursor{}, 2)
			if !c.stuck {
				require.NoError(t, err)
				require.Len(t, indices(batches), 105)
				return
			}
			require.ErrorContains(t, err, "the reader has failed 10")
			require.ErrorIs(t, err, errBad)
			require.Equal(t, data.opened.Load(), data.closed.Load())
		})
	}
}

// standing is a stream whose readers always give the same mark.
type standing struct{ *cut }

func (s standing) Open(ctx context.Context, pass loader.Pass, shard int, mark []byte) (loader.ShardReader, error) {
	r, err := s.cut.Open(ctx, pass, shard, mark)
	return standingReader{r}, err
}

type standingReader struct{ loader.ShardReader }

func (standingReader) AppendMark(dst []byte) ([]byte, error) { return append(dst, "7"...), nil }
