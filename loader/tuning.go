package loader

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Decision is something that was changed without being asked.
type Decision struct {
	// At is when.
	At time.Time
	// From and To are the number before and behind it; they are equal where a trial ends
	// with what was tried.
	From, To int
	// Reason is why, with what was measured.
	Reason string
}

// String is the decision in a line, without its time.
func (d Decision) String() string { return fmt.Sprintf("%d → %d: %s", d.From, d.To, d.Reason) }

// KeptDecisions is how many decisions Stats has at most.
const KeptDecisions = 32

// tuning has a tuner set the number of a Run's workers. The workers themselves bring that
// about, between two claims: so it takes no goroutine and no timer, and nothing at all while
// nothing is read.
type tuning struct {
	run  *Run
	next atomic.Int64 // nanoseconds since the Run's start

	mu        sync.Mutex
	tuner     tuner
	decisions []Decision
}

// newTuning goes on from where the Loader's last Run has ended.
func newTuning(r *Run) *tuning {
	t := &tuning{run: r}
	if last := r.loader.tuned.Load(); last != nil {
		t.tuner = last.again(t.decided)
	} else {
		t.tuner = newTuner(r.loader.staff.first, r.loader.staff.most, runtime.GOMAXPROCS(0), t.decided)
	}
	return t
}

// end keeps what was found for the next Run.
func (t *tuning) end() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	last := t.tuner
	t.run.loader.tuned.Store(&last)
}

func (t *tuning) decided(from, to int, reason string) {
	if len(t.decisions) == KeptDecisions {
		t.decisions = t.decisions[:copy(t.decisions, t.decisions[1:])]
	}
	t.decisions = append(t.decisions, Decision{At: time.Now(), From: from, To: to, Reason: reason})
}

// look has the tuner look at what was done, if it is time.
func (t *tuning) look(now time.Time) {
	at := now.Sub(t.run.began)
	if int64(at) < t.next.Load() || !t.mu.TryLock() {
		return
	}
	defer t.mu.Unlock()
	if int64(at) < t.next.Load() {
		return
	}
	before := t.tuner.workers
	t.tuner.step(t.run.measured(at))
	t.next.Store(int64(t.tuner.next))
	if workers := t.tuner.workers; workers != before {
		t.run.lineup.allow(workers)
	}
}

// measured is what was counted up to now.
func (r *Run) measured(at time.Duration) measures {
	m := measures{at: at, waited: time.Duration(r.waitBatch.Load())}
	if since := time.Duration(r.waiting.Load()); since != 0 {
		m.waited += at - since
	}
	for _, w := range r.crew.all() {
		m.rows += w.read.Load()
		m.busy += time.Duration(w.busy.Load())
	}
	return m
}

// get is the decisions so far.
func (t *tuning) get() []Decision {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Decision(nil), t.decisions...)
}
