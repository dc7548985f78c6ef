package prefetch

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
		var short shortage
		if rapid.Bool().Draw(t, "short") {
			short.from = later(made.Filled, "short")
			short.freed = later(short.from, "freed")
			short.to = later(short.freed, "to")
		}
		wait := span{from: later(began, "from")}
		wait.to = later(wait.from, "until")
		w := divide(wait, made, short, rapid.Bool().Draw(t, "in flight"))
		require.Equal(t, wait.to.Sub(wait.from), w.producer+w.order+w.device+w.release)
		require.GreaterOrEqual(t, min(w.producer, w.order, w.device, w.release), time.Duration(0))
	})
}
