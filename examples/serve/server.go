package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/leat-go/leat/serve"
)

//go:embed page
var page embed.FS

// server is a queue behind HTTP.
type server struct {
	queue  *queue
	ending atomic.Bool // an interrupt has come
}

// maxTime is how long a request may take, all in all.
const maxTime = 5 * time.Second

// serve answers until ctx ends, and then those requests that have come.
func (m *model) serve(ctx context.Context, out io.Writer) (err error) {
	q, err := m.queue(m.config.batch, m.options())
	if err != nil {
		return err
	}
	s := &server{queue: q}
	listener, err := net.Listen("tcp", m.config.address)
	if err != nil {
		return errors.Join(err, q.Close())
	}
	fmt.Fprintf(out, "listening on http://%s\n", listener.Addr())
	web := &http.Server{Handler: s.handler(), ReadHeaderTimeout: maxTime, ReadTimeout: maxTime}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }() // ends by Shutdown
	select {
	case err := <-failed:
		return errors.Join(err, q.Close())
	case <-ctx.Done():
	}
	s.ending.Store(true) // who asks about our health sends no more
	grace, cancel := context.WithTimeout(context.Background(), m.config.grace)
	defer cancel()
	err = errors.Join(web.Shutdown(grace), q.Shutdown(grace)) // first those who have come get their answers
	st := q.Stats()
	fmt.Fprintf(out, "answered %d requests, failed %d\n", st.Answered, st.Failed)
	return err
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	files, err := fs.Sub(page, "page")
	if err != nil {
		panic(err) // it is embedded
	}
	mux.Handle("GET /", private(http.FileServerFS(files)))
	mux.HandleFunc("POST /digit", s.digit)
	mux.HandleFunc("GET /stats", s.stats)
	mux.HandleFunc("GET /healthz", s.health)
	return mux
}

// private has a browser ask nobody but this server for anything.
func private(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		h.ServeHTTP(w, r)
	})
}

// digit answers with what is drawn in an image, whose pixels are the body.
func (s *server) digit(w http.ResponseWriter, r *http.Request) {
	image, err := io.ReadAll(http.MaxBytesReader(w, r.Body, pixels+1)) // one too many is told by Encode
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), maxTime)
	defer cancel()
	a, err := s.queue.Do(ctx, image)
	if err != nil {
		status := statusOf(err)
		if status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
		http.Error(w, err.Error(), status)
		return
	}
	reply(w, a)
}

// statusOf is HTTP's word for an error of Do.
func statusOf(err error) int {
	var e *serve.Error
	switch {
	case errors.Is(err, serve.ErrFull), errors.Is(err, serve.ErrClosed):
		return http.StatusServiceUnavailable
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	case errors.As(err, &e) && e.Stage == serve.StageEncode:
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

func (s *server) health(w http.ResponseWriter, _ *http.Request) {
	switch err := s.queue.Err(); {
	case err != nil: // the device is lost, perhaps: whoever asks starts this program again
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	case s.ending.Load():
		http.Error(w, "ending", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		log.Println("serve:", err) // the client has gone
	}
}

// stats are the queue's statistics.
func (s *server) stats(w http.ResponseWriter, _ *http.Request) {
	type durations struct {
		Mean float64 `json:"mean_ms"`
		P50  float64 `json:"p50_ms"`
		P90  float64 `json:"p90_ms"`
		P99  float64 `json:"p99_ms"`
		Max  float64 `json:"max_ms"`
	}
	in := func(d serve.Durations) durations {
		ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 }
		return durations{ms(d.Mean()), ms(d.Quantile(0.5)), ms(d.Quantile(0.9)), ms(d.Quantile(0.99)), ms(d.Max())}
	}
	st := s.queue.Stats()
	reply(w, map[string]any{
		"came": st.Came, "answered": st.Answered, "failed": st.Failed, "gave_up": st.GaveUp, "refused": st.Refused,
		"open": st.Open, "encoding": st.Encoding, "waiting": st.Waiting, "batches_in_flight": st.InFlight,
		"batches": st.Batches, "rows": st.Rows, "batch_sizes": st.Sizes, "fill": st.Fill(), "occupancy": st.Occupancy(),
		"latency": in(st.Latency), "line": in(st.Line),
	})
}
