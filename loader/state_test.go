package loader_test

import (
	"encoding/json"
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
	l := newNumbers(t, numbers{n: 10}, loader.Options{BatchSize: 4, Seed: 1 << 63, Shuffle: true})
	state := l.StateAt(loader.Cursor{Epoch: 2, Position: 4})
	require.Equal(t, 1, state.World)
	require.Equal(t, 4, state.Batch)
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
	keep := newNumbers(t, numbers{n: 10}, loader.Options{BatchSize: 4})
	require.Equal(t, next, keep.StateAt(loader.Cursor{Epoch: 2, Position: 10}).Cursor())
	require.Equal(t, loader.Cursor{Epoch: 2, Position: 8}, keep.StateAt(loader.Cursor{Epoch: 2, Position: 8}).Cursor())
	drop := newNumbers(t, numbers{n: 10}, loader.Options{BatchSize: 4, Last: loader.Drop})
	require.Equal(t, next, drop.StateAt(loader.Cursor{Epoch: 2, Position: 8}).Cursor(), "two samples are left, too few for a batch")

	stream := newStream(t, upTo(10), loader.Options{BatchSize: 4})
	at := loader.Cursor{Epoch: 2, Position: 10}
	require.Equal(t, at, stream.StateAt(at).Cursor(), "whose length is not known")
}

func TestEveryRankHasTheSameState(t *testing.T) {
	o := loader.Options{BatchSize: 2, Last: loader.Drop, Epochs: 1}
	o.Shard.Count = 4
	var states []loader.State
	for rank := range 4 {
		o.Shard.Index = rank
		l := newNumbers(t, numbers{n: 20}, o)
		batches, err := readAll(t, l, loader.Cursor{}, 2)
		require.NoError(t, err)
		states = append(states, l.StateAt(batches[0].filled.After))
	}
	for _, s := range states {
		require.Equal(t, states[0], s)
	}
}

func TestAStateOfOtherDataIsRefused(t *testing.T) {
	o := loader.Options{BatchSize: 4, Seed: 7, Shuffle: true}
	l, err := loader.New(marked{numbers{n: 10}, 1}, o)
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
		l, err := loader.New(ds, o)
		require.NoError(t, err)
		return l
	}
	require.Equal(t, []string{"Fingerprint"}, refused(other(marked{numbers{n: 10}, 2}, o), state), "other contents")
	require.Equal(t, []string{"Fingerprint"}, refused(other(marked{numbers{n: 11}, 1}, o), state), "another length")
	require.Equal(t, []string{"Fingerprint", "Position"}, refused(other(marked{numbers{n: 5}, 1}, o), state))
	renamed := loader.FromSlice(make([]int, 10), []loader.Field{{Name: "y", DType: dtype.Int64}}, encodeNumber)
	require.Equal(t, []string{"Fingerprint"}, refused(other(renamed, o), state), "other fields")
	o.Seed, o.Shuffle = 8, false
	require.Equal(t, []string{"Seed", "Shuffle"}, refused(other(marked{numbers{n: 10}, 1}, o), state))
	state.Version = 2
	require.Equal(t, []string{"Version"}, refused(l, state))
	require.Equal(t, []string{"Version"}, refused(l, loader.State{}), "a file that is no state")
	state.Version, state.Epoch, state.Position = 1, -1, 11
	require.Equal(t, []string{"Epoch", "Position"}, refused(l, state))
}

func TestAStateGoesOnInAnotherWorld(t *testing.T) {
	o := loader.Options{BatchSize: 4, Seed: 7, Shuffle: true, Last: loader.Drop, Epochs: 1}
	state := newNumbers(t, numbers{n: 40}, o).StateAt(loader.Cursor{Position: 8})
	o.BatchSize, o.Shard.Count, o.Workers = 1, 4, 3
	require.NoError(t, newNumbers(t, numbers{n: 40}, o).Check(state))
}
