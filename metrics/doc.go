// Package metrics lists the figures of a pipeline of package prefetch for systems that
// collect them. It is a module of its own, so that programs which don't import it don't
// depend on these systems.
//
// Package prom below it gives them to Prometheus, package otel to OpenTelemetry:
//
//	prometheus.MustRegister(prom.New("train", pf))
//	registration, err := otel.Register(provider.Meter("leat"), "train", pf)
//
// grafana.json is a dashboard, alerts.yaml are rules for alerts, both on Prometheus's names.
//
// Counters grow from 0 while a pipeline lives. Those of what steps waited for have all parts
// with an observe.Recorder in the pipeline's Options, and without one the few that
// prefetch.Stats tells apart.
package metrics
