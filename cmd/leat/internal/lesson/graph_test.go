package lesson_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/cmd/leat/internal/lesson"
)

const µs = time.Microsecond

// Every kernel that is launched takes the card a launch more, every one in a graph a node,
// and the graph a replay.
func TestAGraphSavesLaunches(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		of := func(name string, least int64) time.Duration {
			return time.Duration(rapid.Int64Range(least, int64(20*µs)).Draw(rt, name))
		}
		o := lesson.GraphOptions{
			Kernels: rapid.IntRange(1, 20).Draw(rt, "kernels"), Steps: rapid.IntRange(1, 6).Draw(rt, "steps"),
			Work: of("work", 1), Launch: of("launch", 1), Replay: of("replay", 1), Node: of("node", 0),
		}
		synctest.Test(t, func(t *testing.T) {
			l, err := lesson.GiveGraph(t.Context(), o)
			require.NoError(t, err)
			steps, kernels := time.Duration(o.Steps), time.Duration(o.Kernels)
			require.Equal(t, steps*kernels*(o.Launch+o.Work), l.Launched.Total())
			require.Equal(t, steps*(o.Replay+kernels*(o.Node+o.Work)), l.Replayed.Total())
			for _, s := range []lesson.Schedule{l.Launched, l.Replayed} {
				require.Equal(t, steps*kernels*o.Work, s.Busy("compute"))
				require.Equal(t, s.Total()/steps, s.Cycle())
			}
			require.NotEmpty(t, l.String())
		})
	})
}

func TestLongKernelsNeedNoGraph(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := lesson.GiveGraph(t.Context(), lesson.GraphOptions{Work: time.Millisecond, Launch: 5 * µs, Replay: 6 * µs, Node: µs})
		require.NoError(t, err)
		require.Contains(t, l.Verdict(), "hardly worth it")
	})
}

func TestMistakesInALessonAreReportedAtOnce(t *testing.T) {
	_, err := lesson.GiveGraph(t.Context(), lesson.GraphOptions{Kernels: -1, Steps: 1000, Work: -1, Launch: -2, Replay: -3, Node: -4})
	for _, field := range []string{"Kernels", "Steps", "Work", "Launch", "Replay", "Node"} {
		require.ErrorContains(t, err, field+" is")
	}
	_, err = lesson.GiveDevices(t.Context(), lesson.DevicesOptions{H2D: -1, Compute: append(make([]time.Duration, 8), -5), Batches: -2})
	for _, mistake := range []string{"H2D is", "Compute[0] is 0s", "Compute[8] is -5ns", "Compute has 9 cards", "Batches is"} {
		require.ErrorContains(t, err, mistake)
	}
}
