package loader_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

var extremes = []int64{
	math.MinInt64, math.MinInt64 + 1, math.MinInt32 - 1, math.MinInt32, -2, -1,
	math.MaxInt32 - 1, math.MaxInt32, math.MaxInt32 + 1, 1<<32 + 1, 1 << 40, 1 << 60, 1 << 62, 1<<62 + 1, math.MaxInt64 - 1, math.MaxInt64,
}

// numbersOf calls visit for every signed number in the struct that p points to, with
// the path of its name. What visit sets is put back.
func numbersOf(p any, visit func(path string, number reflect.Value)) {
	var walk func(prefix string, v reflect.Value)
	walk = func(prefix string, v reflect.Value) {
		for i := range v.NumField() {
			path, f := prefix+v.Type().Field(i).Name, v.Field(i)
			switch {
			case f.Kind() == reflect.Struct:
				walk(path+".", f)
			case f.CanInt():
				was := f.Int()
				visit(path, f)
				f.SetInt(was)
			}
		}
	}
	walk("", reflect.ValueOf(p).Elem())
}

// Every number that there is, or will be, in Options: refused by its name, or it works.
func TestEveryNumberInOptionsAtItsExtremes(t *testing.T) {
	given := struct {
		BatchSize int
		Options   loader.Options
	}{2, loader.Options{Workers: 1, Epochs: 1, Last: loader.Drop, OnError: loader.Substitute, Shard: loader.Shard{Count: 1}}}
	seen := 0
	numbersOf(&given, func(path string, number reflect.Value) {
		seen++
		path = strings.TrimPrefix(strings.Replace(path, "BatchSize", "batchSize", 1), "Options.")
		for _, x := range extremes {
			if number.OverflowInt(x) {
				continue
			}
			number.SetInt(x)
			l, err := loader.New(numbers{n: 5}, given.BatchSize, given.Options)
			if errors.Is(err, loader.ErrTooFewSamples) {
				continue
			}
			if err != nil {
				if path == "batchSize" && math.MaxInt == math.MaxInt32 && x > 0 {
					continue // the fields of so many rows are too large
				}
				want := []string{path}
				if path == "Shard.Count" && x > 0 && x <= math.MaxInt32 {
					want = []string{"batchSize"} // the global batch's
				}
				require.Equal(t, want, mistakes(t, err), "%s %d: %v", path, x, err)
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				mem := heap(t, l, 2)
				run := l.Start(t.Context(), loader.Cursor{}, mem)
				synctest.Wait()
				b, err := read(l, run, mem)
				require.NoError(t, err, "%s %d", path, x)
				require.Equal(t, []int64{0, 1}, b.indices, "%s %d", path, x)
				require.NoError(t, run.Close())
			})
		}
	})
	require.GreaterOrEqual(t, seen, 9)
}

// And in State and Cursor: refused by its name, or the run goes on from there.
func TestEveryNumberInAStateAtItsExtremes(t *testing.T) {
	for _, last := range []loader.LastPolicy{loader.Keep, loader.Drop, loader.Pad, loader.Exact} {
		for _, iterable := range []bool{false, true} {
			if iterable && last == loader.Pad {
				continue
			}
			for _, ranks := range []int{1, 3} {
				if ranks > 1 && last == loader.Keep {
					continue
				}
				o := loader.Options{Workers: 1, Last: last, Shard: loader.Shard{Index: ranks - 1, Count: ranks}}
				l := newNumbers(t, numbers{n: 7}, 2, o)
				if iterable {
					l = newStream(t, upTo(7), 2, o)
				}
				s := l.StateAt(loader.Cursor{})
				require.NoError(t, l.Check(s))
				numbersOf(&s, func(path string, number reflect.Value) {
					for _, x := range extremes {
						if number.OverflowInt(x) {
							continue
						}
						number.SetInt(x)
						err := l.Check(s)
						if err != nil {
							var bad *loader.StateError
							require.ErrorAs(t, err, &bad)
							require.Equal(t, path, bad.Field)
						}
						synctest.Test(t, func(t *testing.T) {
							mem := heap(t, l, 2)
							run := l.Start(t.Context(), s.Cursor(), mem)
							f, failed := run.Next(t.Context())
							if failed == nil {
								mem.Put(f.Slot)
							}
							require.NoError(t, run.Close())
							require.Equal(t, 2, mem.Free())
							if path == "Epoch" || path == "Position" {
								what := fmt.Sprintf("%s %d: Check says %v, Next %v", path, x, err, failed)
								var bad *loader.StateError
								require.Equal(t, err != nil, errors.As(failed, &bad), what)
							}
						})
						at := l.StateAt(s.Cursor()).Cursor()
						require.GreaterOrEqual(t, at.Epoch, min(s.Epoch, 0))
					}
				})
			}
		}
	}
}

func TestEveryNumberOfAFieldAtItsExtremes(t *testing.T) {
	for _, x := range extremes {
		if int64(int(x)) != x {
			continue
		}
		n := int(x)
		for _, shape := range [][]int{{n}, {n, n}, {2, n}, {n, 0}, {0, n, n}} {
			for _, batch := range []int{1, 2, math.MaxInt32} {
				l, err := loader.NewLayout([]loader.Field{{Name: "x", DType: dtype.Float64, Shape: shape}}, batch)
				if err != nil {
					require.Equal(t, []string{"Fields[0] (x)"}, mistakes(t, err))
					continue
				}
				require.GreaterOrEqual(t, l.Size(), int64(0))
				if l.Size() > 1<<30 {
					_, err = loader.NewHeap(l.Size(), math.MaxInt32/2)
					require.Error(t, err)
				}
			}
		}
		if _, err := loader.NewLayout([]loader.Field{{Name: "x", DType: dtype.Uint8, Shape: []int{0}}}, n); err != nil {
			require.Equal(t, []string{"batchSize"}, mistakes(t, err))
		}
		if x < 0 || x > 1<<45 { // the others are allocated at once
			_, err := loader.NewHeap(x, 2)
			require.Equal(t, []string{"bytes"}, mistakes(t, err))
		}
		_, err := loader.NewHeap(0, n)
		require.Equal(t, []string{"slots"}, mistakes(t, err))
	}
	_, err := loader.NewHeap(-1, -1)
	require.Equal(t, []string{"slots", "bytes"}, mistakes(t, err))
}

// A dataset may be as long as an int allows, for it may be made up as it goes.
func TestADatasetOfExtremeLength(t *testing.T) {
	for _, n := range []int{math.MinInt, -1, 0} {
		_, err := loader.New(numbers{n: n}, 2, loader.Options{})
		require.ErrorIs(t, err, loader.ErrNoSamples)
	}
	if math.MaxInt > math.MaxInt32 {
		_, err := loader.New(numbers{n: math.MaxInt}, 2, loader.Options{})
		require.Equal(t, []string{"Len"}, mistakes(t, err))
	}
	longest := min(1<<62, math.MaxInt)
	for _, last := range []loader.LastPolicy{loader.Drop, loader.Pad, loader.Exact} {
		for _, shuffle := range []bool{false, true} {
			for _, shard := range []loader.Shard{{Index: 0, Count: 3}, {Index: 2, Count: 3}} {
				o := loader.Options{Workers: 2, Last: last, Shuffle: shuffle, Seed: 1, Shard: shard, Epochs: 1}
				l := newNumbers(t, numbers{n: longest}, 2, o)
				mem := heap(t, l, 2)
				from := int64(longest) - int64(longest)%6 - 6
				run := l.Start(t.Context(), loader.Cursor{Position: from}, mem)
				batches, err := readEpoch(l, run, mem)
				require.Equal(t, loader.ErrEpochEnd, err)
				require.NotEmpty(t, batches)
				order := l.Order(0)
				for i, b := range batches {
					require.Equal(t, from+int64(6*i+2*shard.Index), b.filled.Position)
					for row, index := range b.indices {
						require.EqualValues(t, order.At(b.filled.Position+int64(row)), index)
					}
				}
				require.NoError(t, run.Close())
			}
		}
	}
}

func TestAnOrdersMistakesPanicAtOnce(t *testing.T) {
	for _, n := range []int{1, 7, 256, 1000} {
		for _, shuffle := range []bool{false, true} {
			l := newNumbers(t, numbers{n: n}, 1, loader.Options{Shuffle: shuffle})
			order := l.Order(0)
			for _, position := range []int64{-1, -256, math.MinInt64} {
				message := fmt.Sprintf("loader: position %d in an Order of %d samples, want 0 or more", position, n)
				require.PanicsWithValue(t, message, func() { order.At(position) })
				require.PanicsWithValue(t, message, func() { order.Fill(make([]int, 3), position) })
			}
			require.Equal(t, order.At(math.MaxInt64%int64(n)), order.At(math.MaxInt64))
			filled := make([]int, 3)
			order.Fill(filled, math.MaxInt64)
			require.Equal(t, order.At(math.MaxInt64), filled[0])
			require.PanicsWithValue(t, "loader: Order of epoch -1, want 0 or more", func() { l.Order(-1) })
		}
	}
	require.Panics(t, func() { new(loader.Order).At(0) })
}

// pointer is a Dataset and an Iterable that Open returned nil beside an error.
type pointer struct{ numbers }

func (p *pointer) Samples(context.Context, int) iter.Seq2[loader.Encoder, error] { return nil }

// function is an Iterable by way of a function.
type function func() iter.Seq2[loader.Encoder, error]

func (function) Fields() []loader.Field { return numberFields }

func (f function) Samples(context.Context, int) iter.Seq2[loader.Encoder, error] { return f() }

func TestWhatIsNilIsNamed(t *testing.T) {
	o := loader.Options{}
	dataset := func(ds loader.Dataset) error { _, err := loader.New(ds, 1, o); return err }
	iterable := func(it loader.Iterable) error { _, err := loader.NewIterable(it, 1, o); return err }
	encode := func(ctx context.Context, n int, row *loader.Row) error { return encodeNumber(ctx, n, row) }
	for want, err := range map[string]error{
		"Dataset is <nil>":                                 dataset(nil),
		"Dataset is a nil *loader_test.pointer":            dataset((*pointer)(nil)),
		"Iterable is <nil>":                                iterable(nil),
		"Iterable is a nil *loader_test.pointer":           iterable((*pointer)(nil)),
		"Iterable is a nil loader_test.function":           iterable(function(nil)),
		"encode is a nil func(context.Context, int":        dataset(loader.FromSlice([]int{1}, numberFields, (func(context.Context, int, *loader.Row) error)(nil))),
		"seq is a nil iter.Seq2[int,error], want":          iterable(loader.FromSeq(numberFields, nil, encode)),
		"encode is a nil func(context.Context, int, *load": iterable(loader.FromSeq(numberFields, upTo(1), nil)),
		"samples is a nil func(context.Context, loader.Pa": iterable(loader.FromSeqFunc(numberFields, nil, encode)),
		"Fields is empty":                                  dataset(loader.FromSlice([]int{1}, nil, encode)),
		"encode is a nil func":                             iterable(loader.FromSeqFunc(numberFields, func(context.Context, loader.Pass) iter.Seq2[int, error] { return upTo(1) }, nil)),
	} {
		require.ErrorContains(t, err, want)
		mistakes(t, err)
	}

	l := newNumbers(t, numbers{n: 1}, 1, o)
	for _, mem := range []loader.Memory{nil, (*loader.Heap)(nil)} {
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		_, err := run.Next(t.Context())
		require.Equal(t, []string{"Memory"}, mistakes(t, err))
		require.NoError(t, run.Close())
	}
}

// changing is a Dataset that says something else each time it is asked.
type changing struct {
	numbers
	asked map[string]int
}

func (c changing) Len() int {
	c.asked["Len"]++
	return c.n >> (c.asked["Len"] - 1)
}

func (c changing) Fields() []loader.Field {
	c.asked["Fields"]++
	fields := c.numbers.Fields()
	return fields[:len(fields)-c.asked["Fields"]+1]
}

func TestADatasetIsAskedOnce(t *testing.T) {
	c := changing{numbers{n: 8}, map[string]int{}}
	l, err := loader.New(c, 2, loader.Options{Epochs: 2})
	require.NoError(t, err)
	batches, err := readAll(t, l, loader.Cursor{}, 2)
	require.NoError(t, err)
	require.Len(t, batches, 8)
	require.Equal(t, map[string]int{"Len": 1, "Fields": 1}, c.asked)
}

// The field that the caller passed may be written to again.
func TestALayoutKeepsNothingOfTheCallers(t *testing.T) {
	fields := []loader.Field{{Name: "x", DType: dtype.Int32, Shape: []int{2, 3}}}
	l, err := loader.NewLayout(fields, 4)
	require.NoError(t, err)
	fields[0].Name, fields[0].Shape[0] = "y", 1<<20
	require.Equal(t, "x int32[2 3]", l.Fields()[0].String())
	require.EqualValues(t, 24, l.Fields()[0].RowBytes)
}
