package capture

import (
	"fmt"
	"strings"
)

// A Report says how a Step's batches were submitted.
type Report struct {
	// Graphs is the number of graphs that are kept.
	Graphs int
	// Captures is how often the step was captured, Replays how often a graph was launched
	// without that, and Launches how often the step was submitted call by call.
	Captures, Replays, Launches int64
	// Failures is how many captures failed, and Failure why the last of them did.
	Failures int64
	Failure  error
	// Reason is why the step is submitted call by call for good: a *ChangedError or a
	// *NodeError, or what the device said. It is nil if it isn't.
	Reason error
	// Notes are other decisions, one sentence each.
	Notes []string
}

// String is the report for a person.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "graphs         %d: the step was captured %d times, replayed %d times, submitted call by call %d times\n",
		r.Graphs, r.Captures, r.Replays, r.Launches)
	if r.Reason != nil {
		fmt.Fprintf(&b, "no replays     %v\n", r.Reason)
	}
	if r.Failures > 0 {
		fmt.Fprintf(&b, "failed         %d captures: %v\n", r.Failures, r.Failure)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note           %s\n", n)
	}
	return b.String()
}

// Report says how batches were submitted so far. It may be called from any goroutine.
func (s *Step[P]) Report() Report { return s.step.tally.report() }
