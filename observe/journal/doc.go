// Package journal is what the parts of a pipeline tell about their work, and to whom: the
// one hook that package prefetch has for observers. Package observe has a Recorder that
// keeps statistics and a timeline; a program that has none pays a comparison with nil.
//
// A Step is a batch's whole way, told once, when its body is over: every instant at which
// something about it changed, of which the pipeline knows most anyway. So one call a batch
// tells it all. What workers do is told run by run, what the device does by timed events of
// some uploads.
package journal
