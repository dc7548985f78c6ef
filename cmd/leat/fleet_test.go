package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/cmd/leat/internal/fleet"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/observe"
	"github.com/leat-go/leat/observe/ui"
	"github.com/leat-go/leat/prefetch"
)

// slowly is samples that take a time to read.
type slowly struct{ read time.Duration }

func (slowly) Len() int { return 1 << 20 }

func (slowly) Fields() []loader.Field { return []loader.Field{{Name: "x", DType: dtype.Uint8}} }

func (s slowly) Read(_ context.Context, _ int, row *loader.Row) error {
	time.Sleep(s.read)
	return loader.Write(row, "x", byte(1))
}

// rank is a page of a rank that trains until the test ends.
func rank(t *testing.T, index int, read time.Duration) string {
	ld, err := loader.New(slowly{read}, 2, loader.Options{Workers: 1, Shard: loader.Shard{Index: index, Count: 3}, Last: loader.Drop})
	require.NoError(t, err)
	pf, err := prefetch.NewHost(ld, prefetch.Options{Recorder: observe.NewRecorder(observe.Options{})})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pf.Close()) })
	page := ui.New(ui.Options{})
	page.Show("train", pf)
	s := httptest.NewServer(page)
	t.Cleanup(s.Close)
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for _, err := range pf.All(ctx) {
			if err != nil {
				return // it is stopped
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	t.Cleanup(func() { stop(); done.Wait() })
	return s.URL + "/debug/leat/"
}

func TestFleetNamesTheSlowRank(t *testing.T) {
	urls := []string{rank(t, 0, 0), rank(t, 1, 50*time.Millisecond), rank(t, 2, 0)}
	printed := output(t, "fleet", urls[2], urls[1], "-interval", "600ms", urls[0])
	require.Contains(t, printed, "Rank 1 on ")
	require.Contains(t, printed, "is the slow one: a step waits for producers for ")
	require.Regexp(t, `(?m)^ +1 .* `+urls[1]+` <- slow *$`, printed)

	var b bytes.Buffer
	err := run(t.Context(), []string{"fleet", "-json", "-interval=600ms", urls[0], urls[1], "127.0.0.1:1"}, &b)
	require.ErrorContains(t, err, "127.0.0.1:1", "one gave no answer")
	var r struct {
		Pages    []fleet.Page
		Verdicts []fleet.Verdict
	}
	require.NoError(t, json.Unmarshal(b.Bytes(), &r))
	require.Equal(t, urls[1], r.Verdicts[0].Slow)
	require.Len(t, r.Pages, 3)
	require.NotEmpty(t, r.Pages[2].Error)
}

func TestFleetReportsAllMistakesAtOnce(t *testing.T) {
	var b bytes.Buffer
	err := run(t.Context(), []string{"fleet", "-interval", "0s", "ftp://x/", "-timeout=-1s", "-what"}, &b)
	for _, mistake := range []string{"-interval is 0s", "ftp://x/", "-timeout is -1s", "-what"} {
		require.ErrorContains(t, err, mistake)
	}
	require.ErrorContains(t, run(t.Context(), []string{"fleet"}, &b), "URL… is missing")
	require.Empty(t, b.String())
}
