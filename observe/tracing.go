package observe

import (
	"context"
	"runtime/metrics"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"time"

	"github.com/leat-go/leat/observe/journal"
)

// Goroutine implements journal.Recorder: it gives the goroutine profiling labels, "leat" for
// its role and "number", so that profiles tell workers from the rest.
func (r *Recorder) Goroutine(role journal.Role, number int) {
	labels := pprof.Labels("leat", string(role), "number", strconv.Itoa(number))
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), labels))
}

// A region is one of an execution trace, from Reading to Read.
type region struct{ of *trace.Region }

func (r *region) end() {
	if r.of != nil {
		r.of.End()
		r.of = nil
	}
}

// Reading implements journal.Recorder: while an execution trace is taken, what the worker does
// until Read is a region in it. Workers whose numbers are alike modulo 64 have none beyond
// the first 64.
func (r *Recorder) Reading(worker int) {
	if worker >= shards || !trace.IsEnabled() {
		return
	}
	w := &r.workers[worker]
	w.mu.Lock()
	defer w.mu.Unlock()
	w.region.end() // of samples that failed
	w.region.of = trace.StartRegion(context.Background(), "leat: read")
}

// latencies is the runtime's figure of how long goroutines waited for a processor.
const latencies = "/sched/latencies:seconds"

// scheduling reads it from the runtime.
func scheduling() (h Histogram) {
	sample := []metrics.Sample{{Name: latencies}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindFloat64Histogram {
		return h
	}
	from := sample[0].Value.Float64Histogram()
	for i, n := range from.Counts {
		if n > 0 {
			h.Add(seconds(from.Buckets[i], from.Buckets[i+1]), int64(n))
		}
	}
	return h
}

// seconds is the middle of a bucket, of which one bound may be infinite.
func seconds(low, high float64) time.Duration {
	const most = 1e9
	low, high = max(low, 0), min(high, most)
	return time.Duration((low + high) / 2 * 1e9)
}
