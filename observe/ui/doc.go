// Package ui is a page that shows pipelines while they run, in a browser, and what it shows
// as JSON.
//
//	http.Handle("/debug/leat/", ui.Handler(pf))
//	log.Fatal(http.ListenAndServe("localhost:6060", nil))
//
// It tells the pace, for how much of the time batches were ready, where batches are on their
// way and who waits for whom, draws the last steps, says what to change, and what the Plan and
// the place in the data are. Most of it takes an observe.Recorder in the pipeline's Options.
// Several pipelines are shown side by side, and leat fleet reads the pages of several ranks.
//
// All that the page needs is in this package: it asks no other host for anything.
//
// # Who may see it
//
// A Page is for the people who run the program: it changes nothing, and says nothing of what
// is in the data, but it tells names of fields and sizes. So have the server listen on
// localhost, as above. That alone does not keep other sites out, since a browser on the same
// machine can be led there under a foreign name (DNS rebinding): a Page answers only those
// who ask for localhost, for a loopback address, or for a name in Options.Hosts, and no page
// of another origin.
//
// # Other ways
//
// A Page is an expvar.Var: expvar.Publish("leat", page) has it among a program's other
// variables. The module github.com/leat-go/leat/metrics has the figures for Prometheus and
// for OpenTelemetry.
package ui
