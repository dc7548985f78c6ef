package loader_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// mistakes are the options that err, joined or single, complains of.
func mistakes(t *testing.T, err error) (options []string) {
	require.Error(t, err)
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			options = append(options, mistakes(t, err)...)
		}
		return options
	}
	var bad *loader.OptionError
	require.ErrorAs(t, err, &bad)
	require.NotEmpty(t, bad.Want)
	require.ErrorContains(t, err, bad.Option)
	return []string{bad.Option}
}

func TestEachOptionOutOfRangeIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(batchSize *int, o *loader.Options)
		want   []string
	}{
		"batch size 0":    {func(batchSize *int, o *loader.Options) { *batchSize = 0 }, []string{"batchSize"}},
		"negative batch":  {func(batchSize *int, o *loader.Options) { *batchSize = -3 }, []string{"batchSize"}},
		"negative epochs": {func(batchSize *int, o *loader.Options) { o.Epochs = -1 }, []string{"Epochs"}},
		"negative budget": {func(batchSize *int, o *loader.Options) { o.Budget = loader.Budget{Workers: -1, Cores: -1, Bytes: -1} },
			[]string{"Budget.Workers", "Budget.Cores", "Budget.Bytes"}},
		"negative workers":  {func(batchSize *int, o *loader.Options) { o.Workers = -2 }, []string{"Workers"}},
		"unknown last":      {func(batchSize *int, o *loader.Options) { o.Last = 9 }, []string{"Last"}},
		"negative ranks":    {func(batchSize *int, o *loader.Options) { o.Shard.Count = -1 }, []string{"Shard.Count"}},
		"rank out of range": {func(batchSize *int, o *loader.Options) { o.Shard = loader.Shard{Index: 1} }, []string{"Shard.Index"}},
		"negative rank":     {func(batchSize *int, o *loader.Options) { o.Shard = loader.Shard{Index: -1} }, []string{"Shard.Index"}},
		"keep with ranks":   {func(batchSize *int, o *loader.Options) { o.Shard.Count = 2 }, []string{"Last"}},
		"unknown policy":    {func(batchSize *int, o *loader.Options) { o.OnError = 2 }, []string{"OnError"}},
		"limit without":     {func(batchSize *int, o *loader.Options) { o.MaxSubstituted = 2 }, []string{"MaxSubstituted"}},
		"negative limit": {func(batchSize *int, o *loader.Options) { o.OnError, o.MaxSubstituted = loader.Substitute, -1 },
			[]string{"MaxSubstituted"}},
		"negative timeout": {func(batchSize *int, o *loader.Options) { o.StallTimeout = -1 }, []string{"StallTimeout"}},
		"negative grace":   {func(batchSize *int, o *loader.Options) { o.GracePeriod = -1 }, []string{"GracePeriod"}},
		"all at once": {func(batchSize *int, o *loader.Options) {
			*batchSize = 0
			*o = loader.Options{Epochs: -1, Workers: -5, StallTimeout: -1}
		}, []string{"batchSize", "Epochs", "Workers", "StallTimeout"}},
	} {
		t.Run(name, func(t *testing.T) {
			batchSize, o := 2, loader.Options{}
			c.change(&batchSize, &o)
			_, err := loader.New(numbers{n: 10}, batchSize, o)
			require.Equal(t, c.want, mistakes(t, err))
		})
	}
}

func TestAGlobalBatchThatOverflowsIsRefused(t *testing.T) {
	nothing := []loader.Field{{Name: "nothing", DType: dtype.Int8, Shape: []int{0}}}
	_, err := loader.New(loader.FromSlice(make([]int, 5), nothing, encodeNumber), math.MaxInt/2, loader.Options{
		Last: loader.Pad, Shard: loader.Shard{Count: 3},
	})
	require.Equal(t, []string{"batchSize"}, mistakes(t, err))
}

func TestOptionsThatNeedRandomAccessAreRefusedForIterables(t *testing.T) {
	_, err := loader.NewIterable(loader.FromSeqFunc(numberFields, each(upTo(3)), encodeNumber),
		2, loader.Options{Shuffle: true, Last: loader.Pad, OnError: loader.Substitute})
	require.Equal(t, []string{"Shuffle", "Last", "OnError"}, mistakes(t, err))
	_, err = loader.NewIterable(nil, 1, loader.Options{})
	require.Equal(t, []string{"Iterable"}, mistakes(t, err))
	_, err = loader.New(nil, 1, loader.Options{})
	require.Equal(t, []string{"Dataset"}, mistakes(t, err))
}

func TestTooFewSamplesAreRefused(t *testing.T) {
	for _, last := range []loader.LastPolicy{loader.Keep, loader.Drop, loader.Pad, loader.Exact} {
		_, err := loader.New(numbers{}, 2, loader.Options{Last: last})
		require.ErrorIs(t, err, loader.ErrNoSamples)
	}
	_, err := loader.New(numbers{n: 3}, 4, loader.Options{Last: loader.Drop})
	require.ErrorIs(t, err, loader.ErrTooFewSamples)
}

func TestDefaultsAreFilledIn(t *testing.T) {
	l := newNumbers(t, numbers{n: 10}, 2, loader.Options{})
	require.Equal(t, loader.Options{
		Shard: loader.Shard{Count: 1}, GracePeriod: 5 * time.Second,
	}, l.Options())
	require.Equal(t, 2, l.BatchSize())
	require.Equal(t, "Keep Exact LastPolicy(7) Substitute", loader.Keep.String()+" "+loader.Exact.String()+
		" "+loader.LastPolicy(7).String()+" "+loader.Substitute.String())
}

// The budget bounds the workers before the first of them is begun.
func TestTheBudgetBoundsTheWorkers(t *testing.T) {
	wide := func(bytes int) loader.Dataset {
		return loader.FromFunc(10, []loader.Field{{Name: "x", DType: dtype.Uint8, Shape: []int{bytes}}},
			func(context.Context, int, *loader.Row) error { return nil })
	}
	for _, c := range []struct {
		bytes int
		o     loader.Options
		most  int
	}{
		{8, loader.Options{}, 512},
		{8, loader.Options{Workers: 2000}, 2000},
		{8, loader.Options{Budget: loader.Budget{Workers: 65536, Bytes: 1 << 40}}, 65536},
		{8, loader.Options{Budget: loader.Budget{Workers: 3}}, 3},
		{8, loader.Options{Budget: loader.Budget{Bytes: 1}}, 1},
		{32 << 10, loader.Options{Budget: loader.Budget{Bytes: 1 << 20}}, 8},
		{64 << 10, loader.Options{Budget: loader.Budget{Bytes: 1 << 20}, ReadTimeout: time.Second}, 4},
		{64 << 20, loader.Options{Budget: loader.Budget{Bytes: 256 << 20}}, 1},
		{64 << 20, loader.Options{Budget: loader.Budget{Cores: 5}}, 5},
	} {
		l, err := loader.New(wide(c.bytes), 2, c.o)
		require.NoError(t, err)
		require.Equal(t, c.most, l.Workers())
		require.Equal(t, c.o.Workers, l.Options().Workers)
	}
}

func TestALayoutPacksFieldsAtAlignedOffsets(t *testing.T) {
	l, err := loader.NewLayout([]loader.Field{
		{Name: "image", DType: dtype.Uint8, Shape: []int{28, 28}},
		{Name: "label", DType: dtype.Int32},
		{Name: "nothing", DType: dtype.Float64, Shape: []int{5, 0}},
		{Name: "half", DType: dtype.BFloat16, Shape: []int{3}},
	}, 10)
	require.NoError(t, err)
	var places [][2]int64
	for _, f := range l.Fields() {
		require.Zero(t, f.Offset%loader.Align)
		places = append(places, [2]int64{f.Offset, f.RowBytes})
	}
	require.Equal(t, [][2]int64{{0, 784}, {7936, 4}, {8192, 0}, {8192, 6}}, places)
	require.EqualValues(t, 8192+60, l.Size())
	require.Equal(t, 10, l.BatchSize())
	half, ok := l.Lookup("half")
	require.True(t, ok)
	require.Equal(t, 3, half)
	_, ok = l.Lookup("missing")
	require.False(t, ok)
	mem := make([]byte, l.Size())
	require.Len(t, l.Rows(0, loader.Filled{Slot: loader.Slot{Bytes: mem}, N: 3}), 3*784)
	require.Empty(t, l.Rows(2, loader.Filled{Slot: loader.Slot{Bytes: mem}, N: 10}))
	require.Equal(t, 40, cap(l.Rows(1, loader.Filled{Slot: loader.Slot{Bytes: mem}, N: 10})), "nothing beyond the field can be reached")
}

// Fields are found by their names, whether they are few or many.
func TestALayoutFindsEachOfManyFields(t *testing.T) {
	for _, n := range []int{1, 8, 9, 1000} {
		fields := make([]loader.Field, n)
		for i := range fields {
			fields[i] = loader.Field{Name: fmt.Sprint("x", i), DType: dtype.Uint8}
		}
		l, err := loader.NewLayout(fields, 2)
		require.NoError(t, err)
		for i, f := range fields {
			field, ok := l.Lookup(f.Name)
			require.True(t, ok)
			require.Equal(t, i, field)
		}
		_, ok := l.Lookup("x")
		require.False(t, ok)
		fields[n-1].Name = "x0"
		_, err = loader.NewLayout(fields, 2)
		require.Equal(t, n > 1, err != nil, "two fields of one name")
	}
}

func TestFieldsThatCannotBeLaidOut(t *testing.T) {
	x := func(shape ...int) loader.Field { return loader.Field{Name: "x", DType: dtype.Float32, Shape: shape} }
	for name, c := range map[string]struct {
		fields []loader.Field
		want   []string
	}{
		"none":          {nil, []string{"Fields"}},
		"no name":       {[]loader.Field{{DType: dtype.Int8}}, []string{"Fields[0]"}},
		"twice":         {[]loader.Field{x(), x(2)}, []string{"Fields[1] (x)"}},
		"no type":       {[]loader.Field{{Name: "x"}}, []string{"Fields[0] (x)"}},
		"unknown type":  {[]loader.Field{{Name: "x", DType: 200}}, []string{"Fields[0] (x)"}},
		"negative":      {[]loader.Field{x(3, -1)}, []string{"Fields[0] (x)"}},
		"huge":          {[]loader.Field{x(math.MaxInt, math.MaxInt)}, []string{"Fields[0] (x)"}},
		"huge by batch": {[]loader.Field{x(math.MaxInt / 8)}, []string{"Fields[0] (x)"}},
		"huge together": {[]loader.Field{x(math.MaxInt / 64), {Name: "y", DType: dtype.Uint8, Shape: []int{math.MaxInt / 12}}}, []string{"Fields[1] (y)"}},
		"two mistakes":  {[]loader.Field{x(-1), {Name: "y"}}, []string{"Fields[0] (x)", "Fields[1] (y)"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loader.NewLayout(c.fields, 10)
			require.Equal(t, c.want, mistakes(t, err))
		})
	}
	_, err := loader.NewLayout([]loader.Field{x(math.MaxInt, 0, math.MaxInt)}, 10)
	require.NoError(t, err, "no elements, no bytes")
	_, err = loader.NewLayout([]loader.Field{x()}, 0)
	require.Equal(t, []string{"batchSize"}, mistakes(t, err))
}

func TestSamplesOverFourGiB(t *testing.T) {
	if math.MaxInt == math.MaxInt32 {
		t.Skip("an int has 32 bits")
	}
	l, err := loader.NewLayout([]loader.Field{
		{Name: "volume", DType: dtype.Float32, Shape: []int{2048, 1024, 1024}}, {Name: "label", DType: dtype.Int64},
	}, 3)
	require.NoError(t, err)
	require.Equal(t, int64(8)<<30, l.Fields()[0].RowBytes)
	require.Equal(t, int64(24)<<30, l.Fields()[1].Offset)
}
