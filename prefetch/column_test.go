package prefetch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A columned is what has columns.
type columned interface {
	Lookup(name string) (prefetch.Field, bool)
}

// A column is a field of two elements a row, and the value of each of them.
type column struct {
	field loader.Field
	write func(row *loader.Row, index int) error
	check func(t *testing.T, of columned, first, rows int) // rows from that sample on
	wrong func(of columned) error                          // of asking for it as another type
}

func columnOf[T, Other dtype.Element](is dtype.Type, value func(i int) T) column {
	name := is.String()
	return column{
		field: loader.Field{Name: name, DType: is, Shape: []int{2}},
		write: func(row *loader.Row, index int) error {
			return loader.Write(row, name, value(2*index), value(2*index+1))
		},
		check: func(t *testing.T, of columned, first, rows int) {
			got, err := prefetch.Column[T](of, name)
			require.NoError(t, err)
			var want []T
			for i := range 2 * rows {
				want = append(want, value(2*first+i))
			}
			require.Equal(t, want, got, name)
		},
		wrong: func(of columned) error {
			_, err := prefetch.Column[Other](of, name)
			return err
		},
	}
}

func ascending[T uint8 | int8 | uint16 | int16 | uint32 | int32 | uint64 | int64 | float32 | float64](i int) T {
	return T(3*i + 1)
}

// columns are one of each type.
var columns = []column{
	columnOf[bool, uint8](dtype.Bool, func(i int) bool { return i%3 == 0 }),
	columnOf[uint8, bool](dtype.Uint8, ascending),
	columnOf[int8, uint8](dtype.Int8, ascending),
	columnOf[uint16, int16](dtype.Uint16, ascending),
	columnOf[int16, uint16](dtype.Int16, ascending),
	columnOf[uint32, float32](dtype.Uint32, ascending),
	columnOf[int32, uint32](dtype.Int32, ascending),
	columnOf[uint64, float64](dtype.Uint64, ascending),
	columnOf[int64, int32](dtype.Int64, ascending),
	columnOf[float32, uint32](dtype.Float32, ascending),
	columnOf[float64, float32](dtype.Float64, ascending),
	columnOf[uint16, float32](dtype.Float16, ascending),
	columnOf[uint16, int16](dtype.BFloat16, ascending),
}

// table is a dataset of all of them.
type table struct{}

func (table) Len() int { return 11 }

func (table) Fields() (fields []loader.Field) {
	for _, c := range columns {
		fields = append(fields, c.field)
	}
	return fields
}

func (table) Read(_ context.Context, index int, row *loader.Row) (err error) {
	for _, c := range columns {
		err = errors.Join(err, c.write(row, index))
	}
	return err
}

func TestThereIsAColumnOfEveryType(t *testing.T) {
	for is := dtype.Invalid + 1; is.Valid(); is++ {
		found := false
		for _, c := range columns {
			found = found || c.field.DType == is
		}
		require.True(t, found, is)
	}
}

// checkColumns requires that of has the rows from a sample on, of every type, and says what
// is wrong with other names and types.
func checkColumns(t *testing.T, of columned, first, rows int) {
	t.Helper()
	for _, c := range columns {
		c.check(t, of, first, rows)
		var wrong *prefetch.ColumnError
		require.ErrorAs(t, c.wrong(of), &wrong)
		require.Equal(t, c.field.Name, wrong.Field)
		require.ErrorContains(t, wrong, fmt.Sprintf("prefetch: field %q: its elements are %v, not ", c.field.Name, c.field.DType))
	}
	var missing *prefetch.ColumnError
	_, err := prefetch.Column[float32](of, "z")
	require.ErrorAs(t, err, &missing)
	require.Equal(t, "z", missing.Field)
	require.ErrorContains(t, err, fmt.Sprintf(`prefetch: field "z": there is none of that name, there is %q`, columns[0].field.Name))
}

func TestColumnsOfHostBatchesAndTheirClones(t *testing.T) {
	ld, err := loader.New(table{}, 4, loader.Options{Epochs: 1})
	require.NoError(t, err)
	pf, err := prefetch.NewHost(ld, prefetch.Options{})
	require.NoError(t, err)
	var clones []*prefetch.Clone
	for b, err := range pf.All(t.Context()) {
		require.NoError(t, err)
		checkColumns(t, b, 4*b.Position().Batch, b.Len())
		clone, err := b.Clone()
		require.NoError(t, err)
		clones = append(clones, clone)
		x, err := prefetch.Column[int64](b, "int64")
		require.NoError(t, err)
		x[0] = -7
		again, err := prefetch.Column[int64](b, "int64")
		require.NoError(t, err)
		require.EqualValues(t, -7, again[0], "it is the batch's own memory")
		require.Equal(t, len(x), cap(x), "what lies behind it is another's")
		if b.Position().Batch == 1 {
			b.Release()
			require.Contains(t, recovered(func() { _, _ = prefetch.Column[int64](b, "int64") }), "after its release")
		}
	}
	require.NoError(t, pf.Close())
	require.Len(t, clones, 3)
	for i, clone := range clones {
		checkColumns(t, clone, 4*i, min(4, 11-4*i))
		require.NoError(t, clone.Close())
	}
}

func TestColumnsOfResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 1, width: 1}, cpu.Options{}, 1, plain, prefetch.Options{})
		require.NoError(t, r.pf.Close())
		ld, err := loader.New(table{}, 4, loader.Options{Epochs: 1})
		require.NoError(t, err)
		r.pf, err = prefetch.New(r.compute, ld, prefetch.Options{})
		require.NoError(t, err)
		var kept prefetch.Result
		first := 0
		echo := func(b prefetch.Batch, out prefetch.Fields) error {
			for _, c := range columns {
				if err := b.Stream().CopyD2D(out.Field(c.field.Name).View, b.Field(c.field.Name).View); err != nil {
					return err
				}
			}
			return nil
		}
		for res, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: table{}.Fields()}, echo) {
			require.NoError(t, err)
			checkColumns(t, res, first, res.Len())
			first += res.Len()
			kept = res
		}
		require.Equal(t, 11, first)
		require.Contains(t, recovered(func() { _, _ = prefetch.Column[int64](kept, "int64") }), "after its loop body has ended")
		r.close()
	})
}

// In device memory there is nothing to lend, and the error says what to do.
func TestAColumnInDeviceMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 10, width: 0}, cpu.Options{}, 2, plain, prefetch.Options{})
		for b, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err)
			clone, err := b.Clone()
			require.NoError(t, err)
			for _, of := range []columned{b, clone} {
				_, err := prefetch.Column[int64](of, "index")
				var where *prefetch.ColumnError
				require.ErrorAs(t, err, &where)
				require.Equal(t, `prefetch: field "index": it is in device memory: take Field(name).View, look at it by Download, or bring results back by Map`, err.Error())
				_, err = prefetch.Column[float32](of, "index")
				require.ErrorContains(t, err, "its elements are int64, not float32")
				_, err = prefetch.Column[float32](of, "x")
				require.ErrorContains(t, err, "there is none of that name")
				empty, err := prefetch.Column[uint8](of, "bytes")
				require.NoError(t, err, "nothing can be had anywhere")
				require.Empty(t, empty)
			}
			require.NoError(t, r.dev.Synchronize(t.Context()))
			require.NoError(t, clone.Close())
		}
		r.close()
	})
}

func TestAColumnAllocatesNothing(t *testing.T) {
	ld, err := loader.New(table{}, 4, loader.Options{Epochs: 1})
	require.NoError(t, err)
	pf, err := prefetch.NewHost(ld, prefetch.Options{})
	require.NoError(t, err)
	for b, err := range pf.All(t.Context()) {
		require.NoError(t, err)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if x, err := prefetch.Column[float32](b, "float32"); err != nil || len(x) != 2*b.Len() {
				t.Fatal(err)
			}
		}))
	}
	require.NoError(t, pf.Close())
}
