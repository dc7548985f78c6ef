package waits

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/loader"
)

// Whenever a batch came how far: no moment of a wait is left out, and none counts twice.
func TestThePartsOfAWaitAreAllOfIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		later := func(than time.Time, name string) time.Time {
			return than.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, name)))
		}
		began := time.Unix(1, 0)
		var made loader.Times
		made.Asked = later(began, "asked")
		made.Opened = later(made.Asked, "opened")
		made.Filled = later(made.Opened, "filled")
		if rapid.Bool().Draw(t, "overtaken") {
			made.Overtaken = made.Opened
		}
		var short Shortage
		if rapid.Bool().Draw(t, "short") {
			short.From = later(made.Filled, "short")
			short.Freed = later(short.From, "freed")
			short.To = later(short.Freed, "to")
		}
		wait := Span{From: later(began, "from")}
		wait.To = later(wait.From, "until")
		w := Divide(wait, made, short, rapid.Bool().Draw(t, "in flight"))
		require.Equal(t, wait.To.Sub(wait.From), w.Producer+w.Order+w.Device+w.Release)
		require.GreaterOrEqual(t, min(w.Producer, w.Order, w.Device, w.Release), time.Duration(0))
	})
}
