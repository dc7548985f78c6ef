package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/observe/journal"
	"github.com/leat-go/leat/observe/ui"
)

// page is a page of one rank, a step of which took these milliseconds.
func page(rank int, node string, parts map[journal.Cause]float64) Page {
	const steps = 100
	a := ui.Account{Of: "device", Steps: steps}
	for _, c := range journal.Causes {
		a.Parts = append(a.Parts, ui.Part{Cause: string(c), Seconds: parts[c] * steps / 1e3})
	}
	return Page{URL: fmt.Sprintf("http://%s:%d", node, 6060+rank), Report: &ui.Report{
		Format: ui.Format, Node: node,
		Pipelines: []ui.Pipeline{{Name: "train", Rank: rank, Ranks: 8, Account: a}},
	}}
}

type parts = map[journal.Cause]float64

func TestTheSlowRankIsNamed(t *testing.T) {
	even := parts{journal.Producers: 0.2, journal.Device: 19.8}
	for name, c := range map[string]struct {
		pages       []Page
		slow, stage string
		node        string
		says        string
	}{
		// All make a step in 20 ms, since they wait for rank 2 in their device's part.
		"slow producers": {
			[]Page{page(0, "a", even), page(1, "a", even), page(2, "b", parts{journal.Producers: 8, journal.Device: 12}), page(3, "b", even)},
			"http://b:6062", "producers", "", "Rank 2 on b is the slow one: a step waits for producers for 8ms, 7.8ms longer than half of the others.",
		},
		"a slow bus": {
			[]Page{page(0, "a", parts{journal.Copy: 9, journal.Device: 11}), page(1, "a", even)},
			"http://a:6060", "copy", "", "the copy for 9ms",
		},
		"a slow node": {
			[]Page{page(0, "a", even), page(1, "a", even), page(2, "a", even), page(3, "a", even),
				page(4, "b", parts{journal.Order: 7, journal.Device: 13}), page(5, "b", parts{journal.Order: 8, journal.Device: 12}),
				page(6, "b", parts{journal.Order: 9, journal.Device: 11}), page(7, "b", parts{journal.Order: 8, journal.Device: 12})},
			"http://b:6066", "order", "b", "All 4 ranks on b are slow, and no others",
		},
		"slow work, of ranks that don't wait for each other": {
			[]Page{page(0, "a", parts{journal.Device: 20}), page(1, "a", parts{journal.Device: 30}), page(2, "a", parts{journal.Device: 20})},
			"http://a:6061", "device", "", "don't wait for each other",
		},
		"slow body": {
			[]Page{page(0, "a", parts{journal.Device: 20}), page(1, "a", parts{journal.Device: 20, journal.Body: 5}), page(2, "a", parts{journal.Device: 20})},
			"http://a:6061", "body", "", "has work in the loop for 5ms, 5ms longer",
		},
		"even":     {[]Page{page(0, "a", even), page(1, "b", even), page(2, "b", parts{journal.Producers: 0.5, journal.Device: 19.5})}, "", "", "", "No rank holds up the others"},
		"one":      {[]Page{page(0, "a", even)}, "", "", "", "one rank"},
		"no steps": {[]Page{page(0, "a", even), {Report: &ui.Report{Node: "b", Pipelines: []ui.Pipeline{{Name: "train", Rank: 1}}}}}, "", "", "", "1 of 2 ranks made no step"},
	} {
		all := Compare(c.pages)
		require.Len(t, all, 1, name)
		v := all[0]
		require.Equal(t, [3]string{c.slow, c.stage, c.node}, [3]string{v.Slow, v.Stage, v.Node}, "%s: %v", name, v.Sentences)
		require.Contains(t, strings.Join(v.Sentences, " "), c.says, name)
	}
}

func TestPipelinesAreComparedByName(t *testing.T) {
	two := page(0, "a", parts{journal.Device: 1})
	other := two.Report.Pipelines[0]
	other.Name = "validation"
	two.Report.Pipelines = append(two.Report.Pipelines, other)
	all := Compare([]Page{two, {URL: "gone", Error: "refused"}, page(1, "a", parts{journal.Device: 1})})
	require.Len(t, all, 2)
	require.Len(t, all[0].Ranks, 2)
	require.Len(t, all[1].Ranks, 1)
	var b bytes.Buffer
	require.NoError(t, Write(&b, []Page{{URL: "gone", Error: "refused"}}, all))
	require.Contains(t, b.String(), "no answer from gone: refused")
	require.Contains(t, b.String(), "validation\n")
}

func TestAddresses(t *testing.T) {
	for in, want := range map[string]string{
		"node1:6060":                          "http://node1:6060/debug/leat/report.json",
		"http://node1:6060":                   "http://node1:6060/debug/leat/report.json",
		"https://node1/debug/leat":            "https://node1/debug/leat/report.json",
		"http://[::1]:6060/a/b/":              "http://[::1]:6060/a/b/report.json",
		"localhost:6060/debug/leat/":          "http://localhost:6060/debug/leat/report.json",
		"http://node1:6060/debug/leat/?q=1#x": "http://node1:6060/debug/leat/report.json?q=1#x",
	} {
		got, err := Address(in)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, in := range []string{"ftp://node1/", "file:///etc/passwd", "http://", "", "http://a b/"} {
		_, err := Address(in)
		require.Error(t, err, in)
	}
}

// What is no page, or has a foreign name for one, is told as itself, and nothing that a page
// says can move a terminal's cursor.
func TestPagesThatGiveNoAnswer(t *testing.T) {
	serve := func(h http.HandlerFunc) string {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return s.URL
	}
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	other := serve(func(w http.ResponseWriter, _ *http.Request) { t.Error("a redirect was followed") })
	pages := map[string]string{
		serve(func(w http.ResponseWriter, r *http.Request) { // as a request under a foreign name
			r.Host = "attacker.example"
			ui.Handler().ServeHTTP(w, r)
		}): "403 Forbidden: \"attacker.example\" is not a name of this page",
		serve(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other, http.StatusFound) }): "302 Found",
		serve(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }):                      "no page of package ui",
		serve(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }):                          `want "leat page 1"`,
		serve(func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, most+2)) }):                "larger than",
		serve(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "a\x1b[2Jb", 500) }):              "500 Internal Server Error: a?[2Jb",
		serve(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-ended:
			case <-r.Context().Done():
			}
		}): "deadline",
		"http://127.0.0.1:1": "refused",
		serve(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"format":%q,"node":"n\u001b[1m","pipelines":[{"name":"t\u0007\u202e"}]}`, ui.Format)
		}): "",
	}
	var urls []string
	for u := range pages {
		urls = append(urls, u)
	}
	all, err := Read(t.Context(), urls, Options{Interval: time.Millisecond, Timeout: time.Second})
	require.NoError(t, err)
	for _, p := range all {
		if want := pages[p.URL]; want != "" {
			require.Nil(t, p.Report, p.URL)
			require.Contains(t, p.Error, want)
			continue
		}
		require.Equal(t, "n?[1m", p.Report.Node)
		require.Equal(t, "t??", p.Report.Pipelines[0].Name)
	}
	cause := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, err = Read(ctx, urls, Options{Interval: time.Hour, Timeout: time.Second})
	require.ErrorIs(t, err, cause)
}
