package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"text/tabwriter"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/leat-go/leat/serve"
)

// setting is a queue that is measured.
type setting struct {
	name     string
	maxBatch int
	options  serve.Options
}

// settings are a queue without batches, which computes one request at a time, and the one
// that the flags describe.
func (m *model) settings() []setting {
	return []setting{
		{"one at a time", 1, serve.Options{InFlight: 1}},
		{fmt.Sprintf("batches of up to %d", m.config.batch), m.config.batch, m.options()},
	}
}

// loadHTTP measures how the server does at rising rates, with batches and without.
func (m *model) loadHTTP(ctx context.Context, out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "server\trequests/s sent\tanswered/s\tp50\tp99\tanswered\t")
	for _, s := range m.settings() {
		if err := m.attacked(ctx, s, table); err != nil {
			return err
		}
	}
	return table.Flush()
}

// attacked serves under a setting, and doubles the rate until requests are lost or wait
// long, or can't be sent as fast as that, twice: once it may be another program's doing.
func (m *model) attacked(ctx context.Context, s setting, table io.Writer) (err error) {
	q, err := m.queue(s.maxBatch, s.options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return err
	}
	web := &http.Server{Handler: (&server{queue: q}).handler(), ReadHeaderTimeout: maxTime}
	go web.Serve(listener) // ends by Close
	defer web.Close()
	target := vegeta.NewStaticTargeter(vegeta.Target{Method: http.MethodPost,
		URL: fmt.Sprintf("http://%s/digit", listener.Addr()), Body: make([]byte, pixels)})
	misses := 0
	for rate := 500; misses < 2; rate *= 2 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		attacker := vegeta.NewAttacker(vegeta.Timeout(maxTime), vegeta.Connections(1000), vegeta.MaxWorkers(4000)) // for one attack
		var got vegeta.Metrics
		for result := range attacker.Attack(target, vegeta.Rate{Freq: rate, Per: time.Second}, m.config.loadFor, s.name) {
			got.Add(result)
		}
		got.Close()
		fmt.Fprintf(table, "%s\t%d\t%.0f\t%v\t%v\t%.1f%%\t\n", s.name, rate, got.Throughput,
			got.Latencies.P50.Round(time.Microsecond), got.Latencies.P99.Round(time.Microsecond), 100*got.Success)
		if got.Success < 0.99 || got.Latencies.P99 > 100*time.Millisecond || got.Rate < 0.8*float64(rate) {
			misses++
		}
	}
	return nil
}
