// Package fuzz holds the project's model-based fuzzers: random programs over the
// whole public API, run against a small reference. All of it is tests.
//
//	trouble_test.go     what a user's code may do wrong
//	ragged_test.go      their field of different lengths
//	data_test.go        datasets and iterables that do it, and the bytes of their samples
//	composed_test.go    compositions of a dataset that leave its samples as they are
//	reference_test.go   which batches and which failures must come, from plain arithmetic
//	memory_test.go      a loader.Memory that keeps books
//	drive_test.go       generates programs, runs each under virtual time, reports a failure
//	loader_*_test.go    programs of a loader's Runs: generator, runner, checks
//	pipeline_*_test.go  programs of Prefetchers: generator, runner, what bodies do, checks
//	bench_test.go       the unkind devices that these run on, with a checker of their order
//
// A batch that is delivered with a nil error has exactly the reference's bytes, in
// order, none left out and none twice; what is left behind is counted after each
// program. Nothing is known of the packages' private parts.
//
//	go test ./internal/fuzz           a hundred programs of each kind
//	make soak LEAT_SOAK=10m SEED=     as many as there is time for, others every time
//
// A failure prints the seed, the first program that failed and the shortest, and the
// command that runs it again. Goroutines run in any order, so that a program may have
// to be run many times: -rapid.seed=N -rapid.checks=1 -count=1000. A crash or a hang
// leaves the program in a file leat-fuzz-* of the temporary folder. With
// LEAT_FUZZ_WITHOUT=panics,clone a search goes on beyond what is known.
package fuzz
