package loader

import "time"

// nobody is Run.attended while nobody waits for what Next waits for.
const nobody = -1

// Attended says whether somebody waits for what Next waits for. It is for a caller that
// works ahead of its consumer, as package prefetch does: only time for which somebody waits
// counts for Options.StallTimeout. Before the first call every wait in Next counts. Any
// goroutine may call it.
func (r *Run) Attended(yes bool) {
	since := int64(nobody)
	if yes {
		since = max(1, int64(time.Since(r.began)))
	}
	r.attended.Store(since)
}
