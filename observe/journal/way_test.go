package journal_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/observe/journal"
)

// Whenever a batch came how far: no moment of a wait is left out, and none counts twice.
func TestThePartsOfAWaitAreAllOfIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		later := func(than time.Time, name string) time.Time {
			return than.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, name)))
		}
		began := time.Unix(1, 0)
		w := journal.Way{Staged: rapid.Bool().Draw(t, "staged")}
		w.Asked = later(began, "asked")
		w.Opened = later(w.Asked, "opened")
		w.Filled = later(w.Opened, "filled")
		if rapid.Bool().Draw(t, "overtaken") {
			w.Overtaken = w.Opened
		}
		placed := w.Filled
		if rapid.Bool().Draw(t, "short") {
			w.Short = later(w.Filled, "short")
			w.Freed = later(w.Short, "freed")
			w.Placed = later(w.Freed, "placed")
			placed = w.Placed
		}
		if rapid.Bool().Draw(t, "transform") {
			w.Copying = later(placed, "copying")
		}
		from := later(began, "from")
		to := later(from, "until")
		p := w.Divide(from, to)
		require.Equal(t, to.Sub(from), p.Sum())
		at, before := from, journal.Cause("")
		var again journal.Parts
		w.Causes(from, to, func(c journal.Cause, from, to time.Time) {
			require.Equal(t, at, from, "one behind the other")
			require.True(t, to.After(from), "none is empty")
			*again.Of(c) += to.Sub(from)
			at, before = to, c
		})
		require.Equal(t, to, at)
		require.Equal(t, p, again)
		require.Zero(t, p.Body, before)
	})
}

func TestPartsAddUp(t *testing.T) {
	var all journal.Parts
	for i, c := range journal.Causes {
		*all.Of(c) = time.Duration(1 << i)
	}
	require.Equal(t, time.Duration(1<<len(journal.Causes)-1), all.Sum())
	require.Equal(t, all.Sum()-all.Body, all.Wait())
	require.Equal(t, 2*all.Sum(), all.Plus(all).Sum())
	require.Equal(t, all, all.Plus(all).Minus(all))
	require.Equal(t, journal.Parts{}, all.Minus(all))
	require.Panics(t, func() { all.Of("weather") })
}
