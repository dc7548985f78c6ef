package observe_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/observe/journal"
	"github.com/leat-go/leat/observe/timeline"
	"github.com/leat-go/leat/prefetch"
)

// lesson is a pipeline whose timeline is small enough to be looked at: reading is a little slow
// for the device, one sample very slow, and copies lie under compute.
func lesson() load {
	return load{
		samples: 12, loader: loader.Options{Workers: 2},
		read: func(i int) time.Duration {
			if i == 7 {
				return 60 * ms
			}
			return 12*ms + time.Duration(i)*ms/10 // no two at one instant
		},
		copy: takes(3 * ms), compute: 8 * ms, body: sleeps(ms), transform: ms,
	}
}

// What is drawn is what the accounts add up.
func TestATimelineHasTheNumbersOfTheSnapshot(t *testing.T) {
	for name, l := range map[string]load{
		"lesson":      lesson(),
		"no device":   {samples: 20, read: same(5 * ms), body: sleeps(3 * ms)},
		"blocking":    {samples: 20, read: same(ms), copy: takes(4 * ms), compute: 2 * ms, prefetch: prefetch.Options{Memory: prefetch.Memory{Pageable: true}}},
		"synchronous": {samples: 20, read: same(ms), copy: takes(4 * ms), compute: 2 * ms, synchronize: true},
		"few slots":   {samples: 20, read: same(3 * ms), copy: takes(4 * ms), compute: 2 * ms, prefetch: prefetch.Options{Depth: 1, Memory: prefetch.Memory{HostSlots: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, rec := l.run(t)
				tl := rec.Timeline(s.Title())
				host, device := s.Host.Parts, s.Device.Parts
				require.Equal(t, host.Body, tl.Sum(timeline.Loop, timeline.Body, ""))
				for _, c := range journal.Causes {
					if c != journal.Body {
						require.Equal(t, *host.Of(c), tl.Sum(timeline.Loop, timeline.Idle, string(c)), c)
					}
				}
				require.Equal(t, s.Reads.Busy, tl.Sum(timeline.Workers, timeline.Reading, ""))
				if s.Device.Batches == 0 {
					return
				}
				require.Equal(t, s.Device.Copying, tl.Sum(timeline.Copies, timeline.Copying, ""))
				var idle time.Duration
				for _, c := range journal.Causes {
					idle += tl.Sum(timeline.Compute, timeline.Idle, string(c))
				}
				first := tl.Group(timeline.Compute)[0].Spans[0].Took()
				require.Equal(t, device.Sum(), idle+tl.Sum(timeline.Compute, timeline.Computing, "")-first)
				for _, lane := range tl.Lanes {
					for i, s := range lane.Spans {
						require.Less(t, s.From, s.To)
						require.LessOrEqual(t, s.To, tl.Length)
						require.True(t, i == 0 || lane.Spans[i-1].To <= s.From, "%s: %v then %v", lane.Name(), lane.Spans[max(i-1, 0)], s)
					}
				}
			})
		})
	}
}

// Copies are seen to lie under compute: while a batch is computed, later ones are copied.
func TestCopiesLieUnderCompute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := load{samples: 30, read: same(ms), copy: takes(3 * ms), compute: 8 * ms}
		s, rec := l.run(t)
		tl := rec.Timeline("")
		compute := tl.Group(timeline.Compute)[0].Spans
		require.Len(t, compute, 30, "without gaps")
		for i, c := range tl.Group(timeline.Copies)[0].Spans[1:] {
			require.LessOrEqual(t, compute[0].From, c.From)
			require.Less(t, c.Batch, 30)
			require.Equal(t, i+1, c.Batch)
			require.LessOrEqual(t, c.To, compute[i+1].From, "before it is computed")
		}
		require.InDelta(t, 1, s.Overlap(), 1e-9, "of all but the first, before which nothing was timed")
	})
}

// The committed picture of docs is drawn of this pipeline.
func TestTheTimelineOfTheDocs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lesson()
		s, rec := l.run(t)
		tl := rec.Timeline(s.Title())
		tl.Notes = []string{strings.TrimSpace(s.Explain().String())}
		if w := tl.Group(timeline.Workers); w[0].Spans[0].Sample != 0 { // either may have begun first
			w[0].Spans, w[1].Spans = w[1].Spans, w[0].Spans
		}
		var svg, text bytes.Buffer
		require.NoError(t, tl.WriteSVG(&svg))
		require.NoError(t, tl.WriteJSON(&text))
		again, err := timeline.Read(&text)
		require.NoError(t, err)
		require.Equal(t, tl, again)
		if out := os.Getenv("LEAT_DRAW"); out != "" {
			require.NoError(t, os.WriteFile(out, svg.Bytes(), 0o644))
		}
		want, err := os.ReadFile("../docs/timeline.svg")
		require.NoError(t, err)
		require.True(t, strings.ReplaceAll(string(want), "\r\n", "\n") == svg.String(), "LEAT_DRAW=../docs/timeline.svg go test -run Docs ./observe")
		t.Log("\n" + tl.Text(120))
	})
}

// A parser that knows nothing of this package finds events with what the format asks of them.
func TestTheJSONIsChromes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lesson()
		_, rec := l.run(t)
		var b bytes.Buffer
		require.NoError(t, rec.Timeline("x").WriteJSON(&b))
		var d struct {
			TraceEvents []map[string]any `json:"traceEvents"`
		}
		require.NoError(t, json.Unmarshal(b.Bytes(), &d))
		names, spans := map[float64]string{}, 0
		for _, e := range d.TraceEvents {
			switch e["ph"] {
			case "M":
				if e["name"] == "thread_name" {
					names[e["tid"].(float64)] = e["args"].(map[string]any)["name"].(string)
				}
			case "X":
				spans++
				require.Contains(t, names, e["tid"])
				require.GreaterOrEqual(t, e["ts"].(float64), 0.0)
				require.Positive(t, e["dur"].(float64))
				require.NotEmpty(t, e["name"])
			default:
				t.Fatalf("event %v", e)
			}
		}
		require.Greater(t, spans, 60)
		require.Contains(t, names, 1.0)
		require.Equal(t, "worker 0", names[1])
	})
}
