package loader_test

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// Whoever made a dataset of fields may change them afterwards, shapes included.
func TestADatasetSharesNoFieldWithItsCaller(t *testing.T) {
	declared := func() []loader.Field {
		return []loader.Field{{Name: "tokens", DType: dtype.Uint16, Shape: []int{8}, Ragged: &loader.Ragged{Length: "length"}}}
	}
	none := func(yield func(int, error) bool) {}
	encode := func(context.Context, int, *loader.Row) error { return nil }
	for name, make := range map[string]func([]loader.Field) interface{ Fields() []loader.Field }{
		"FromFunc": func(f []loader.Field) interface{ Fields() []loader.Field } { return loader.FromFunc(1, f, encode) },
		"FromSlice": func(f []loader.Field) interface{ Fields() []loader.Field } {
			return loader.FromSlice([]int{1}, f, encode)
		},
		"FromSeq": func(f []loader.Field) interface{ Fields() []loader.Field } { return loader.FromSeq(f, none, encode) },
		"FromSeqFunc": func(f []loader.Field) interface{ Fields() []loader.Field } {
			return loader.FromSeqFunc(f, func(context.Context, loader.Pass) iter.Seq2[int, error] { return none }, encode)
		},
	} {
		t.Run(name, func(t *testing.T) {
			given := declared()
			ds := make(given)
			given[0].Shape[0], given[0].Ragged.Length, given[0].Name = 1, "", "other"
			require.Equal(t, declared(), ds.Fields())
		})
	}
}

// Where all rows of a batch that is filled up are replaced, there are more substitutes than
// samples, and a Run goes on from there.
func TestSubstitutesOfAPaddedBatchAreAPlace(t *testing.T) {
	for _, rank := range []int{0, 1} {
		// Of the 32 rows of both ranks 23 only fill up the batch. What a row is to have fails.
		var tried sync.Map
		l, err := loader.New(numbers{n: 9, before: func(_ context.Context, index int, row *loader.Row) error {
			if _, again := tried.LoadOrStore(row.Position(), true); !again {
				return errors.New("bad")
			}
			return nil
		}}, 16, loader.Options{Epochs: 1, Last: loader.Pad, OnError: loader.Substitute, MaxSubstituted: 100, Shard: loader.Shard{Index: rank, Count: 2}})
		require.NoError(t, err)
		mem := heap(t, l, 2)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		b, err := read(l, run, mem)
		require.NoError(t, err)
		require.Greater(t, b.filled.After.Substituted, 9)
		require.NoError(t, run.Close())

		run = l.Start(t.Context(), b.filled.After, mem)
		_, err = run.Next(t.Context())
		require.Equal(t, loader.ErrEpochEnd, err)
		require.NoError(t, run.Close())
		wrong := b.filled.After
		wrong.Substituted = 9 + 2*16
		run = l.Start(t.Context(), wrong, mem)
		_, err = run.Next(t.Context())
		require.ErrorContains(t, err, "no more substitutes than rows")
		require.NoError(t, run.Close())
	}
}
