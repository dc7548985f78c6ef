// Mutate asks of every test what it is worth: it makes thousands of small mistakes in
// the source, one at a time, and says which of them no test notices.
//
//	go run ./internal/mutate ./pinnedpool                   # build and run
//	go run ./internal/mutate -files order.go,split.go ./loader
//	go run ./internal/mutate -tests ./prefetch ./pinnedpool # prefetch's tests judge as well
//	go run ./internal/mutate -build bin ./pinnedpool ./device
//	bin/mutate -run bin -j 16 -o report.txt                 # elsewhere, without Go
//	bin/mutate -run bin -for 90s                            # what can be tried in that time
//
// make mutate does the first for all packages that matter.
//
// # Mutants
//
// The kinds are
//
//	delete   a statement: a call (Wait, Record, Signal, move), a send, an assignment, a
//	         counter, go, defer, break, continue; also the call in "if err := f(); err !=
//	         nil" and in "return f()"
//	unlock   all Lock and Unlock of one mutex in a function
//	swap     two neighbouring statements
//	true     an if's condition, or a case's of a switch without a tag
//	false    the same, and a for's
//	drop     an operand of && or ||
//	negate   a boolean result
//	bound    < for <=, > for >=, and the reverse
//	nocase   a channel in a select's case is never ready
//
// What can't be changed without changing more is skipped, and counted: declarations,
// labelled statements, constant conditions, order among statements that can't matter.
//
// # Why it is fast
//
// All mutants of a package are compiled into one test binary, each behind a test of a
// number (package mutant), by an overlay; LEAT_MUTANT in the environment says which of
// them is on. A first pass runs every test alone and notes which places it passes and
// how long it takes. Then a mutant is run against the tests that pass its place, the
// quickest first, until one fails. Those of mutexes that survive are run again under
// the race detector.
//
// A mutant is caught if a test fails, if a test takes several times as long as without
// it, or if the process takes more than two gigabytes. What can't be compiled is left
// out when the overlay is made, and counted.
//
// # The list of survivors
//
// survivors.txt lists the mutants that no test catches, each with the reason why none
// should: in most cases because it changes nothing that a caller can see. Its key is
// the package, the function, the kind and the statement, so that moving code keeps the
// list valid. Mutate fails if a mutant survives that isn't listed. Listed ones that are
// gone or are caught are printed, to be taken off the list: races are not caught every time.
//
// To deal with a survivor: write a test of the promise that it breaks, through the
// public API; or take the statement out, if it does nothing; or list it.
package main
