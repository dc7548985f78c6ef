// Package otel gives a pipeline's figures to OpenTelemetry.
//
//	registration, err := otel.Register(provider.Meter("leat"), "train", pf)
//	defer registration.Unregister()
package otel

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/leat-go/leat/metrics"
	"github.com/leat-go/leat/observe"
	"github.com/leat-go/leat/prefetch"
)

// Register has a Meter observe the figures of a pipeline, which it borrows until the
// Registration is undone. All have the attribute pipeline with that name. It looks at the
// pipeline only when it is collected, and has no goroutine.
//
// Names are those of package metrics behind "leat.", units "s" and "By". The histograms of
// metrics.Durations are left out: OpenTelemetry observes no histogram that others have made.
func Register(meter metric.Meter, name string, pf *prefetch.Prefetcher) (metric.Registration, error) {
	instruments := map[string]metric.Float64Observable{}
	var all []metric.Observable
	for _, f := range metrics.Of(&observe.Snapshot{}) {
		i, err := instrument(meter, f)
		if err != nil {
			return nil, err
		}
		instruments[f.Name] = i
		all = append(all, i)
	}
	pipeline := attribute.String("pipeline", name)
	return meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, f := range metrics.Of(observe.Take(pf)) {
			for _, v := range f.Values {
				by := []attribute.KeyValue{pipeline}
				if f.Label != "" {
					by = append(by, attribute.String(f.Label, v.Label))
				}
				o.ObserveFloat64(instruments[f.Name], v.Number, metric.WithAttributes(by...))
			}
		}
		return nil
	}, all...)
}

var units = map[string]string{"seconds": "s", "bytes": "By", "": "1"}

func instrument(meter metric.Meter, f metrics.Figure) (metric.Float64Observable, error) {
	name := "leat." + f.Name
	if f.Counter {
		return meter.Float64ObservableCounter(name, metric.WithDescription(f.Help), metric.WithUnit(units[f.Unit]))
	}
	return meter.Float64ObservableGauge(name, metric.WithDescription(f.Help), metric.WithUnit(units[f.Unit]))
}
