package compose_test

import (
	"context"
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/compose"
)

func TestWhatIsChosen(t *testing.T) {
	ten := values(upTo(0, 10)...)
	for name, c := range map[string]struct {
		ds   loader.Dataset
		want []int64
	}{
		"Subset":            {must(compose.Subset(ten, []int{9, 0, 9})), []int64{9, 0, 9}},
		"Subset of none":    {must(compose.Subset(ten, nil)), nil},
		"Take":              {must(compose.Take(ten, 3)), []int64{0, 1, 2}},
		"Take none":         {must(compose.Take(ten, 0)), nil},
		"Take all and more": {must(compose.Take(ten, math.MaxInt)), upTo(0, 10)},
		"Skip":              {must(compose.Skip(ten, 8)), []int64{8, 9}},
		"Skip none":         {must(compose.Skip(ten, 0)), upTo(0, 10)},
		"Skip all and more": {must(compose.Skip(ten, math.MaxInt)), nil},
		"Repeat":            {must(compose.Repeat(must(compose.Take(ten, 2)), 3)), []int64{0, 1, 0, 1, 0, 1}},
		"Repeat of none":    {must(compose.Repeat(values(), math.MaxInt)), nil},
		"Concat":            {must(compose.Concat(values(1), values(), values(2, 3), values())), []int64{1, 2, 3}},
		"Select":            {must(compose.Select(ten, 3, func(_, i int) int { return 3 * i })), []int64{0, 3, 6}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, len(c.want), c.ds.Len())
			require.Equal(t, ten.Fields()[0].Name, c.ds.Fields()[0].Name)
			for _, epoch := range contents(t, c.ds, 2) {
				require.Equal(t, c.want, epoch)
			}
		})
	}
}

func TestSubsetCopiesItsIndices(t *testing.T) {
	indices := []int{1, 2}
	ds := must(compose.Subset(values(upTo(0, 10)...), indices))
	indices[0] = 99
	require.Equal(t, [][]int64{{1, 2}}, contents(t, ds, 1))
}

func TestSelectIsToldTheEpochAndThePass(t *testing.T) {
	ds := must(compose.Select(values(upTo(0, 100)...), 2, func(epoch, i int) int { return 10*epoch + i }))
	require.Equal(t, [][]int64{{0, 1}, {10, 11}, {20, 21}}, contents(t, ds, 3))
	require.Equal(t, [][]int64{{0, 1, 10, 11}, {20, 21, 30, 31}}, contents(t, must(compose.Repeat(ds, 2)), 2))
}

func TestAnIndexOutsideNamesItself(t *testing.T) {
	for _, index := range []int{-1, 10, math.MaxInt, math.MinInt} {
		ds := must(compose.Select(values(upTo(0, 10)...), 3, func(_, i int) int { return index }))
		ld, err := loader.New(ds, 2, loader.Options{})
		require.NoError(t, err)
		mem, err := loader.NewHeap(ld.Layout().Size(), 1)
		require.NoError(t, err)
		run := ld.Start(t.Context(), loader.Cursor{}, mem)
		_, err = run.Next(t.Context())
		var wrong *compose.IndexError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, compose.IndexError{Index: index, Len: 10}, *wrong)
		require.NoError(t, run.Close())
	}
	take := must(compose.Take(values(1, 2, 3), 2))
	require.ErrorAs(t, take.Read(t.Context(), 2, new(loader.Row)), new(*compose.IndexError))
	require.ErrorAs(t, take.Read(t.Context(), -1, new(loader.Row)), new(*compose.IndexError))
}

func TestZipHasTheFieldsOfAll(t *testing.T) {
	ds := must(compose.Zip(column("x", 1, 2, 3), column("y", 4, 5, 6), column("z", 7, 8, 9)))
	ld, err := loader.New(ds, 3, loader.Options{Epochs: 1})
	require.NoError(t, err)
	mem, err := loader.NewHeap(ld.Layout().Size(), 1)
	require.NoError(t, err)
	run := ld.Start(t.Context(), loader.Cursor{}, mem)
	f, err := run.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int64{1, 2, 3}, column64(ld, f, "x"))
	require.Equal(t, []int64{4, 5, 6}, column64(ld, f, "y"))
	require.Equal(t, []int64{7, 8, 9}, column64(ld, f, "z"))
	require.NoError(t, run.Close())
}

func TestAFieldThatAPartOfAZipForgetsIsFound(t *testing.T) {
	silent := loader.FromFunc(3, column("y").Fields(), func(_ context.Context, i int, row *loader.Row) error { return nil })
	ld, err := loader.New(must(compose.Zip(column("x", 1, 2, 3), silent)), 3, loader.Options{})
	require.NoError(t, err)
	mem, err := loader.NewHeap(ld.Layout().Size(), 1)
	require.NoError(t, err)
	run := ld.Start(t.Context(), loader.Cursor{}, mem)
	_, err = run.Next(t.Context())
	var forgotten *loader.UnwrittenError
	require.ErrorAs(t, err, &forgotten)
	require.Equal(t, "y", forgotten.Field.Name)
	require.NoError(t, run.Close())
}

func TestAPartOfAZipThatFailsFailsTheSample(t *testing.T) {
	fails := loader.FromFunc(3, column("y").Fields(), func(context.Context, int, *loader.Row) error { return passing(false) })
	for _, ds := range []loader.Dataset{
		must(compose.Zip(fails, column("x", 1, 2, 3))), must(compose.Zip(column("x", 1, 2, 3), fails)),
	} {
		s, err := loader.NewScratch(ds.Fields())
		require.NoError(t, err)
		require.ErrorIs(t, ds.Read(t.Context(), 1, s.Begin(new(loader.Row))), passing(false))
	}
}

func TestAScalarMayBeDeclaredInTwoWays(t *testing.T) {
	scalar := loader.FromFunc(1, []loader.Field{{Name: "x", DType: dtype.Int64, Shape: []int{}}}, values(1).Read)
	require.Equal(t, 3, must(compose.Concat(values(1), scalar, values(2))).Len())
	row := loader.FromFunc(1, []loader.Field{{Name: "x", DType: dtype.Int64, Shape: []int{1}}}, values(1).Read)
	_, err := compose.Concat(scalar, row)
	require.Error(t, err)
}

// NaN differs from itself, but fields that are padded with it are alike.
func TestPartsMayBePaddedWithNaN(t *testing.T) {
	padded := func(pad float64) loader.Dataset {
		field := loader.Field{Name: "x", DType: dtype.Float32, Shape: []int{3}, Ragged: &loader.Ragged{Pad: pad}}
		return loader.FromFunc(2, []loader.Field{field}, values(2).Read)
	}
	require.Equal(t, 4, must(compose.Concat(padded(math.NaN()), padded(math.NaN()))).Len())
	_, err := compose.Concat(padded(math.NaN()), padded(0))
	require.Error(t, err)
}

// endless has a length that no memory holds.
type endless struct{ loader.Dataset }

func (endless) Len() int { return 1 << (strconv.IntSize - 2) }

// words is a dataset of a ragged field of that name, whose lengths are in a field "length".
func words(name string) loader.Dataset {
	field := loader.Field{Name: name, DType: dtype.Uint8, Shape: []int{3}, Ragged: &loader.Ragged{Length: "length"}}
	return loader.FromFunc(3, []loader.Field{field}, func(_ context.Context, i int, row *loader.Row) error {
		return loader.Write(row, name, make([]byte, i)...)
	})
}

func TestMisuse(t *testing.T) {
	ten, none := values(upTo(0, 10)...), loader.Dataset(nil)
	bytes := loader.FromFunc(3, []loader.Field{{Name: "x", DType: dtype.Uint8, Shape: []int{2}}}, nil)
	shaped := loader.FromFunc(3, []loader.Field{{Name: "x", DType: dtype.Uint8, Shape: []int{2}}},
		func(context.Context, int, *loader.Row) error { return nil })
	long := endless{ten}
	var tooMany []string // where an int has 32 bits no number is
	if strconv.IntSize == 64 {
		tooMany = []string{"Select: n is"}
	}
	one := func(ds loader.Dataset, err error) error { return err }
	all := func(ds []loader.Dataset, err error) error { return err }
	for name, c := range map[string]struct {
		err  error
		want []string
	}{
		"no dataset":                 {one(compose.Take(none, 1)), []string{"Take: ds", "Dataset is <nil>"}},
		"no function":                {one(compose.Take(bytes, 1)), []string{"Take: ds", "a nil func"}},
		"several mistakes":           {one(compose.Take(none, -1)), []string{"Dataset is <nil>", "Take: n is -1"}},
		"Subset of none":             {one(compose.Subset(none, nil)), []string{"Subset: ds"}},
		"Shuffle":                    {one(compose.Shuffle(none, 1)), []string{"Shuffle: ds"}},
		"a wrong index":              {one(compose.Subset(ten, []int{3, 10, 99})), []string{"indices[1] is 10, want 0 to 9"}},
		"a negative index":           {one(compose.Subset(ten, []int{-1})), []string{"indices[0] is -1"}},
		"Skip":                       {one(compose.Skip(ten, math.MinInt)), []string{"Skip: n is -"}},
		"Repeat 0":                   {one(compose.Repeat(ten, 0)), []string{"Repeat: times is 0, want 1 or more"}},
		"Repeat overflows":           {one(compose.Repeat(ten, math.MaxInt)), []string{"Repeat: times", "ds has 10"}},
		"Concat of nothing":          {one(compose.Concat()), []string{"Concat: datasets is empty"}},
		"Concat of fields":           {one(compose.Concat(ten, shaped)), []string{"datasets[1]", "x uint8[2]", "x int64, the fields of the first"}},
		"Concat overflows":           {one(compose.Concat(long, long, long)), []string{"datasets[", "at most"}},
		"Zip of one name":            {one(compose.Zip(ten, ten)), []string{"datasets[1]", "field x int64", "datasets[0]"}},
		"Zip of lengths":             {one(compose.Zip(ten, column("y", 1))), []string{"datasets[1]", "1 samples", "10, as many as datasets[0]"}},
		"Zip of lengths of one name": {one(compose.Zip(words("a"), words("b"))), []string{"Zip: the fields of all", "length"}},
		"Zip of nothing":             {one(compose.Zip()), []string{"Zip: datasets is empty"}},
		"Zip of none":                {one(compose.Zip(ten, none)), []string{"Zip: datasets[1]: loader: Dataset is <nil>"}},
		"Select":                     {one(compose.Select(ten, -1, nil)), []string{"Select: at is nil", "Select: n is -1"}},
		"Select too many":            {one(compose.Select(ten, math.MaxInt, func(_, i int) int { return 0 })), tooMany},
		"Split of nothing":           {all(compose.Split(values(), 1, 0.5, 0.5)), []string{"fractions[0]", "fractions[1]", "of the 0 of ds"}},
		"Split without":              {all(compose.Split(ten, 1)), []string{"fractions is empty"}},
		"an empty part":              {all(compose.Split(ten, 1, 0.99, 0.001)), []string{"fractions[1] is 0.001"}},
		"fractions":                  {all(compose.Split(ten, 1, 0, -1, math.NaN(), math.Inf(1))), []string{"[0] is 0", "[1] is -1", "[2] is NaN", "[3] is +Inf"}},
		"a sum over 1":               {all(compose.Split(ten, 1, 0.7, 0.7)), []string{"sum of at most 1"}},
		"SplitBy":                    {all(compose.SplitBy(ten, 1, nil, 0.5)), []string{"key is nil"}},
		"SplitN of too many":         {all(compose.SplitN(ten, 1, 5, 6, 0)), []string{"counts[1] is 6, want 1 to 5", "counts[2] is 0"}},
		"SplitN without":             {all(compose.SplitN(ten, 1)), []string{"counts is empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.want == nil {
				require.NoError(t, c.err)
				return
			}
			require.ErrorAs(t, c.err, new(*loader.OptionError))
			for _, part := range c.want {
				require.ErrorContains(t, c.err, part)
			}
		})
	}
}
