package loader_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
)

// A place that cannot be read is not the beginning.
func TestAStateWithOtherKeysIsNotRead(t *testing.T) {
	l := newNumbers(t, numbers{n: 10}, 4, loader.Options{})
	text, err := json.Marshal(l.StateAt(loader.Cursor{Epoch: 1, Position: 4}))
	require.NoError(t, err)
	for _, c := range []struct{ old, new, want string }{
		{`"position"`, `"positon"`, "loader: the state has no \"position\"\nloader: the state has a key \"positon\", which is not known"},
		{`"position"`, `"Position"`, "loader: the state has no \"position\"\nloader: the state has a key \"Position\", which is not known"},
		{`"version":3,`, ``, `loader: the state has no "version"`},
		{`"version":3`, `"version":null`, `loader: the state has no "version"`},
		{`"position":4`, `"position":null`, `loader: the state has no "position"`},
		{`"shuffle"`, `"Version":3,"shuffle"`, `loader: the state has a key "Version", which is not known`},
	} {
		before := l.StateAt(loader.Cursor{Position: 8})
		state := before
		changed := strings.Replace(string(text), c.old, c.new, 1)
		require.NotEqual(t, string(text), changed)
		err := json.Unmarshal([]byte(changed), &state)
		require.EqualError(t, err, c.want, "%s", changed)
		var bad *loader.StateError
		require.ErrorAs(t, err, &bad)
		require.Equal(t, before, state, "which is as it was")
	}

	// What another version has is not judged by this one's keys.
	var later loader.State
	require.NoError(t, json.Unmarshal([]byte(`{"version":4,"place":4}`), &later))
	require.EqualError(t, l.Check(later), "loader: the state is of version 4, this program reads version 3")

	// The number of substitutes is written only where it is not 0, and left from no other state.
	state := l.StateAt(loader.Cursor{Epoch: 1, Position: 8, Substituted: 3})
	require.NoError(t, json.Unmarshal(text, &state))
	require.Equal(t, loader.Cursor{Epoch: 1, Position: 4}, state.Cursor())

	var none loader.State
	require.NoError(t, json.Unmarshal([]byte("null"), &none))
	require.ErrorContains(t, l.Check(none), "the state is the zero value")
}
