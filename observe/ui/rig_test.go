package ui_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/observe"
	"github.com/leat-go/leat/observe/ui"
	"github.com/leat-go/leat/prefetch"
)

const (
	samples  = 1 << 20
	rowBytes = 256
)

// data is samples that take a time to read.
type data struct{ read time.Duration }

func (data) Len() int { return samples }

func (data) Fields() []loader.Field {
	return []loader.Field{{Name: "x", DType: dtype.Uint8, Shape: []int{rowBytes}}}
}

func (d data) Read(_ context.Context, _ int, row *loader.Row) error {
	time.Sleep(d.read)
	clear(row.Bytes("x"))
	return nil
}

func newLoader(t *testing.T, d loader.Dataset, o loader.Options) *loader.Loader {
	t.Helper()
	ld, err := loader.New(d, 16, o)
	require.NoError(t, err)
	return ld
}

// onDevice is a pipeline to a modelled device, whose copies take 1 ms.
func onDevice(t *testing.T, d loader.Dataset, o loader.Options, rec *observe.Recorder) *prefetch.Prefetcher {
	t.Helper()
	copies := func(cpu.Direction, int64) time.Duration { return time.Millisecond }
	dev, err := cpu.Open(cpu.Options{Model: &cpu.Model{CopyTime: copies}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	compute, err := dev.NewStream(device.StreamOptions{Name: "compute"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, compute.Close()) })
	po := prefetch.Options{Timing: true}
	if rec != nil {
		po.Recorder = rec
	}
	pf, err := prefetch.New(compute, newLoader(t, d, o), po)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Synchronize(context.Background())); require.NoError(t, pf.Close()) })
	return pf
}

// onHost is a pipeline to the host.
func onHost(t *testing.T, d loader.Dataset, o loader.Options, po prefetch.Options) *prefetch.Prefetcher {
	t.Helper()
	pf, err := prefetch.NewHost(newLoader(t, d, o), po)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pf.Close()) })
	return pf
}

// train takes batches until the test ends; each step takes so long, on the device if there is
// one.
func train(t *testing.T, pf *prefetch.Prefetcher, step time.Duration) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for b, err := range pf.All(ctx) {
			if err != nil {
				return // it is stopped
			}
			if s := b.Stream(); s != nil {
				if s.Launch(cpu.Busy(step)) != nil {
					return
				}
				continue
			}
			time.Sleep(step)
		}
	})
	t.Cleanup(func() { stop(); done.Wait() })
}

// take takes so many batches.
func take(t *testing.T, pf *prefetch.Prefetcher, n int) {
	t.Helper()
	for _, err := range pf.Batches(t.Context()) {
		require.NoError(t, err)
		if n--; n == 0 {
			return
		}
	}
}

// serve is a server of a page, and the page's address.
func serve(t *testing.T, p *ui.Page) string {
	mux := http.NewServeMux()
	mux.Handle("/debug/leat/", p)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL + "/debug/leat/"
}

// get is the answer to a request.
func get(t testing.TB, h http.Handler, path string) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequest("GET", "http://localhost:6060/debug/leat/"+path, nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	text, err := io.ReadAll(w.Result().Body)
	require.NoError(t, err)
	return w.Result(), string(text)
}
