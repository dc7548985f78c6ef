package prom_test

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/metrics/prom"
	"github.com/leat-go/leat/prefetch"
)

func ExampleNew() {
	ld, err := loader.New(data{}, 8, loader.Options{Epochs: 1})
	if err != nil {
		log.Fatal(err)
	}
	pf, err := prefetch.NewHost(ld, prefetch.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer pf.Close()

	registry := prometheus.NewRegistry()
	registry.MustRegister(prom.New("train", pf))
	http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))

	for _, err := range pf.All(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
	}
	w := httptest.NewRecorder() // as Prometheus asks
	http.DefaultServeMux.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for lines := bufio.NewScanner(w.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "leat_batches_total") {
			fmt.Println(lines.Text())
		}
	}
	// Output: leat_batches_total{pipeline="train"} 13
}
