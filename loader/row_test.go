package loader_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// A field that a sample doesn't have, or not of that type, fails the sample in one line
// that tells what there is.
func TestAFieldThatThereIsNotIsNamed(t *testing.T) {
	const absent = `read: no field "inedx"; a sample has index int64, epoch int32, position int64, random uint64, pixels uint8[3], nothing float32[0 4]`
	for name, c := range map[string]struct {
		ask  func(row *loader.Row) error
		want string
	}{
		"bytes":        {func(row *loader.Row) error { row.Bytes("inedx"); return nil }, absent},
		"column":       {func(row *loader.Row) error { loader.Column[int64](row, "inedx"); return nil }, absent},
		"value":        {func(row *loader.Row) error { return loader.Write(row, "inedx", int64(1)) }, absent},
		"typed column": {func(row *loader.Row) error { loader.Column[int32](row, "index"); return nil }, "read: field index int64 asked for as int32"},
		"typed value":  {func(row *loader.Row) error { return loader.Write(row, "index", float64(1)) }, "read: field index int64 asked for as float64"},
	} {
		t.Run(name, func(t *testing.T) {
			wrong := func(_ context.Context, _ int, row *loader.Row) error { return c.ask(row) }
			l := newNumbers(t, numbers{n: 1, before: wrong}, 1, loader.Options{Epochs: 1})
			_, err := readAll(t, l, loader.Cursor{}, 1)
			var asked *loader.FieldError
			require.ErrorAs(t, err, &asked)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
			require.NotContains(t, err.Error(), "panic")
			if strings.Contains(name, "value") {
				return // it is returned, and may be wrapped
			}
			require.Regexp(t, `\(at .*row_test\.go:\d+\)$`, err.Error())
		})
	}
}

// However many fields there are, the message can be read.
func TestManyFieldsAreNotAllNamed(t *testing.T) {
	fields := wide(1000)
	l, err := loader.New(loader.FromFunc(1, fields, func(_ context.Context, _ int, row *loader.Row) error {
		return loader.Write(row, "f1000", int32(0))
	}), 1, loader.Options{Epochs: 1})
	require.NoError(t, err)
	run := l.Start(t.Context(), loader.Cursor{}, heap(t, l, 1))
	defer func() { require.NoError(t, run.Close()) }()
	_, err = run.Next(t.Context())
	require.ErrorContains(t, err, "f18 int32, f19 int32, and 981 more")
}

// Fields are found by their names in whatever order they are asked for, and again.
func TestFieldsAreFoundInAnyOrder(t *testing.T) {
	for _, n := range []int{1, 3, 8, 9, 200} {
		orders := rand.New(rand.NewPCG(1, uint64(n)))
		read := func(_ context.Context, i int, row *loader.Row) error {
			for _, f := range orders.Perm(n) {
				if err := loader.Write(row, fmt.Sprint("f", f), int32(i*n+f)); err != nil {
					return err
				}
			}
			loader.Column[int32](row, "f0")[0]++
			return nil
		}
		l, err := loader.New(loader.FromFunc(20, wide(n), read), 20, loader.Options{Workers: 1, Epochs: 1})
		require.NoError(t, err)
		mem := heap(t, l, 1)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		b, err := run.Next(t.Context())
		require.NoError(t, err)
		for f := range n {
			for i, got := range dtype.As[int32](l.Layout().Rows(f, b)) {
				if f == 0 {
					got--
				}
				require.EqualValues(t, i*n+f, got)
			}
		}
		require.NoError(t, run.Close())
	}
}

// A value of another length than its field's is never cut off nor left short: not by a
// Read that ignores Write's error either.
func TestAValueOfAnotherLengthFailsTheSample(t *testing.T) {
	for name, c := range map[string]struct {
		value []uint8
		heed  bool
		want  string
	}{
		"too long":         {[]uint8{1, 2, 3, 4}, true, "a value of 4 elements for field pixels uint8[3], want 3"},
		"too short":        {[]uint8{1, 2}, true, "a value of 2 elements for field pixels uint8[3], want 3"},
		"none":             {nil, true, "a value of 0 elements for field pixels uint8[3], want 3"},
		"too long ignored": {[]uint8{1, 2, 3, 4}, false, "field pixels uint8[3] was not written"},
	} {
		t.Run(name, func(t *testing.T) {
			fields := []loader.Field{{Name: "pixels", DType: dtype.Uint8, Shape: []int{3}}}
			l, err := loader.New(loader.FromFunc(4, fields, func(_ context.Context, i int, row *loader.Row) error {
				value := []uint8{0, 0, 0}
				if i == 2 {
					value = c.value
				}
				if err := loader.Write(row, "pixels", value...); c.heed {
					return err
				}
				return nil
			}), 4, loader.Options{Epochs: 1})
			require.NoError(t, err)
			run := l.Start(t.Context(), loader.Cursor{}, heap(t, l, 1))
			defer func() { require.NoError(t, run.Close()) }()
			_, err = run.Next(t.Context())
			var failure *loader.Error
			require.ErrorAs(t, err, &failure)
			require.Equal(t, 2, failure.Sample)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// Whatever a Read writes, it costs no allocation.
func TestWritingARowAllocatesNothing(t *testing.T) {
	if testing.CoverMode() != "" {
		t.Skip("coverage counts its own allocations")
	}
	fields := []loader.Field{{Name: "x", DType: dtype.Float32, Shape: []int{3}}, {Name: "y", DType: dtype.Int64}, {Name: "z", DType: dtype.Uint8}}
	x := []float32{1, 2, 3}
	l, err := loader.New(loader.FromFunc(1000, fields, func(_ context.Context, i int, row *loader.Row) error {
		loader.Column[uint8](row, "z")[0] = 1
		return errors.Join(loader.Write(row, "x", x...), loader.Write(row, "y", int64(i)))
	}), 100, loader.Options{Workers: 1})
	require.NoError(t, err)
	mem := heap(t, l, 2)
	run := l.Start(t.Context(), loader.Cursor{}, mem)
	next := func() {
		b, err := run.Next(t.Context())
		if err == loader.ErrEpochEnd {
			return
		}
		require.NoError(t, err)
		mem.Put(b.Slot)
	}
	for range 100 {
		next()
	}
	require.Less(t, testing.AllocsPerRun(1000, next), 1.0)
	require.NoError(t, run.Close())
}
