package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEditsNest(t *testing.T) {
	var e edits
	text := []byte("a b c")
	e.wrap(1, 2, 3, "<outer ", " outer>")
	e.wrap(2, 2, 3, "<inner ", " inner>")
	e.wrap(3, 0, 5, "{", "}")
	e.wrap(4, 0, 1, "[", "]")
	e.insert(5, 2, "!")
	e.insert(6, 0, "^")
	got, origin := e.apply(text)
	require.Equal(t, "^{[a] !<outer <inner b inner> outer> c}", string(got))
	for i, c := range got {
		if c == 'a' || c == 'c' {
			require.Equal(t, text[origin(i)], c, "offset %d", i)
		}
	}
	require.Equal(t, 2, origin(9), "inserted text is where it was inserted")
}

func TestNoEditsChangeNothing(t *testing.T) {
	got, origin := edits(nil).apply([]byte("abc"))
	require.Equal(t, "abc", string(got))
	require.Equal(t, 2, origin(2))
}
