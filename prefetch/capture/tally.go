package capture

import (
	"slices"
	"sync"
	"sync/atomic"
)

// A tally is what Report tells.
type tally struct {
	captures, replays, launches, failures, graphs atomic.Int64
	launched                                      atomic.Bool // there is a reason

	mu      sync.Mutex
	reason  error
	failure error
	notes   []string
}

// forGood has all steps from here on submitted call by call.
func (t *tally) forGood(reason error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reason = reason
	t.launched.Store(true)
}

// fails notes a capture that failed.
func (t *tally) fails(err error) {
	t.failures.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failure = err
}

// note keeps a sentence, once.
func (t *tally) note(sentence string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.notes, sentence) {
		t.notes = append(t.notes, sentence)
	}
}

func (t *tally) report() Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Report{Graphs: int(t.graphs.Load()), Captures: t.captures.Load(), Replays: t.replays.Load(),
		Launches: t.launches.Load(), Failures: t.failures.Load(), Failure: t.failure,
		Reason: t.reason, Notes: slices.Clone(t.notes)}
}
