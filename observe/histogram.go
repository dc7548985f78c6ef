package observe

import (
	"math/bits"
	"time"
)

// A Histogram counts durations in buckets of fixed bounds, eight to each power of two of
// nanoseconds, and keeps the sum in each: in bounded memory it tells a quantile to within an
// eighth, and exactly where all of a bucket are alike. The zero value is empty. It is a
// value: a copy is a snapshot, and two can be subtracted.
type Histogram struct {
	counts [buckets]int64
	sums   [buckets]time.Duration
}

const (
	perOctave = 8
	octaves   = 40 // up to 1.2 hours; what takes longer is in the last bucket
	buckets   = perOctave * octaves
)

// bucket is where a duration counts. Those below 8 ns have a bucket each.
func bucket(d time.Duration) int {
	if d < perOctave {
		return int(max(d, 0))
	}
	octave := bits.Len64(uint64(d)) - 4 // 8 to 15 ns are octave 0
	at := perOctave*(octave+1) + int(d>>octave) - perOctave
	return min(at, buckets-1)
}

// Add counts n durations of d each.
func (h *Histogram) Add(d time.Duration, n int64) {
	at := bucket(d)
	h.counts[at] += n
	h.sums[at] += d * time.Duration(n)
}

// Count is how many there are.
func (h *Histogram) Count() (n int64) {
	for _, c := range h.counts {
		n += c
	}
	return n
}

// Below is how many are shorter than d, which is rounded down to the bound of a bucket: powers
// of two of nanoseconds, from 8 ns on, are bounds.
func (h *Histogram) Below(d time.Duration) (n int64) {
	for _, c := range h.counts[:bucket(d)] {
		n += c
	}
	return n
}

// Sum is the sum of all.
func (h *Histogram) Sum() (d time.Duration) {
	for _, s := range h.sums {
		d += s
	}
	return d
}

// Mean is their mean, 0 if there are none.
func (h *Histogram) Mean() time.Duration {
	if n := h.Count(); n > 0 {
		return h.Sum() / time.Duration(n)
	}
	return 0
}

// Quantile is the mean of the bucket which holds the q-quantile, for q from 0 to 1: 0.5 is
// the median, 1 the largest. It is 0 if there are none.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := int64(q * float64(h.Count()))
	for i, n := range h.counts {
		if rank -= n; rank < 0 && n > 0 {
			return h.sums[i] / time.Duration(n)
		}
	}
	for i := buckets - 1; i >= 0; i-- {
		if n := h.counts[i]; n > 0 {
			return h.sums[i] / time.Duration(n)
		}
	}
	return 0
}

// Sub is what h has more than before, an earlier copy of it.
func (h Histogram) Sub(before Histogram) Histogram {
	for i := range h.counts {
		h.counts[i] -= before.counts[i]
		h.sums[i] -= before.sums[i]
	}
	return h
}
