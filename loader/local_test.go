package loader_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

var oneNumber = []loader.Field{{Name: "x", DType: dtype.Int64}}

// TestLocalIsKeptForAWorker reads with as many workers as made: each finds what it left, and
// no two have the same.
func TestLocalIsKeptForAWorker(t *testing.T) {
	const samples = 1000
	for _, workers := range []int{1, 4} {
		var made, read atomic.Int64
		type tally struct{ n int64 }
		var tallies loader.Local[tally]
		ds := loader.FromFunc(samples, numberFields, func(_ context.Context, index int, row *loader.Row) error {
			mine := tallies.Of(row)
			if mine.n == 0 {
				made.Add(1)
			}
			mine.n++ // the race detector finds two with the same
			read.Add(1)
			writeNumber(index, row)
			return nil
		})
		ld, err := loader.New(ds, 10, loader.Options{Workers: workers, Epochs: 1})
		require.NoError(t, err)
		batches, err := readAll(t, ld, loader.Cursor{}, 3)
		require.NoError(t, err)
		require.Len(t, batches, samples/10)
		require.EqualValues(t, samples, read.Load())
		require.GreaterOrEqual(t, made.Load(), int64(1))
		require.LessOrEqual(t, made.Load(), int64(workers))
	}
}

// TestLocalsAreApart asks for several in every order: each is its own, whatever was asked for
// before.
func TestLocalsAreApart(t *testing.T) {
	var numbers, others [12]loader.Local[int]
	var words loader.Local[string]
	s, err := loader.NewScratch(oneNumber)
	require.NoError(t, err)
	row := s.Begin(new(loader.Row))
	for round := range 4 {
		for i := range numbers {
			at := (i*5 + round) % len(numbers) // in another order each time
			require.Equal(t, round*(at+1), *numbers[at].Of(row))
			require.Equal(t, -round, *others[at].Of(row))
			require.Len(t, *words.Of(row), round*len(numbers)+i)
			*numbers[at].Of(row) += at + 1
			*others[at].Of(row)--
			*words.Of(row) += "x"
		}
	}
	another, err := loader.NewScratch(oneNumber)
	require.NoError(t, err)
	require.Zero(t, *numbers[3].Of(another.Begin(row)), "another row has its own")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for i := range numbers {
			*numbers[i].Of(row)++
			*others[len(others)-1-i].Of(row)++
		}
	}))
}
