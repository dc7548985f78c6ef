package loader_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// marked is a dataset with a fingerprint.
type marked struct {
	numbers
	mark uint64
}

func (m marked) Fingerprint() uint64 { return m.mark }

func TestAStateGoesThroughJSON(t *testing.T) {
	l := newNumbers(t, numbers{n: 10}, 4, loader.Options{Seed: 1 << 63, Shuffle: true})
	state := l.StateAt(loader.Cursor{Epoch: 2, Position: 4})
	require.EqualValues(t, 10, state.Samples)
	text, err := json.Marshal(state)
	require.NoError(t, err)
	var back loader.State
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, state, back)
	require.NoError(t, l.Check(back))
	require.Equal(t, loader.Cursor{Epoch: 2, Position: 4}, back.Cursor())
}

func TestAStateAtAnEpochsEndIsTheNextEpochsBeginning(t *testing.T) {
	next := loader.Cursor{Epoch: 3}
	keep := newNumbers(t, numbers{n: 10}, 4, loader.Options{})
	require.Equal(t, next, keep.StateAt(loader.Cursor{Epoch: 2, Position: 10}).Cursor())
	require.Equal(t, loader.Cursor{Epoch: 2, Position: 8}, keep.StateAt(loader.Cursor{Epoch: 2, Position: 8}).Cursor())
	drop := newNumbers(t, numbers{n: 10}, 4, loader.Options{Last: loader.Drop})
	require.Equal(t, next, drop.StateAt(loader.Cursor{Epoch: 2, Position: 8}).Cursor(), "two samples are left, too few for a batch")

	stream := newStream(t, upTo(10), 4, loader.Options{})
	at := loader.Cursor{Epoch: 2, Position: 10}
	require.Equal(t, at, stream.StateAt(at).Cursor(), "whose length is not known")
}

func TestEveryRankHasTheSameState(t *testing.T) {
	o := loader.Options{Last: loader.Drop, Epochs: 1}
	o.Shard.Count = 4
	var states []loader.State
	for rank := range 4 {
		o.Shard.Index = rank
		l := newNumbers(t, numbers{n: 20}, 2, o)
		batches, err := readAll(t, l, loader.Cursor{}, 2)
		require.NoError(t, err)
		states = append(states, l.StateAt(batches[0].filled.After))
	}
	for _, s := range states {
		require.Equal(t, states[0], s)
	}
}

func TestAStateOfOtherDataIsRefused(t *testing.T) {
	o := loader.Options{Seed: 7, Shuffle: true}
	l, err := loader.New(marked{numbers{n: 10}, 1}, 4, o)
	require.NoError(t, err)
	state := l.StateAt(loader.Cursor{Position: 8})

	refused := func(l *loader.Loader, s loader.State) (fields []string) {
		err := l.Check(s)
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, err := range joined.Unwrap() {
				var bad *loader.StateError
				require.ErrorAs(t, err, &bad)
				fields = append(fields, bad.Field)
			}
			return fields
		}
		var bad *loader.StateError
		require.ErrorAs(t, err, &bad)
		return []string{bad.Field}
	}
	other := func(ds loader.Dataset, o loader.Options) *loader.Loader {
		l, err := loader.New(ds, 4, o)
		require.NoError(t, err)
		return l
	}
	require.Equal(t, []string{"Fingerprint"}, refused(other(marked{numbers{n: 10}, 2}, o), state), "other contents")
	require.Equal(t, []string{"Samples"}, refused(other(marked{numbers{n: 11}, 2}, o), state), "another length")
	require.Equal(t, []string{"Samples"}, refused(other(marked{numbers{n: 5}, 1}, o), state), "whose position is not told too")
	renamed := loader.FromSlice(make([]int, 10), []loader.Field{{Name: "y", DType: dtype.Int64}}, encodeNumber)
	require.Equal(t, []string{"Fields"}, refused(other(renamed, o), state), "other fields")
	o.Seed, o.Shuffle = 8, false
	require.Equal(t, []string{"Seed", "Shuffle"}, refused(other(marked{numbers{n: 10}, 1}, o), state))
	state.Version = 1
	require.Equal(t, []string{"Version"}, refused(l, state))
	require.Equal(t, []string{"Version"}, refused(l, loader.State{}), "a file that is no state")
	state.Version, state.Epoch, state.Position = 3, -1, 11
	require.Equal(t, []string{"Epoch", "Position"}, refused(l, state))
}

func TestAStateGoesOnInAnotherWorld(t *testing.T) {
	o := loader.Options{Seed: 7, Shuffle: true, Last: loader.Drop, Epochs: 1}
	state := newNumbers(t, numbers{n: 40}, 4, o).StateAt(loader.Cursor{Position: 8})
	o.Shard.Count, o.Workers = 4, 3
	require.NoError(t, newNumbers(t, numbers{n: 40}, 1, o).Check(state))
}

// What does not fit is told in words, by the numbers that a person knows.
func TestAStateSaysWhatDoesNotFit(t *testing.T) {
	dataset := newNumbers(t, numbers{n: 999}, 4, loader.Options{Epochs: 3})
	stream := newStream(t, upTo(10), 4, loader.Options{})
	x, err := loader.New(loader.FromFunc(999, []loader.Field{{Name: "x", DType: dtype.Float32, Shape: []int{3}}}, nothingRead), 4, loader.Options{})
	require.NoError(t, err)
	good := dataset.StateAt(loader.Cursor{Position: 998})
	for _, c := range []struct {
		l      *loader.Loader
		change func(s *loader.State)
		want   string
	}{
		{dataset, func(s *loader.State) { *s = loader.State{} }, "loader: the state is the zero value: none was saved in it, or it was not read from its file"},
		{dataset, func(s *loader.State) { s.Version = 0 }, "loader: the state has no version"},
		{dataset, func(s *loader.State) { s.Version = 1 }, "loader: the state is of version 1, this program reads version 3"},
		{dataset, func(s *loader.State) { s.Samples, s.Position = 1000, 1000 }, "loader: the dataset has 999 samples, the state was saved with 1000"},
		{dataset, func(s *loader.State) { s.Samples = 0 }, "loader: the dataset has 999 samples, the state was saved with an Iterable"},
		{stream, func(*loader.State) {}, "loader: the samples are an Iterable's, the state was saved with a dataset of 999"},
		{x, func(s *loader.State) {}, "loader: a sample has x float32[3], the state was saved with index int64, epoch int32, position int64, random uint64, pixels uint8[3], nothing float32[0 4]"},
		{dataset, func(s *loader.State) { s.Fingerprint++ }, "loader: the data has the same fields, but not the contents that the state was saved with: its Fingerprint differs"},
		{dataset, func(s *loader.State) { s.Seed = 7 }, "loader: the seed is 0, the state was saved with 7"},
		{dataset, func(s *loader.State) { s.Shuffle = true }, "loader: the samples are not shuffled, the state was saved with Shuffle"},
		{dataset, func(s *loader.State) { s.Position = 1001 }, "loader: Position is 1001, want 0 to 999"},
		{dataset, func(s *loader.State) { s.Epoch, s.Position = 3, 1001 }, "loader: Position is 1001, want 0 to 999"},
		{dataset, func(s *loader.State) { s.Epoch = 3 }, "loader: Position is 998, want 0, since all 3 epochs of Options.Epochs are over"},
		{dataset, func(s *loader.State) { s.Epoch = 9 }, "loader: Epoch is 9, want 0 to 3, the end of Options.Epochs"},
	} {
		s := good
		c.change(&s)
		require.EqualError(t, c.l.Check(s), c.want)
	}
}

func nothingRead(context.Context, int, *loader.Row) error { return nil }

// A state counts samples: it is gone on from with any batch size, at the sample behind
// the last one delivered, and the batches count on.
func TestAStateGoesOnWithAnotherBatchSize(t *testing.T) {
	for _, last := range []loader.LastPolicy{loader.Keep, loader.Drop, loader.Pad, loader.Exact} {
		for _, sizes := range [][2]int{{4, 6}, {6, 4}, {5, 1}, {1, 37}, {3, 8}} {
			o := loader.Options{Seed: 7, Shuffle: true, Last: last, Epochs: 1, Workers: 2}
			before := newNumbers(t, numbers{n: 37}, sizes[0], o)
			whole, err := readAll(t, before, loader.Cursor{}, 2)
			require.NoError(t, err)
			for stop := range len(whole) - 1 {
				state := before.StateAt(whole[stop].filled.After)
				after := newNumbers(t, numbers{n: 37}, sizes[1], o)
				require.NoError(t, after.Check(state))
				rest, err := readAll(t, after, state.Cursor(), 2)
				require.NoError(t, err)
				at := int64((stop + 1) * sizes[0])
				for i, b := range rest {
					require.Equal(t, at, b.filled.Position)
					require.Equal(t, rest[0].filled.Batch+i, b.filled.Batch)
					for row, index := range b.indices[:b.filled.Valid] {
						require.EqualValues(t, before.Order(0).At(at+int64(row)), index)
					}
					at += int64(b.filled.Valid)
				}
				if last == loader.Drop {
					require.Greater(t, at, int64(37-sizes[1]))
				} else {
					require.EqualValues(t, 37, at, "all samples, once each")
				}
			}
		}
	}
}

// A state is a file: whatever number stands in it is refused by its field's name, or
// can be gone on from.
func TestAStatesNumbersAreChecked(t *testing.T) {
	dataset := newNumbers(t, numbers{n: 10}, 4, loader.Options{})
	stream := newStream(t, upTo(10), 4, loader.Options{})
	for _, l := range []*loader.Loader{dataset, stream} {
		good := l.StateAt(loader.Cursor{Epoch: 1, Position: 4})
		require.NoError(t, l.Check(good))
		for _, c := range []struct {
			field, json string
			value       any
		}{
			{"Version", "version", 0}, {"Version", "version", 1}, {"Version", "version", -1},
			{"Fingerprint", "fingerprint", "0"}, {"Fingerprint", "fingerprint", fmt.Sprint(uint64(math.MaxUint64))},
			{"Seed", "seed", "1"},
			{"Shuffle", "shuffle", true},
			{"Epoch", "epoch", -1}, {"Epoch", "epoch", math.MaxInt}, {"Epoch", "epoch", 1<<30 + 1}, {"Epoch", "epoch", math.MinInt},
			{"Position", "position", -1}, {"Position", "position", int64(math.MinInt64)},
			{"Substituted", "substituted", -1}, {"Substituted", "substituted", 5}, {"Substituted", "substituted", math.MaxInt},
			{"Samples", "samples", 11}, {"Samples", "samples", -1}, {"Fields", "fields", "x uint8"},
		} {
			var file map[string]any
			text, err := json.Marshal(good)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(text, &file))
			file[c.json] = c.value
			text, err = json.Marshal(file)
			require.NoError(t, err)
			var bad loader.State
			require.NoError(t, json.Unmarshal(text, &bad))
			var state *loader.StateError
			require.ErrorAs(t, l.Check(bad), &state, "%s", text)
			require.Equal(t, c.field, state.Field)
			at := bad.Cursor()
			if at == good.Cursor() {
				continue
			}
			// The same place by hand.
			mem := heap(t, l, 1)
			run := l.Start(t.Context(), at, mem)
			_, err = run.Next(t.Context())
			require.ErrorAs(t, err, &state)
			require.Equal(t, "Cursor", state.Field)
			require.NoError(t, run.Close())
		}
		for _, at := range []loader.Cursor{{Epoch: 1 << 30}, {Epoch: 1 << 30, Position: 8}, {Position: 10}} {
			state := l.StateAt(at)
			require.GreaterOrEqual(t, state.Epoch, at.Epoch)
			mem := heap(t, l, 1)
			run := l.Start(t.Context(), state.Cursor(), mem)
			_, err := read(l, run, mem)
			require.True(t, err == nil || errors.Is(err, loader.ErrEpochEnd), "%v", err)
			require.NoError(t, run.Close())
		}
	}
	var state loader.State
	for _, text := range []string{`{"version":1e99}`, `{"epoch":"1"}`, `{"position":1.5}`, `{"seed":7}`, `{"fingerprint":"-1"}`, `[]`, `{"version":1`} {
		require.Error(t, json.Unmarshal([]byte(text), &state), text)
	}
	require.Error(t, dataset.Check(state), "what is left of a file that cannot be read")
}

// Where the number of substitutes is limited it is in the cursor, and in the state of
// the only rank.
func TestTheNumberOfSubstitutesIsInTheCursor(t *testing.T) {
	bad := func(_ context.Context, n int, _ *loader.Row) error {
		if n%3 == 0 {
			return &corrupt{n}
		}
		return nil
	}
	for _, limit := range []int{0, 100} {
		o := loader.Options{Epochs: 2, OnError: loader.Substitute, MaxSubstituted: limit}
		l := newNumbers(t, numbers{n: 16, before: bad}, 4, o)
		batches, err := readAll(t, l, loader.Cursor{}, 2)
		require.NoError(t, err)
		want := 0
		for i, b := range batches {
			if i == 4 {
				want = 0 // another epoch
			}
			if want += len(b.filled.Substituted); limit == 0 {
				want = 0
			}
			require.Equal(t, want, b.filled.After.Substituted)
			if i%4 < 3 {
				require.Equal(t, want, l.StateAt(b.filled.After).Substituted)
				require.Equal(t, b.filled.After, l.StateAt(b.filled.After).Cursor())
			} else {
				require.Zero(t, l.StateAt(b.filled.After).Substituted)
			}
			o.Shard.Count, o.Last = 2, loader.Drop
			require.Zero(t, newNumbers(t, numbers{n: 16}, 4, o).StateAt(b.filled.After).Substituted)
		}
		if limit == 0 {
			continue
		}
		// A cursor beyond the limit has none left.
		run := l.Start(t.Context(), loader.Cursor{Position: 4, Substituted: 4}, heap(t, l, 2))
		o.Shard.Count, o.Last, o.MaxSubstituted = 0, loader.Keep, 2
		lower := newNumbers(t, numbers{n: 16, before: bad}, 4, o)
		require.NoError(t, run.Close())
		mem := heap(t, lower, 2)
		run = lower.Start(t.Context(), loader.Cursor{Position: 4, Substituted: 4}, mem)
		_, err = run.Next(t.Context())
		var where *loader.Error
		require.ErrorAs(t, err, &where)
		require.Equal(t, 6, where.Sample)
		require.NoError(t, run.Close())
	}
}
