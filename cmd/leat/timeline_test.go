package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/observe/timeline"
)

func TestTimelineDrawsWhatWasWritten(t *testing.T) {
	const ms = time.Millisecond
	tl := &timeline.Timeline{Title: "cpu:0", Length: 40 * ms, Notes: []string{"The device worked."}}
	loop := timeline.Lane{Group: timeline.Loop, Number: -1}
	worker := timeline.Lane{Group: timeline.Workers, Number: 3}
	for i := range 4 {
		at := time.Duration(i) * 10 * ms
		loop.Spans = append(loop.Spans,
			timeline.Span{Kind: timeline.Idle, From: at, To: at + 4*ms, Batch: i, Why: "producers"},
			timeline.Span{Kind: timeline.Body, From: at + 4*ms, To: at + 10*ms, Batch: i})
		worker.Spans = append(worker.Spans, timeline.Span{Kind: timeline.Reading, From: at, To: at + 4*ms, Sample: 40 + i, Samples: 1})
	}
	tl.Lanes = []timeline.Lane{worker, loop}
	in := filepath.Join(t.TempDir(), "run.json")
	file, err := os.Create(in)
	require.NoError(t, err)
	require.NoError(t, tl.WriteJSON(file))
	require.NoError(t, file.Close())

	draw := func(args ...string) string {
		var b strings.Builder
		require.NoError(t, run(t.Context(), append([]string{"timeline"}, args...), &b))
		return b.String()
	}
	require.Equal(t, `cpu:0: 40ms
worker 3 |rrrr      rrrr      rrrr      rrrr      |
loop     |----bbbbbb----bbbbbb----bbbbbb----bbbbbb| idle 40%: 40% producers
  r a worker reads samples
  b the loop's body
  - nothing to do, and why
The device worked.
`, draw(in, "-columns", "51"))
	require.Contains(t, draw("-steps", "2", in), "cpu:0: 20ms", "the last two")
	require.Contains(t, draw(in, "-steps", "0"), "cpu:0: 40ms")

	svg := filepath.Join(t.TempDir(), "run.svg")
	require.Empty(t, draw(in, "-o", svg))
	text, err := os.ReadFile(svg)
	require.NoError(t, err)
	require.Contains(t, string(text), "<svg ")
	require.Equal(t, 12, strings.Count(string(text), "ms</title>"), "a rectangle each")
}

func TestTimelineSaysWhatIsWrong(t *testing.T) {
	not := filepath.Join(t.TempDir(), "not.json")
	require.NoError(t, os.WriteFile(not, []byte(`{"traceEvents":[]}`), 0o600))
	for want, args := range map[string][]string{
		"name the file":          nil,
		"no such file":           {"missing.json"},
		"the format is":          {not},
		"unexpected argument":    {not, "more"},
		"ends in .svg":           {not, "-o", "run.png"},
		"-steps is -1":           {not, "-steps", "-1"},
		"flag provided but not ": {"-colour", not},
	} {
		var b strings.Builder
		require.ErrorContains(t, run(t.Context(), append([]string{"timeline"}, args...), &b), want)
	}
}
