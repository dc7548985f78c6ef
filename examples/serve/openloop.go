package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"
)

// loadDo finds, for calls of Do without HTTP, the highest rate at which the latency of all
// but one in a hundred stays below three times what it is without load and without batches.
func (m *model) loadDo(ctx context.Context, out io.Writer) error {
	settings := m.settings()
	alone, err := m.measured(ctx, settings[0], func(l *load) (trial, error) {
		if _, err := l.offer(ctx, unloaded); err != nil { // the first are slow
			return trial{}, err
		}
		return l.offer(ctx, unloaded)
	})
	if err != nil {
		return err
	}
	bound := 3 * alone.p99
	fmt.Fprintf(out, "%s, network of widths %d, %v, %d\n", m.dev.Name(), pixels, m.config.hidden, digits)
	fmt.Fprintf(out, "one at a time and without load p50 is %v and p99 %v, so p99 may be %v\n\n", alone.p50, alone.p99, bound)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "queue\thighest rate/s\tp50\tp99\trows a batch\t")
	var rates []float64
	for _, s := range settings {
		best, err := m.measured(ctx, s, func(l *load) (trial, error) { return l.highest(ctx, bound) })
		if err != nil {
			return err
		}
		rates = append(rates, best.rate)
		fmt.Fprintf(table, "%s\t%.0f\t%v\t%v\t%.1f\t\n", s.name, best.rate, best.p50, best.p99, best.rows)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nbatches carry %.1f times as much\n", rates[1]/rates[0])
	return nil
}

// measured makes a queue for a measurement.
func (m *model) measured(ctx context.Context, s setting, measure func(*load) (trial, error)) (t trial, err error) {
	q, err := m.queue(s.maxBatch, s.options)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	return measure(&load{queue: q, lasts: m.config.loadFor, image: make([]byte, pixels)})
}

// load offers requests to a queue at a rate, whether or not it can carry them.
type load struct {
	queue *queue
	lasts time.Duration
	image []byte
}

// trial is what a rate gave.
type trial struct {
	rate     float64 // offered, a second
	p50, p99 time.Duration
	rows     float64 // a batch
	kept     bool    // all were answered, and nearly as fast as they came
}

const (
	unloaded    = 500.0
	growth      = 1.5 // from rate to rate, until one is too high
	refinements = 5
	attempts    = 2 // a rate counts if it holds once: other programs disturb some
)

// highest is the trial of the highest rate that holds the bound.
func (l *load) highest(ctx context.Context, bound time.Duration) (best trial, err error) {
	holds := func(rate float64) (bool, error) {
		for range attempts {
			t, err := l.offer(ctx, rate)
			if err != nil {
				return false, err
			}
			if t.kept && t.p99 <= bound {
				best = t
				return true, nil
			}
		}
		return false, nil
	}
	rate, ok := unloaded, true
	for ok {
		rate *= growth
		if ok, err = holds(rate); err != nil {
			return best, err
		}
	}
	low, high := rate/growth, rate
	for range refinements {
		rate = (low + high) / 2
		if ok, err = holds(rate); err != nil {
			return best, err
		}
		if ok {
			low = rate
		} else {
			high = rate
		}
	}
	return best, nil
}

// offer calls Do at moments that are random and independent of each other and of the
// answers, each on a goroutine of its own. A latency counts from the moment at which the
// call was due: what comes late because the machine is busy is late.
func (l *load) offer(ctx context.Context, rate float64) (trial, error) {
	due := moments(rate, l.lasts)
	latencies := make([]time.Duration, len(due))
	var calls sync.WaitGroup
	var failed atomic.Pointer[error]
	before := l.queue.Stats()
	began := time.Now()
	for i, at := range due {
		if ctx.Err() != nil || failed.Load() != nil {
			break
		}
		pause(began, at)
		calls.Go(func() {
			if _, err := l.queue.Do(ctx, l.image); err != nil {
				failed.Store(&err)
			}
			latencies[i] = time.Since(began) - at
		})
	}
	calls.Wait()
	took := time.Since(began)
	if ctx.Err() != nil {
		return trial{}, context.Cause(ctx)
	}
	slices.Sort(latencies)
	st := l.queue.Stats()
	return trial{
		rate: float64(len(due)) / l.lasts.Seconds(),
		p50:  latencies[len(due)/2], p99: latencies[len(due)*99/100],
		rows: float64(st.Rows-before.Rows) / float64(max(st.Batches-before.Batches, 1)),
		kept: failed.Load() == nil && took < l.lasts*11/10,
	}, nil
}

// moments are those of a Poisson process.
func moments(rate float64, lasts time.Duration) (at []time.Duration) {
	rng := rand.New(rand.NewPCG(1, 1))
	for next := 0.0; next < lasts.Seconds(); next += rng.ExpFloat64() / rate {
		at = append(at, time.Duration(next*float64(time.Second)))
	}
	return at
}

// pause waits until a moment. A sleep ends up to a millisecond late, so the last one is spent
// giving way to others.
func pause(began time.Time, at time.Duration) {
	for {
		left := at - time.Since(began)
		switch {
		case left <= 0:
			return
		case left > 2*time.Millisecond:
			time.Sleep(left - time.Millisecond)
		default:
			runtime.Gosched()
		}
	}
}
