package lesson_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/cmd/leat/internal/lesson"
)

func TestTheClassicNumbersOfUnequalCards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := lesson.GiveDevices(t.Context(), lesson.DevicesOptions{})
		require.NoError(t, err)
		require.Equal(t, 5*ms+6*40*ms, l.InTurn.Total())
		require.Equal(t, 5*ms+8*20*ms, l.BySpeed.Total())
		require.Equal(t, 8*20*ms, l.BySpeed.Busy("card 0 compute"))
		require.Equal(t, 4*40*ms, l.BySpeed.Busy("card 1 compute"))
	})
}

// Every batch is computed once, whatever the cards; dealt by speed none of them works on for
// longer than a batch of its own behind the best that all could do together.
func TestBatchesAreDealtBySpeed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		times := rapid.SliceOfN(rapid.Int64Range(int64(ms), int64(50*ms)), 1, 5).Draw(rt, "compute")
		o := lesson.DevicesOptions{H2D: ms, Batches: rapid.IntRange(1, 40).Draw(rt, "batches")}
		rate, slowest := 0.0, time.Duration(0)
		for _, d := range times {
			o.Compute = append(o.Compute, time.Duration(d))
			rate += 1 / float64(d)
			slowest = max(slowest, time.Duration(d))
		}
		synctest.Test(t, func(t *testing.T) {
			l, err := lesson.GiveDevices(t.Context(), o)
			require.NoError(t, err)
			for _, s := range []lesson.Schedule{l.InTurn, l.BySpeed} {
				seen := make(map[int]int)
				for _, span := range s.Spans {
					seen[span.Batch]++
				}
				require.Len(t, seen, o.Batches)
				for batch, n := range seen {
					require.Equal(t, 2, n, "batch %d: a copy and a kernel", batch)
				}
			}
			require.LessOrEqual(t, l.BySpeed.Total(), time.Duration(float64(o.Batches)/rate)+slowest+ms+1)
			require.NotEmpty(t, l.String())
		})
	})
}

func TestEqualCardsAreDealtToInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := lesson.GiveDevices(t.Context(), lesson.DevicesOptions{H2D: ms, Compute: []time.Duration{9 * ms, 9 * ms}})
		require.NoError(t, err)
		require.Equal(t, l.InTurn, l.BySpeed)
		require.Contains(t, l.Verdict(), "nearly equal")

		ctx, cancel := context.WithTimeout(t.Context(), 20*ms)
		defer cancel()
		_, err = lesson.GiveDevices(ctx, lesson.DevicesOptions{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
