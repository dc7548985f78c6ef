package prom_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/metrics/prom"
	"github.com/leat-go/leat/observe"
	"github.com/leat-go/leat/prefetch"
)

type data struct{}

func (data) Len() int { return 100 }

func (data) Fields() []loader.Field { return []loader.Field{{Name: "x", DType: dtype.Float32}} }

func (data) Read(_ context.Context, i int, row *loader.Row) error {
	return loader.Write(row, "x", float32(i))
}

// read is a pipeline that has delivered all: 13 batches.
func read(t *testing.T, o prefetch.Options) *prefetch.Prefetcher {
	ld, err := loader.New(data{}, 8, loader.Options{Workers: 2, Epochs: 1})
	require.NoError(t, err)
	pf, err := prefetch.NewHost(ld, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pf.Close()) })
	for _, err := range pf.All(t.Context()) {
		require.NoError(t, err)
		time.Sleep(time.Microsecond)
	}
	return pf
}

// scraped is what Prometheus would read, by its own parser.
func scraped(t *testing.T, collectors ...prometheus.Collector) map[string]*dto.MetricFamily {
	r := prometheus.NewPedanticRegistry()
	for _, c := range collectors {
		require.NoError(t, r.Register(c))
	}
	problems, err := testutil.GatherAndLint(r)
	require.NoError(t, err)
	require.Empty(t, problems)
	w := httptest.NewRecorder()
	promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorHandling: promhttp.PanicOnError}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text, err := io.ReadAll(w.Body)
	require.NoError(t, err)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
	require.NoError(t, err)
	return families
}

// labels are those of a metric, by name.
func labels(m *dto.Metric) map[string]string {
	all := map[string]string{}
	for _, l := range m.GetLabel() {
		all[l.GetName()] = l.GetValue()
	}
	return all
}

func TestFiguresArePrometheuss(t *testing.T) {
	recorded := read(t, prefetch.Options{Recorder: observe.NewRecorder(observe.Options{})})
	plain := read(t, prefetch.Options{})
	families := scraped(t, prom.New("train", recorded), prom.New("validation", plain))

	batches := families["leat_batches_total"]
	require.Equal(t, dto.MetricType_COUNTER, batches.GetType())
	require.Len(t, batches.GetMetric(), 2)
	for i, name := range []string{"train", "validation"} {
		require.Equal(t, map[string]string{"pipeline": name}, labels(batches.GetMetric()[i]))
		require.Equal(t, 13.0, batches.GetMetric()[i].GetCounter().GetValue())
	}
	require.Equal(t, 100.0, families["leat_samples_total"].GetMetric()[0].GetCounter().GetValue())
	require.Equal(t, 400.0, families["leat_transferred_bytes_total"].GetMetric()[0].GetCounter().GetValue())
	require.Equal(t, 2.0, families["leat_workers"].GetMetric()[0].GetGauge().GetValue())

	// The parts are all of the loop's time.
	sums := map[string]float64{}
	for _, m := range families["leat_loop_seconds_total"].GetMetric() {
		require.NotEmpty(t, labels(m)["part"])
		sums[labels(m)["pipeline"]] += m.GetCounter().GetValue()
	}
	host := observe.Take(recorded).Host
	require.InDelta(t, host.Parts.Sum().Seconds(), sums["train"], 1e-9)
	stats := plain.Stats()
	require.InDelta(t, (stats.Body + stats.Wait()).Seconds(), sums["validation"], 1e-9)

	steps := families["leat_step_duration_seconds"].GetMetric()
	require.Equal(t, dto.MetricType_HISTOGRAM, families["leat_step_duration_seconds"].GetType())
	h := steps[0].GetHistogram()
	require.EqualValues(t, 13, h.GetSampleCount())
	require.InDelta(t, host.Step.Sum().Seconds(), h.GetSampleSum(), 1e-9)
	var last uint64
	for _, b := range h.GetBucket() {
		require.GreaterOrEqual(t, b.GetCumulativeCount(), last)
		last = b.GetCumulativeCount()
	}
	require.EqualValues(t, 13, last)
	require.Zero(t, steps[1].GetHistogram().GetSampleCount(), "nothing was recorded")
}

func TestOnePipelineIsRegisteredOnceByAName(t *testing.T) {
	pf := read(t, prefetch.Options{})
	r := prometheus.NewRegistry()
	c := prom.New("train", pf)
	require.NoError(t, r.Register(c))
	require.Error(t, r.Register(prom.New("train", pf)))
	require.True(t, r.Unregister(c))
	require.NoError(t, r.Register(prom.New("train", pf)))
}

// exported are the names that Prometheus has, histograms' with their endings.
func exported(t *testing.T) map[string]bool {
	names := map[string]bool{}
	for name, f := range scraped(t, prom.New("train", read(t, prefetch.Options{}))) {
		names[name] = true
		if f.GetType() == dto.MetricType_HISTOGRAM {
			names[name+"_bucket"], names[name+"_sum"], names[name+"_count"] = true, true, true
		}
	}
	return names
}

var name = regexp.MustCompile(`\bleat_\w+`)

// known checks that an expression has names that are there, and all of its brackets.
func known(t *testing.T, names map[string]bool, expr string) {
	t.Helper()
	all := name.FindAllString(expr, -1)
	require.NotEmpty(t, all, expr)
	for _, n := range all {
		require.True(t, names[n], "%s is not there: %s", n, expr)
	}
	for _, pair := range []string{"()", "{}", "[]"} {
		require.Equal(t, strings.Count(expr, pair[:1]), strings.Count(expr, pair[1:]), expr)
	}
}

func TestTheDashboardShowsWhatThereIs(t *testing.T) {
	text, err := os.ReadFile("../grafana.json")
	require.NoError(t, err)
	var d struct {
		Title  string
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct{ List []struct{ Name string } }
	}
	require.NoError(t, json.Unmarshal(text, &d))
	names := exported(t)
	require.GreaterOrEqual(t, len(d.Panels), 8)
	variables := map[string]bool{"__rate_interval": true, "__all": true}
	for _, v := range d.Templating.List {
		variables[v.Name] = true
	}
	for _, p := range d.Panels {
		require.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			known(t, names, target.Expr)
		}
	}
	for _, m := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(string(text), -1) {
		require.True(t, variables[m[1]], "there is no variable %s", m[1])
	}
}

func TestTheAlertsAreOfWhatThereIs(t *testing.T) {
	text, err := os.ReadFile("../alerts.yaml")
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr string
				For         model.Duration
				Labels      map[string]string
				Annotations map[string]string
			}
		}
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&file))
	names := exported(t)
	require.Len(t, file.Groups, 1)
	require.GreaterOrEqual(t, len(file.Groups[0].Rules), 4)
	for _, r := range file.Groups[0].Rules {
		known(t, names, r.Expr)
		require.NotEmpty(t, r.Alert)
		require.NotEmpty(t, r.Labels["severity"])
		require.NotEmpty(t, r.Annotations["summary"])
	}
}
