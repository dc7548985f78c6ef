// Package prom gives a pipeline's figures to Prometheus.
//
//	prometheus.MustRegister(prom.New("train", pf))
//	http.Handle("/metrics", promhttp.Handler())
package prom

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leat-go/leat/metrics"
	"github.com/leat-go/leat/observe"
	"github.com/leat-go/leat/prefetch"
)

// New is a Collector of the figures of a pipeline, which it borrows until it is unregistered.
// All have the label pipeline with that name, so that several pipelines can be registered. It
// looks at the pipeline only when it is collected, and has no goroutine.
//
// Names begin with leat_, end with their unit, and those of counters with _total. Histograms
// have buckets from 1 µs to 17 s, by fours.
func New(name string, pf *prefetch.Prefetcher) prometheus.Collector {
	c := &collector{pf: pf, descs: map[string]*prometheus.Desc{}}
	var none observe.Snapshot
	labels := prometheus.Labels{"pipeline": name}
	for _, f := range metrics.Of(&none) {
		var by []string
		if f.Label != "" {
			by = []string{f.Label}
		}
		c.descs[f.Name] = prometheus.NewDesc(fullName(f), f.Help, by, labels)
	}
	for _, d := range metrics.Durations(&none) {
		c.descs[d.Name] = prometheus.NewDesc("leat_"+d.Name+"_seconds", d.Help, nil, labels)
	}
	return c
}

func fullName(f metrics.Figure) string {
	words := []string{"leat", f.Name}
	if f.Unit != "" {
		words = append(words, f.Unit)
	}
	if f.Counter {
		words = append(words, "total")
	}
	return strings.Join(words, "_")
}

type collector struct {
	pf    *prefetch.Prefetcher
	descs map[string]*prometheus.Desc // by the figures' names
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	s := observe.Take(c.pf)
	for _, f := range metrics.Of(s) {
		kind := prometheus.GaugeValue
		if f.Counter {
			kind = prometheus.CounterValue
		}
		for _, v := range f.Values {
			var by []string
			if f.Label != "" {
				by = []string{v.Label}
			}
			to <- prometheus.MustNewConstMetric(c.descs[f.Name], kind, v.Number, by...)
		}
	}
	for _, d := range metrics.Durations(s) {
		buckets := map[float64]uint64{}
		for bound := time.Duration(1 << 10); bound <= 1<<34; bound *= 4 {
			buckets[bound.Seconds()] = uint64(d.Histogram.Below(bound))
		}
		to <- prometheus.MustNewConstHistogram(c.descs[d.Name], uint64(d.Histogram.Count()), d.Histogram.Sum().Seconds(), buckets)
	}
}
