package loader_test

import (
	"context"
	"errors"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// numbers is a dataset of n samples that say which they are: field "index" holds
// the index, "epoch" and "position" what the row said, "random" a word of the
// row's random numbers, and "pixels" three bytes of the index. before, if not
// nil, runs first and may fail the sample.
type numbers struct {
	n      int
	before func(ctx context.Context, index int, row *loader.Row) error
	file   string // of their Origin, else "numbers"
}

var numberFields = []loader.Field{
	{Name: "index", DType: dtype.Int64},
	{Name: "epoch", DType: dtype.Int32},
	{Name: "position", DType: dtype.Int64},
	{Name: "random", DType: dtype.Uint64},
	{Name: "pixels", DType: dtype.Uint8, Shape: []int{3}},
	{Name: "nothing", DType: dtype.Float32, Shape: []int{0, 4}},
}

func (d numbers) Len() int               { return d.n }
func (d numbers) Fields() []loader.Field { return numberFields }

func (d numbers) Read(ctx context.Context, index int, row *loader.Row) error {
	if d.before != nil {
		if err := d.before(ctx, index, row); err != nil {
			return err
		}
	}
	writeNumber(index, row)
	return nil
}

func writeNumber(index int, row *loader.Row) {
	loader.Column[int64](row, "index")[0] = int64(index)
	loader.Column[int32](row, "epoch")[0] = int32(row.Epoch())
	loader.Column[int64](row, "position")[0] = row.Position()
	loader.Column[uint64](row, "random")[0] = row.Rand().Uint64()
	for i := range row.Bytes("pixels") {
		row.Bytes("pixels")[i] = byte(index)
	}
}

// batch is a delivered batch of numbers, copied out of its slot.
type batch struct {
	filled    loader.Filled
	indices   []int64
	positions []int64
	random    []uint64
}

// values copies the rows of a field of a batch.
func values[T dtype.Element](l *loader.Loader, f loader.Filled, name string) []T {
	field, ok := l.Layout().Lookup(name)
	if !ok {
		panic("no field " + name)
	}
	b := l.Layout().Rows(field, f)
	out := make([]T, len(b)/int(unsafe.Sizeof(*new(T))))
	if len(out) > 0 {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&out[0])), len(b)), b)
	}
	return out
}

// heap makes slots for l that the test finds all free at its end.
func heap(t require.TestingT, l *loader.Loader, slots int) *loader.Heap {
	mem, err := loader.NewHeap(l.Layout().Size(), slots)
	require.NoError(t, err)
	return mem
}

// read takes one batch of numbers and gives its slot back.
func read(l *loader.Loader, run *loader.Run, mem *loader.Heap) (batch, error) {
	f, err := run.Next(context.Background())
	if err != nil {
		return batch{}, err
	}
	b := batch{
		filled:    f,
		indices:   values[int64](l, f, "index"),
		positions: values[int64](l, f, "position"),
		random:    values[uint64](l, f, "random"),
	}
	b.filled.Substituted = append([]loader.Substitution(nil), f.Substituted...)
	b.filled.Slot = loader.Slot{}
	b.filled.Times = loader.Times{} // else no two runs are equal
	mem.Put(f.Slot)
	return b, nil
}

// readEpoch takes batches up to the end of an epoch or of the data.
func readEpoch(l *loader.Loader, run *loader.Run, mem *loader.Heap) (batches []batch, err error) {
	for {
		b, err := read(l, run, mem)
		if err != nil {
			return batches, err
		}
		batches = append(batches, b)
	}
}

// readAll runs l from a cursor to the end and returns the batches. All slots are
// free and no goroutine is left afterwards.
func readAll(t require.TestingT, l *loader.Loader, at loader.Cursor, slots int) (batches []batch, err error) {
	mem := heap(t, l, slots)
	run := l.Start(context.Background(), at, mem)
	for {
		b, err := readEpoch(l, run, mem)
		batches = append(batches, b...)
		if !errors.Is(err, loader.ErrEpochEnd) {
			require.NoError(t, run.Close())
			require.Equal(t, slots, mem.Free())
			if errors.Is(err, loader.ErrEnd) {
				err = nil
			}
			return batches, err
		}
	}
}

// indices joins the batches' sample indices, padding left out.
func indices(batches []batch) (all []int64) {
	for _, b := range batches {
		all = append(all, b.indices[:b.filled.Valid]...)
	}
	return all
}

// options are the names in the OptionErrors that err joins.
func options(err error) (names []string) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			names = append(names, options(err)...)
		}
		return names
	}
	var wrong *loader.OptionError
	if errors.As(err, &wrong) {
		names = append(names, wrong.Option)
	}
	return names
}
