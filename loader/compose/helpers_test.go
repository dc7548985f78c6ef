package compose_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// values is a dataset of numbers in a field "x".
func values(numbers ...int64) loader.Dataset { return column("x", numbers...) }

// column is a dataset of numbers in a field of that name.
func column(name string, numbers ...int64) loader.Dataset {
	return loader.FromSlice(numbers, []loader.Field{{Name: name, DType: dtype.Int64}},
		func(_ context.Context, n int64, row *loader.Row) error { return loader.Write(row, name, n) })
}

// upTo are the n numbers from first on.
func upTo(first int64, n int) []int64 {
	numbers := make([]int64, n)
	for i := range numbers {
		numbers[i] = first + int64(i)
	}
	return numbers
}

// epochs reads the field "x" of some epochs of a loader from a cursor on, and the number
// of steps that takes.
func epochs(t require.TestingT, ld *loader.Loader, at loader.Cursor, most int) (read [][]int64, after loader.Cursor) {
	mem, err := loader.NewHeap(ld.Layout().Size(), 2)
	require.NoError(t, err)
	run := ld.Start(context.Background(), at, mem)
	defer func() { require.NoError(t, run.Close()) }()
	after = at
	var epoch []int64
	for steps := 0; steps < most; steps++ {
		f, err := run.Next(context.Background())
		if errors.Is(err, loader.ErrEpochEnd) {
			read, epoch = append(read, epoch), nil
			steps--
			continue
		}
		if errors.Is(err, loader.ErrEnd) {
			return read, after
		}
		require.NoError(t, err)
		epoch = append(epoch, column64(ld, f, "x")[:f.Valid]...)
		after = f.After
		mem.Put(f.Slot)
	}
	return append(read, epoch), after
}

// column64 copies a field out of a batch.
func column64(ld *loader.Loader, f loader.Filled, name string) []int64 {
	field, ok := ld.Layout().Lookup(name)
	if !ok {
		panic("no field " + name)
	}
	return append([]int64(nil), dtype.As[int64](ld.Layout().Rows(field, f))...)
}

// contents are the first epochs of a dataset in its own order. All of them are read by
// several workers.
func contents(t require.TestingT, ds loader.Dataset, n int) [][]int64 {
	if ds.Len() == 0 {
		return make([][]int64, n)
	}
	ld, err := loader.New(ds, 3, loader.Options{Epochs: n, Workers: 3})
	require.NoError(t, err)
	read, _ := epochs(t, ld, loader.Cursor{}, 1<<30)
	return read
}

// must is for constructors that cannot fail.
func must(ds loader.Dataset, err error) loader.Dataset {
	if err != nil {
		panic(fmt.Sprint("must: ", err))
	}
	return ds
}
