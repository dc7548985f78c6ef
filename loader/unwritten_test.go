package loader_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// wide is n fields of one number each, and one that takes no bytes.
func wide(n int) (fields []loader.Field) {
	for i := range n {
		fields = append(fields, loader.Field{Name: fmt.Sprint("f", i), DType: dtype.Int32})
	}
	return append(fields, loader.Field{Name: "nothing", DType: dtype.Int32, Shape: []int{0}})
}

// writeAllBut writes n in every field but one.
func writeAllBut(forgotten, n int, row *loader.Row) {
	for i, f := range row.Layout().Fields() {
		if i != forgotten && f.RowBytes > 0 {
			loader.Column[int32](row, f.Name)[0] = int32(n)
		}
	}
}

// What Read, or encode, does not write is never another sample's: the sample fails,
// whichever of any number of fields was forgotten, and only a field of no bytes
// need not be asked for.
func TestAForgottenFieldFailsTheSample(t *testing.T) {
	const samples, bad = 40, 21
	items := make([]int, samples)
	for i := range items {
		items[i] = i
	}
	for _, fields := range []int{1, 2, 63, 64, 65, 130} {
		for _, forgotten := range []int{0, fields / 2, fields - 1} {
			write := func(_ context.Context, n int, row *loader.Row) error {
				if n == bad {
					writeAllBut(forgotten, n, row)
				} else {
					writeAllBut(-1, n, row)
				}
				return nil
			}
			o := loader.Options{Epochs: 2, Workers: 2}
			byNumber, err := loader.New(loader.FromSlice(items, wide(fields), write), 4, o)
			require.NoError(t, err)
			inOrder, err := loader.NewIterable(loader.FromSeqFunc(wide(fields), each(upTo(samples)), write), 4, o)
			require.NoError(t, err)
			for stage, l := range map[string]*loader.Loader{loader.StageRead: byNumber, loader.StageEncode: inOrder} {
				mem := heap(t, l, 2)
				run := l.Start(t.Context(), loader.Cursor{}, mem)
				for {
					f, err := run.Next(t.Context())
					if err == nil {
						require.Less(t, f.Batch, bad/4)
						mem.Put(f.Slot)
						continue
					}
					var where *loader.Error
					require.ErrorAs(t, err, &where)
					require.Equal(t, loader.Error{Batch: bad / 4, Sample: bad, Position: bad, Shard: -1, Stage: stage, Err: where.Err}, *where)
					var unwritten *loader.UnwrittenError
					require.ErrorAs(t, err, &unwritten)
					require.Equal(t, fmt.Sprint("f", forgotten), unwritten.Field.Name)
					break
				}
				require.NoError(t, run.Close())
			}
		}
	}
}

// What an attempt that failed has written does not count for the next one, be it
// the sample itself or a substitute.
func TestAnAttemptThatFailedDoesNotWriteForTheNext(t *testing.T) {
	corrupt := errors.New("corrupt")
	for _, forgetful := range []bool{false, true} {
		var substitutes int
		read := func(_ context.Context, n int, row *loader.Row) error {
			switch {
			case n == 5:
				writeAllBut(-1, n, row)
				return corrupt
			case row.Position() != 5:
				writeAllBut(-1, n, row)
				return nil
			}
			if substitutes++; forgetful || substitutes == 1 {
				writeAllBut(1, n, row) // what stands in for sample 5
			} else {
				writeAllBut(-1, n, row)
			}
			return nil
		}
		items := make([]int, 8)
		for i := range items {
			items[i] = i
		}
		l, err := loader.New(loader.FromSlice(items, wide(2), read),
			8, loader.Options{Epochs: 1, Workers: 1, OnError: loader.Substitute, Seed: 3})
		require.NoError(t, err)
		mem := heap(t, l, 1)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		f, err := run.Next(t.Context())
		if forgetful {
			var failed *loader.SubstituteError
			require.ErrorAs(t, err, &failed)
			require.ErrorIs(t, err, corrupt)
			var unwritten *loader.UnwrittenError
			require.ErrorAs(t, err, &unwritten)
			require.Equal(t, "f1", unwritten.Field.Name)
		} else {
			require.NoError(t, err)
			require.Len(t, f.Substituted, 1)
			require.GreaterOrEqual(t, f.Substituted[0].Attempts, 2)
			require.Equal(t, values[int32](l, f, "f0"), values[int32](l, f, "f1"))
		}
		require.NoError(t, run.Close())
	}
}

// A user's own Iterable is watched like the library's.
func TestAnEncoderThatForgetsAFieldFailsItsSample(t *testing.T) {
	l, err := loader.NewIterable(forgetful{}, 2, loader.Options{Epochs: 1})
	require.NoError(t, err)
	run := l.Start(t.Context(), loader.Cursor{}, heap(t, l, 1))
	_, err = run.Next(t.Context())
	var unwritten *loader.UnwrittenError
	require.ErrorAs(t, err, &unwritten)
	require.ErrorContains(t, err, "sample 1 (position 1): encode: field f1 int32 ")
	require.NoError(t, run.Close())
}

type forgetful struct{}

func (forgetful) Fields() []loader.Field { return wide(2) }

func (forgetful) Samples(context.Context, int) iter.Seq2[loader.Encoder, error] {
	return func(yield func(loader.Encoder, error) bool) {
		_ = yield(forgets(-1), nil) && yield(forgets(1), nil)
	}
}

type forgets int

func (f forgets) Encode(_ context.Context, row *loader.Row) error {
	writeAllBut(int(f), 7, row)
	return nil
}
