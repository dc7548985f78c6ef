package serve

import "time"

// forecast says how long a batch will take, from the choice of its requests to their
// answers, by how many others are under way when it begins: as long as the longest of
// late, where each batch counts a quarter less than the one after it.
type forecast struct {
	took []time.Duration // by the number of others; 0 is unknown
	when []time.Duration // the last such batch ended
}

func newForecast(inFlight int) forecast {
	return forecast{took: make([]time.Duration, inFlight), when: make([]time.Duration, inFlight)}
}

// stale is how many times as old as itself what is known may be. A forecast that lets
// nobody go is not renewed, and must not last.
const stale = 16

// of is the forecast for a batch that begins now beside others.
func (f *forecast) of(others int, now time.Duration) time.Duration {
	for others > 0 && now-f.when[others] > stale*f.took[others] { // also if nothing is known
		others--
	}
	return f.took[others]
}

// note notes how long a batch took.
func (f *forecast) note(others int, took, now time.Duration) {
	t := &f.took[others]
	if took < *t {
		took = *t - (*t-took+3)/4
	}
	*t, f.when[others] = max(took, 1), now
}
