package compose_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/compose"
)

var xField = []loader.Field{{Name: "x", DType: dtype.Int64}}

// plus adds n to "x".
func plus(n int64) func(context.Context, *loader.Row, *loader.Row) error {
	return func(_ context.Context, in, out *loader.Row) error {
		return loader.Write(out, "x", loader.Value[int64](in, "x")[0]+n)
	}
}

func TestMapMakesOtherFields(t *testing.T) {
	pair := must(compose.Zip(column("a", 1, 2, 3), column("b", 10, 20, 30)))
	sum := must(compose.Map(pair, xField, func(_ context.Context, in, out *loader.Row) error {
		if out.Epoch() != in.Epoch() || out.Position() != in.Position() {
			return errors.New("another place")
		}
		return loader.Write(out, "x", loader.Value[int64](in, "a")[0]+loader.Value[int64](in, "b")[0])
	}))
	require.Equal(t, [][]int64{{11, 22, 33}, {11, 22, 33}}, contents(t, sum, 2))
	require.Equal(t, [][]int64{{16, 27, 38}}, contents(t, must(compose.Map(sum, xField, plus(5))), 1))
}

// A batch's Rand and that of what it is made from are independent, and the same in each run.
func TestMapHasRandomNumbersOfItsOwn(t *testing.T) {
	random := loader.FromFunc(100, xField, func(_ context.Context, i int, row *loader.Row) error {
		return loader.Write(row, "x", row.Rand().Int64())
	})
	difference := func(of func(in, out *loader.Row) int64) []int64 {
		return contents(t, must(compose.Map(random, xField, func(_ context.Context, in, out *loader.Row) error {
			return loader.Write(out, "x", loader.Value[int64](in, "x")[0]-of(in, out))
		})), 1)[0]
	}
	outer := difference(func(in, out *loader.Row) int64 { return out.Rand().Int64() })
	inner := difference(func(in, out *loader.Row) int64 { return in.Rand().Int64() })
	require.NotContains(t, outer, int64(0))
	require.NotContains(t, inner, int64(0))
	require.Equal(t, outer, difference(func(in, out *loader.Row) int64 { return out.Rand().Int64() }))
}

func TestFailuresOfAMapNameTheSample(t *testing.T) {
	eof := errors.New("wrapped")
	for name, c := range map[string]struct {
		f     func(context.Context, *loader.Row, *loader.Row) error
		check func(t *testing.T, err error)
	}{
		"an error": {func(context.Context, *loader.Row, *loader.Row) error { return errors.Join(io.EOF, eof) }, func(t *testing.T, err error) {
			require.ErrorIs(t, err, eof)
			require.ErrorIs(t, err, io.EOF)
		}},
		"a panic":  {func(context.Context, *loader.Row, *loader.Row) error { panic(eof) }, func(t *testing.T, err error) { require.ErrorIs(t, err, eof) }},
		"Goexit":   {func(context.Context, *loader.Row, *loader.Row) error { runtime.Goexit(); return nil }, func(t *testing.T, err error) { require.ErrorContains(t, err, "Goexit") }},
		"no write": {func(context.Context, *loader.Row, *loader.Row) error { return nil }, func(t *testing.T, err error) { require.ErrorAs(t, err, new(*loader.UnwrittenError)) }},
		"a name": {func(_ context.Context, in, _ *loader.Row) error { in.Bytes("z"); return nil }, func(t *testing.T, err error) {
			require.ErrorAs(t, err, new(*loader.FieldError))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			ds := must(compose.Map(values(upTo(0, 10)...), xField, func(ctx context.Context, in, out *loader.Row) error {
				if loader.Value[int64](in, "x")[0] == 7 {
					return c.f(ctx, in, out)
				}
				return plus(0)(ctx, in, out)
			}))
			ld, err := loader.New(ds, 2, loader.Options{Workers: 2})
			require.NoError(t, err)
			mem, err := loader.NewHeap(ld.Layout().Size(), 2)
			require.NoError(t, err)
			run := ld.Start(t.Context(), loader.Cursor{}, mem)
			for batch := range 4 {
				f, err := run.Next(t.Context())
				if batch == 3 {
					var at *loader.Error
					require.ErrorAs(t, err, &at)
					require.Equal(t, 7, at.Sample)
					c.check(t, err)
					break
				}
				require.NoError(t, err)
				mem.Put(f.Slot)
			}
			require.NoError(t, run.Close())
		})
	}
}

func TestASampleThatIsNotWrittenDoesNotReachTheMap(t *testing.T) {
	called := false
	silent := loader.FromFunc(3, xField, func(context.Context, int, *loader.Row) error { return nil })
	ds := must(compose.Map(silent, xField, func(context.Context, *loader.Row, *loader.Row) error { called = true; return nil }))
	s, err := loader.NewScratch(xField)
	require.NoError(t, err)
	require.ErrorAs(t, ds.Read(t.Context(), 0, s.Begin(new(loader.Row))), new(*loader.UnwrittenError))
	require.False(t, called)
}

// Samples of any length, and what becomes of them.
func TestMapAndRetryKeepLengths(t *testing.T) {
	ragged := []loader.Field{{Name: "tokens", DType: dtype.Uint16, Shape: []int{9}, Ragged: &loader.Ragged{}}}
	words := loader.FromFunc(9, ragged, func(_ context.Context, i int, row *loader.Row) error {
		return loader.Write(row, "tokens", make([]uint16, i)...)
	})
	longer := must(compose.Map(words, ragged, func(_ context.Context, in, out *loader.Row) error {
		return loader.Write(out, "tokens", append(slices.Clone(loader.Value[uint16](in, "tokens")), 1)...)
	}))
	lengths := must(compose.Map(must(compose.Retry(longer, compose.RetryOptions{})), xField, func(_ context.Context, in, out *loader.Row) error {
		return loader.Write(out, "x", int64(len(loader.Value[uint16](in, "tokens"))))
	}))
	require.Equal(t, [][]int64{upTo(1, 9)}, contents(t, lengths, 1))
}

func TestFilter(t *testing.T) {
	ten := values(upTo(0, 10)...)
	odd := must(compose.Filter(ten, func(i int) bool { return i%2 == 1 }))
	require.Equal(t, [][]int64{{1, 3, 5, 7, 9}}, contents(t, odd, 1))
	thousand := values(upTo(0, 1000)...)
	large, err := compose.FilterRead(t.Context(), thousand, func(_ context.Context, i int, sample *loader.Row) (bool, error) {
		x := loader.Value[int64](sample, "x")[0]
		return x > 400 && x%2 == 0, nil
	})
	require.NoError(t, err)
	want := []int64{}
	for x := int64(402); x < 1000; x += 2 {
		want = append(want, x)
	}
	require.Equal(t, [][]int64{want}, contents(t, large, 1))
	none, err := compose.FilterRead(t.Context(), values(), func(context.Context, int, *loader.Row) (bool, error) { return true, nil })
	require.NoError(t, err)
	require.Zero(t, none.Len())
}

func TestFilterReadTellsWhatFails(t *testing.T) {
	bad := errors.New("bad")
	thousand := values(upTo(0, 1000)...)
	for name, keep := range map[string]func(context.Context, int, *loader.Row) (bool, error){
		"an error": func(_ context.Context, i int, _ *loader.Row) (bool, error) {
			if i == 700 {
				return true, bad
			}
			return true, nil
		},
		"a panic": func(_ context.Context, i int, _ *loader.Row) (bool, error) {
			if i == 700 {
				panic(bad)
			}
			return true, nil
		},
	} {
		_, err := compose.FilterRead(t.Context(), thousand, keep)
		var at *loader.Error
		require.ErrorAs(t, err, &at, name)
		require.Equal(t, 700, at.Sample, name)
		require.ErrorIs(t, err, bad, name)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(bad)
	_, err := compose.FilterRead(ctx, thousand, func(context.Context, int, *loader.Row) (bool, error) { return true, nil })
	require.ErrorIs(t, err, bad)
}
