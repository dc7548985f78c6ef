// Package fuzz holds the project's model-based fuzzers: random programs over the
// whole public API, run against a small reference. All of it is tests.
//
//	trouble_test.go     what a user's code may do wrong
//	data_test.go        datasets and iterables that do it, and the bytes of their samples
//	reference_test.go   which batches and which failures must come, from plain arithmetic
//	memory_test.go      a loader.Memory that keeps books
//	drive_test.go       generates programs, runs each under virtual time, reports a failure
//	loader_*_test.go    programs of a loader's Runs: generator, runner, checks
//
// A batch that is delivered with a nil error has exactly the reference's bytes, in
// order, none left out and none twice; what is left behind is counted after each
// program. Nothing is known of the packages' private parts.
//
//	go test ./internal/fuzz                         a hundred programs of each
//	LEAT_SOAK=10m go test -race -tags invariants ./internal/fuzz -timeout 0
//
// A failure prints the seed, the shortest program that was found to fail, and the
// command that runs it again. Goroutines run in any order, so that a program may
// have to be run many times: -rapid.seed=N -rapid.checks=1 -count=1000.
package fuzz
