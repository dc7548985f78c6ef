package timeline_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/cmd/leat/internal/timeline"
)

const ms = time.Millisecond

func TestColumnIsRoundAndCovers(t *testing.T) {
	require.Equal(t, 10*ms, timeline.Column(500*ms, 70))
	require.Equal(t, 5*ms, timeline.Column(150*ms, 70))
	require.Equal(t, time.Nanosecond, timeline.Column(7, 70))
	rapid.Check(t, func(t *rapid.T) {
		total := time.Duration(rapid.Int64Range(1, int64(1000*time.Hour)).Draw(t, "total"))
		columns := rapid.IntRange(1, 200).Draw(t, "columns")
		column := timeline.Column(total, columns)
		require.LessOrEqual(t, int64(total), int64(column)*int64(columns))
		if column > 1 {
			require.Greater(t, int64(total), int64(column)*2/5*int64(columns), "the next smaller step would do")
		}
	})
}

func TestDraw(t *testing.T) {
	rows := []timeline.Row{
		{Name: "in", Spans: []timeline.Span{{Start: 0, End: 10 * ms, Label: '1'}, {Start: 10 * ms, End: 20 * ms, Label: '2'}}},
		{Name: "compute", Spans: []timeline.Span{{Start: 10 * ms, End: 24 * ms, Label: '1'}, {Start: 24 * ms, End: 35 * ms, Label: '2'}}},
		{Name: "out"},
	}
	require.Equal(t, ""+
		"in       1122···\n"+
		"compute  ··11122\n"+
		"out      ·······\n", timeline.Draw(rows, 35*ms, 5*ms))
}

func TestAColumnShowsWhatTakesMostOfIt(t *testing.T) {
	row := []timeline.Row{{Spans: []timeline.Span{{Start: 0, End: 4, Label: 'a'}, {Start: 14, End: 20, Label: 'b'}, {Start: 25, End: 30, Label: 'c'}}}}
	require.Equal(t, "  abc·\n", timeline.Draw(row, 40, 10))
}
