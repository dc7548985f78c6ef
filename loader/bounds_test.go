package loader_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// The largest batch that is possible is laid out, and one byte more is refused.
func TestTheLargestLayout(t *testing.T) {
	bytes := func(n int) loader.Field { return loader.Field{Name: "x", DType: dtype.Uint8, Shape: []int{n}} }
	l, err := loader.NewLayout([]loader.Field{bytes(math.MaxInt)}, 1)
	require.NoError(t, err)
	require.EqualValues(t, math.MaxInt, l.Size())
	l, err = loader.NewLayout([]loader.Field{bytes(0)}, math.MaxInt32)
	require.NoError(t, err)
	require.Equal(t, math.MaxInt32, l.BatchSize())

	second := loader.Field{Name: "y", DType: dtype.Uint8}
	_, err = loader.NewLayout([]loader.Field{bytes(math.MaxInt - 10), second}, 1)
	require.Equal(t, []string{"Fields[1] (y)"}, mistakes(t, err), "its place is past the end of all memory")
	_, err = loader.NewLayout([]loader.Field{{Name: "x", DType: dtype.Uint16, Shape: []int{math.MaxInt/2 + 1}}}, 1)
	require.Equal(t, []string{"Fields[0] (x)"}, mistakes(t, err))
	if math.MaxInt > math.MaxInt32 {
		var bad *loader.OptionError
		require.ErrorAs(t, err, &bad)
		require.Equal(t, "a size that fits an int64", bad.Want, "of one sample")
		rows := math.MaxInt32
		_, err = loader.NewLayout([]loader.Field{bytes(0)}, rows+1)
		require.Equal(t, []string{"batchSize"}, mistakes(t, err))
	}
}

// One mistake is told once, and as what it is.
func TestAFieldsMistakeIsToldOnce(t *testing.T) {
	want := func(batch int, fields ...loader.Field) (want []string) {
		_, err := loader.NewLayout(fields, batch)
		require.Error(t, err)
		for _, err := range err.(interface{ Unwrap() []error }).Unwrap() {
			var bad *loader.OptionError
			require.ErrorAs(t, err, &bad)
			want = append(want, bad.Want)
		}
		return want
	}
	x := func(shape ...int) loader.Field { return loader.Field{Name: "x", DType: dtype.Uint8, Shape: shape} }
	if rows := math.MaxInt32; math.MaxInt > math.MaxInt32 {
		require.Equal(t, []string{"1 to 2147483647"}, want(rows+1, x(math.MaxInt/8)), "not the field that is too large for such a batch")
	}
	require.Equal(t, []string{"a valid element type"}, want(1, x(), loader.Field{Name: "x"}), "not the name that it has, too")
	require.Equal(t, []string{"dimensions of 0 or more"}, want(1, x(3, -1)))
	_, err := loader.NewLayout([]loader.Field{x(), {Name: "a"}}, 1)
	require.EqualError(t, err, "loader: Fields[1] (a) is without a DType, want a valid element type")
}

func TestAnOrderOfNothingPanics(t *testing.T) {
	const message = "loader: position 0 in an Order of 0 samples, want 0 or more"
	require.PanicsWithValue(t, message, func() { new(loader.Order).At(0) })
	require.PanicsWithValue(t, message, func() { new(loader.Order).Fill(make([]int, 1), 0) })
}

func TestTooFewSamplesAreCounted(t *testing.T) {
	o := loader.Options{Last: loader.Drop}
	_, err := loader.New(numbers{n: 3}, 4, o)
	require.ErrorContains(t, err, "a batch takes 4")
	o.Shard.Count = 2
	_, err = loader.New(numbers{n: 3}, 4, o)
	require.ErrorContains(t, err, "2 ranks of batch size 4 take 8 at a time")
}

// places are the *StateErrors of a state at a place.
func places(t *testing.T, l *loader.Loader, change func(*loader.State)) (want []string) {
	t.Helper()
	s := l.StateAt(loader.Cursor{})
	change(&s)
	err := l.Check(s)
	if err == nil {
		return nil
	}
	for _, err := range err.(interface{ Unwrap() []error }).Unwrap() {
		var bad *loader.StateError
		require.ErrorAs(t, err, &bad)
		want = append(want, bad.Field)
	}
	return want
}

// A state's place is one that the epochs have, up to the end of the last.
func TestAStatesPlaceIsWithinTheEpochs(t *testing.T) {
	at := func(epoch int, position int64) func(*loader.State) {
		return func(s *loader.State) { s.Epoch, s.Position = epoch, position }
	}
	three := newNumbers(t, numbers{n: 10}, 4, loader.Options{Epochs: 3})
	require.Empty(t, places(t, three, at(2, 10)))
	require.Empty(t, places(t, three, at(3, 0)), "all is over")
	require.Equal(t, []string{"Position"}, places(t, three, at(3, 4)))
	require.Equal(t, []string{"Position"}, places(t, three, at(3, 10)))
	require.Equal(t, []string{"Position"}, places(t, three, at(3, 11)), "and once")
	require.Equal(t, []string{"Position"}, places(t, three, at(3, -1)), "and once")
	require.Equal(t, []string{"Epoch"}, places(t, three, at(4, 0)))
	require.Equal(t, []string{"Epoch"}, places(t, three, at(1<<30, 0)))
	require.Equal(t, []string{"Epoch"}, places(t, three, at(1<<30+1, 0)), "and once")

	endless := newNumbers(t, numbers{n: 10}, 4, loader.Options{})
	require.Empty(t, places(t, endless, at(1<<30, 0)))
	require.Equal(t, []string{"Epoch"}, places(t, endless, at(1<<30+1, 0)))
}

// Every mistake of a state is told at once.
func TestEveryMistakeOfAStateIsTold(t *testing.T) {
	l := newNumbers(t, numbers{n: 10}, 4, loader.Options{Epochs: 3})
	require.Equal(t, []string{"Fields", "Seed", "Shuffle", "Position", "Epoch", "Substituted"},
		places(t, l, func(s *loader.State) {
			s.Fields, s.Seed, s.Shuffle, s.Epoch, s.Position, s.Substituted = "y int64", 9, true, 4, 11, 12
		}))
	require.Equal(t, []string{"Fingerprint", "Seed"}, places(t, l, func(s *loader.State) { s.Fingerprint++; s.Seed++ }))
	require.Equal(t, []string{"Samples", "Seed", "Substituted"},
		places(t, l, func(s *loader.State) { s.Samples, s.Fingerprint, s.Seed, s.Substituted = 11, 1, 9, -1 }))
}

func TestAStateOfTheOtherOrderSaysWhich(t *testing.T) {
	plain := newNumbers(t, numbers{n: 10}, 4, loader.Options{})
	shuffled := newNumbers(t, numbers{n: 10}, 4, loader.Options{Shuffle: true})
	require.ErrorContains(t, plain.Check(shuffled.StateAt(loader.Cursor{})), "the samples are not shuffled, the state was saved with Shuffle")
	require.ErrorContains(t, shuffled.Check(plain.StateAt(loader.Cursor{})), "the samples are shuffled, the state was saved without Shuffle")
}

// A place that the data doesn't have stays what it is, to be refused as such.
func TestOnlyAnEpochsEndIsTheNextEpoch(t *testing.T) {
	l := newNumbers(t, numbers{n: 10}, 4, loader.Options{})
	for _, position := range []int64{-1, 0, 9, 11, 99} {
		at := loader.Cursor{Epoch: 2, Position: position}
		require.Equal(t, at, l.StateAt(at).Cursor())
	}
	at := loader.Cursor{Epoch: 2, Position: 1 << 62}
	require.Equal(t, at, newStream(t, upTo(10), 4, loader.Options{}).StateAt(at).Cursor())
}

// A state names fields as far as people read them.
func TestAStateNamesTwentyFields(t *testing.T) {
	named := func(n int) string {
		fields := make([]loader.Field, n)
		for i := range fields {
			fields[i] = loader.Field{Name: "x" + string(rune('a'+i)), DType: dtype.Uint8}
		}
		l, err := loader.New(loader.FromFunc(3, fields, func(context.Context, int, *loader.Row) error { return nil }), 2, loader.Options{})
		require.NoError(t, err)
		return l.StateAt(loader.Cursor{}).Fields
	}
	require.Regexp(t, "^xa uint8, .*, xt uint8$", named(20))
	require.Regexp(t, "^xa uint8, .*, xt uint8, and 2 more$", named(22))
}
