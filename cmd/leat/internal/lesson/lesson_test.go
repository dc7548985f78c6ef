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

const ms = time.Millisecond

func TestTheClassicNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := lesson.Give(t.Context(), lesson.Options{})
		require.NoError(t, err)
		require.Len(t, l.Parts, 2)
		for i, want := range [][3]time.Duration{{150 * ms, 150 * ms, 110 * ms}, {500 * ms, 500 * ms, 320 * ms}} {
			n := l.Parts[i].Batches
			for way, s := range l.Parts[i].Schedules {
				require.Equal(t, want[way], s.Total())
				require.Zero(t, s.Late)
				require.Len(t, s.Spans, 3*n)
			}
			require.Equal(t, 3*n, l.Parts[i].Schedules[lesson.Synchronous].Waits)
			require.Equal(t, 1, l.Parts[i].Schedules[lesson.SeveralStreams].Waits)
			require.Equal(t, 50*ms, l.Parts[i].Schedules[lesson.OneStream].Cycle())
			require.Equal(t, 30*ms, l.Parts[i].Schedules[lesson.SeveralStreams].Cycle())
		}
		pipelined := l.Parts[1].Schedules[lesson.SeveralStreams]
		require.InDelta(t, 20.0/320, pipelined.Bubble("compute"), 1e-12)
		require.InDelta(t, 220.0/320, pipelined.Bubble("H2D"), 1e-12)
	})
}

// reference is the end of the last batch by the recurrence of a flow shop: a stage
// starts when the batch's stage before has ended, and the stage's engine and the
// batch's stream are free.
func reference(o lesson.Options, batches, streams int) time.Duration {
	var engine [3]time.Duration
	stream := make([]time.Duration, streams)
	for i := range batches {
		at := &stream[i%streams]
		for stage, d := range []time.Duration{o.H2D, o.Compute, o.D2H} {
			*at = max(*at, engine[stage]) + d
			engine[stage] = *at
		}
	}
	var end time.Duration
	for _, t := range stream {
		end = max(end, t)
	}
	return end
}

func TestSchedulesAreThoseOfAFlowShop(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		stage := rapid.Int64Range(0, int64(100*ms))
		o := lesson.Options{
			H2D:     time.Duration(stage.Draw(rt, "h2d")),
			Compute: time.Duration(stage.Draw(rt, "compute")) + 1,
			D2H:     time.Duration(stage.Draw(rt, "d2h")),
			Depth:   rapid.IntRange(1, 5).Draw(rt, "depth"),
			Batches: []int{rapid.IntRange(1, 12).Draw(rt, "batches")},
		}
		synctest.Test(t, func(t *testing.T) {
			l, err := lesson.Give(t.Context(), o)
			require.NoError(t, err)
			n := o.Batches[0]
			s := l.Parts[0].Schedules
			serial := time.Duration(n) * (o.H2D + o.Compute + o.D2H)
			require.Equal(t, serial, s[lesson.Synchronous].Total())
			require.Equal(t, serial, s[lesson.OneStream].Total())
			require.Equal(t, reference(o, n, o.Depth), s[lesson.SeveralStreams].Total())
			require.NotEmpty(t, l.Verdict())
		})
	})
}

func TestOneCopyEngineServesBothDirections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := lesson.Give(t.Context(), lesson.Options{H2D: 30 * ms, Compute: 30 * ms, D2H: 30 * ms, Engines: 1, Batches: []int{10}})
		require.NoError(t, err)
		s := l.Parts[0].Schedules[lesson.SeveralStreams]
		require.Zero(t, s.Busy("H2D"))
		require.Equal(t, 600*ms, s.Busy("copy"))
		require.GreaterOrEqual(t, s.Total(), 600*ms)
		require.Contains(t, l.Verdict(), "copy")
	})
}

func TestTimesThatAreNotWorthTheTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := lesson.Give(t.Context(), lesson.Options{H2D: ms, Compute: 90 * ms})
		require.NoError(t, err)
		require.Contains(t, l.Verdict(), "hardly worth it")
	})
}

func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 70*ms)
		defer cancel()
		_, err := lesson.Give(ctx, lesson.Options{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
