package otel_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/metrics"
	"github.com/leat-go/leat/metrics/otel"
	"github.com/leat-go/leat/observe"
	"github.com/leat-go/leat/prefetch"
)

func TestFiguresAreOpenTelemetrys(t *testing.T) {
	data := loader.FromSlice(make([]float32, 100), []loader.Field{{Name: "x", DType: dtype.Float32}},
		func(_ context.Context, x float32, row *loader.Row) error { return loader.Write(row, "x", x) })
	ld, err := loader.New(data, 8, loader.Options{Epochs: 1})
	require.NoError(t, err)
	pf, err := prefetch.NewHost(ld, prefetch.Options{Recorder: observe.NewRecorder(observe.Options{})})
	require.NoError(t, err)
	defer func() { require.NoError(t, pf.Close()) }()

	reader := sdk.NewManualReader()
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	registration, err := otel.Register(provider.Meter("leat"), "train", pf)
	require.NoError(t, err)
	for _, err := range pf.All(t.Context()) {
		require.NoError(t, err)
	}
	collected := func() map[string]metricdata.Metrics {
		var all metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(t.Context(), &all))
		byName := map[string]metricdata.Metrics{}
		for _, scope := range all.ScopeMetrics {
			for _, m := range scope.Metrics {
				byName[m.Name] = m
			}
		}
		return byName
	}
	all := collected()
	want := metrics.Of(observe.Take(pf))
	require.Len(t, all, len(want))
	for _, f := range want {
		m, ok := all["leat."+f.Name]
		require.True(t, ok, f.Name)
		require.Equal(t, map[string]string{"": "1", "seconds": "s", "bytes": "By"}[f.Unit], m.Unit)
		var points []metricdata.DataPoint[float64]
		if f.Counter {
			sum := m.Data.(metricdata.Sum[float64])
			require.True(t, sum.IsMonotonic)
			points = sum.DataPoints
		} else {
			points = m.Data.(metricdata.Gauge[float64]).DataPoints
		}
		require.Len(t, points, len(f.Values), f.Name)
		for _, p := range points {
			pipeline, _ := p.Attributes.Value("pipeline")
			require.Equal(t, "train", pipeline.AsString())
			label, _ := p.Attributes.Value(attribute.Key(f.Label))
			for _, v := range f.Values {
				if v.Label == label.AsString() {
					require.InDelta(t, v.Number, p.Value, 1e-9, "%s %s", f.Name, v.Label)
				}
			}
		}
	}
	require.NoError(t, registration.Unregister())
	require.Empty(t, collected())
}
