package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/examples/train/mnist"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/serve"
)

// trained is a model that all tests share, one after the other.
var trained = sync.OnceValues(func() (*model, error) {
	c, err := parse([]string{"-device", "cpu", "-batch", "8"}, io.Discard)
	if err != nil {
		return nil, err
	}
	m, err := newModel(c)
	if err != nil {
		return nil, err
	}
	_, err = m.train(context.Background(), "")
	return m, err
})

// start serves the trained model.
func start(t *testing.T) (*server, string) {
	m, err := trained()
	require.NoError(t, err)
	q, err := m.queue(8, m.options())
	require.NoError(t, err)
	s := &server{queue: q}
	web := httptest.NewServer(s.handler())
	t.Cleanup(func() {
		web.Close()
		require.NoError(t, q.Shutdown(context.Background()))
	})
	return s, web.URL
}

// testImages are some of MNIST's test images, and what they are.
func testImages(t *testing.T, n int) (images [][]byte, labels []byte) {
	_, test, err := mnist.Open(t.Context(), "")
	require.NoError(t, err)
	scratch, err := loader.NewScratch(test.Fields())
	require.NoError(t, err)
	for i := range n {
		row := scratch.Begin(new(loader.Row))
		require.NoError(t, test.Read(t.Context(), i, row))
		images = append(images, bytes.Clone(row.Bytes("image")))
		labels = append(labels, row.Bytes("label")[0])
	}
	return images, labels
}

func post(t *testing.T, url string, body []byte) (status int, text string) {
	t.Helper()
	r, err := http.Post(url+"/digit", "application/octet-stream", bytes.NewReader(body))
	require.NoError(t, err)
	defer r.Body.Close()
	all, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return r.StatusCode, string(all)
}

func TestDigitsAreKnown(t *testing.T) {
	_, url := start(t)
	images, labels := testImages(t, 500)
	var asking sync.WaitGroup
	var mu sync.Mutex
	right := 0
	for i := range images {
		asking.Go(func() {
			status, text := post(t, url, images[i])
			var a answer
			if status != http.StatusOK || json.Unmarshal([]byte(text), &a) != nil {
				t.Errorf("image %d: %d %s", i, status, text)
				return
			}
			sum := float32(0)
			for _, s := range a.Shares {
				sum += s
			}
			if sum < 0.999 || sum > 1.001 {
				t.Errorf("image %d: shares %v", i, a.Shares)
			}
			mu.Lock()
			defer mu.Unlock()
			if a.Digit == int(labels[i]) {
				right++
			}
		})
	}
	asking.Wait()
	require.Greater(t, right, 450)

	r, err := http.Get(url + "/stats")
	require.NoError(t, err)
	defer r.Body.Close()
	var st struct {
		Answered int64
		Rows     int64
		Sizes    []int64 `json:"batch_sizes"`
		Latency  struct {
			P50 float64 `json:"p50_ms"`
			P99 float64 `json:"p99_ms"`
		}
	}
	require.NoError(t, json.NewDecoder(r.Body).Decode(&st))
	require.EqualValues(t, 500, st.Answered)
	require.EqualValues(t, 500, st.Rows)
	require.Len(t, st.Sizes, 9)
	require.Positive(t, st.Latency.P50)
	require.GreaterOrEqual(t, st.Latency.P99, st.Latency.P50)
}

func TestBadRequests(t *testing.T) {
	s, url := start(t)
	for name, c := range map[string]struct {
		body []byte
		want int
		text string
	}{
		"short": {make([]byte, pixels-1), http.StatusBadRequest, "image"},
		"long":  {make([]byte, pixels+1), http.StatusBadRequest, "image"},
		"huge":  {make([]byte, 1<<20), http.StatusRequestEntityTooLarge, "too large"},
		"none":  {nil, http.StatusBadRequest, "image"},
	} {
		status, text := post(t, url, c.body)
		require.Equal(t, c.want, status, name)
		require.Contains(t, text, c.text, name)
	}
	health := func() int {
		r, err := http.Get(url + "/healthz")
		require.NoError(t, err)
		r.Body.Close()
		return r.StatusCode
	}
	require.Equal(t, http.StatusOK, health())
	s.ending.Store(true)
	require.Equal(t, http.StatusServiceUnavailable, health())
	require.NoError(t, s.queue.Shutdown(t.Context()))
	status, _ := post(t, url, make([]byte, pixels))
	require.Equal(t, http.StatusServiceUnavailable, status)
}

func TestErrorsHaveTheirStatus(t *testing.T) {
	for want, err := range map[int]error{
		http.StatusServiceUnavailable:  &serve.Error{Stage: serve.StagePlace, Err: serve.ErrFull},
		http.StatusGatewayTimeout:      &serve.Error{Stage: serve.StageLine, Err: context.DeadlineExceeded},
		http.StatusBadRequest:          &serve.Error{Stage: serve.StageEncode, Err: io.ErrUnexpectedEOF},
		http.StatusInternalServerError: &serve.Error{Stage: serve.StageStep, Err: io.ErrUnexpectedEOF},
	} {
		require.Equal(t, want, statusOf(err))
	}
}

// output is what a program prints, while it runs.
type output struct {
	mu   sync.Mutex
	text strings.Builder
	line chan struct{} // something was printed
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p)
	select {
	case o.line <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// An interrupt while requests are under way loses none of them.
func TestInterruptedItAnswersWhatHasCome(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	out := &output{line: make(chan struct{}, 1)}
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"-device", "cpu", "-address", "localhost:0", "-wait", "100ms", "-batch", "64"}, out)
	}()
	var url string
	for url == "" {
		select {
		case <-out.line:
			_, after, _ := strings.Cut(out.String(), "listening on ")
			url = strings.TrimSpace(after)
		case err := <-ended:
			t.Fatal(err)
		}
	}
	status, _ := post(t, url, make([]byte, pixels))
	require.Equal(t, http.StatusOK, status)
	var asking sync.WaitGroup
	for range 20 { // they wait for others
		asking.Go(func() {
			status, text := post(t, url, make([]byte, pixels))
			if status != http.StatusOK {
				t.Errorf("%d %s", status, text)
			}
		})
	}
	open := func() (st struct{ Open int }) {
		r, err := http.Get(url + "/stats")
		require.NoError(t, err)
		defer r.Body.Close()
		require.NoError(t, json.NewDecoder(r.Body).Decode(&st))
		return st
	}
	for deadline := time.Now().Add(time.Minute); open().Open == 0 && time.Now().Before(deadline); {
	}
	asking.Wait()
	for range 20 {
		asking.Go(func() {
			r, err := http.Post(url+"/digit", "", bytes.NewReader(make([]byte, pixels)))
			if err != nil {
				return // it came too late
			}
			defer r.Body.Close()
			if r.StatusCode != http.StatusOK {
				t.Errorf("%d", r.StatusCode)
			}
		})
	}
	interrupt()
	require.NoError(t, <-ended)
	asking.Wait()
	require.Contains(t, out.String(), "failed 0")
}

func TestMistakesInFlags(t *testing.T) {
	_, err := parse([]string{"-batch", "0", "-load", "x", "-load-for", "0s", "more"}, io.Discard)
	for _, flag := range []string{"-batch is 0", `-load is "x"`, "-load-for is 0s", `unexpected argument "more"`} {
		require.ErrorContains(t, err, flag)
	}
	_, err = parse([]string{"-hidden", "3,x"}, io.Discard)
	require.ErrorContains(t, err, `"x" is no width`)
	c, err := parse([]string{"-hidden", "3,4"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, []int{3, 4}, c.hidden)
}

// The measurements measure something: what, depends on the machine.
func TestLoads(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it measures for some seconds")
	}
	m, err := trained()
	require.NoError(t, err)
	var out bytes.Buffer
	m.config.loadFor = 50 * time.Millisecond
	require.NoError(t, m.loadHTTP(t.Context(), &out))
	require.Contains(t, out.String(), "one at a time")
	require.Contains(t, out.String(), "batches of up to 8")

	q, err := m.queue(8, m.options())
	require.NoError(t, err)
	got, err := (&load{queue: q, lasts: 100 * time.Millisecond, image: make([]byte, pixels)}).offer(t.Context(), 1000)
	require.NoError(t, err)
	require.InDelta(t, 1000, got.rate, 400)
	require.Positive(t, got.p50)
	require.GreaterOrEqual(t, got.p99, got.p50)
	require.GreaterOrEqual(t, got.rows, 1.0)
	require.NoError(t, q.Close())
}
