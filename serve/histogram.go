package serve

import (
	"math"
	"math/bits"
	"slices"
	"time"
)

// Each power of two is cut into this many bins of equal width.
const (
	binBits = 5
	bins    = 1 << binBits
)

// Durations is how often durations of each length have occurred. Up to 32 ns each length has
// a bin of its own. Above that each power of two nanoseconds is cut into 32 bins, so that a
// bin is at most 1/32 of its durations wide: a log-linear histogram, as HdrHistogram's
// (hdrhistogram.org). The zero value is empty.
type Durations struct {
	counts []int64
	total  int64
	sum    time.Duration
	most   time.Duration
}

// bin is the number of d's bin.
func bin(d time.Duration) int {
	if d < bins {
		return int(max(d, 0))
	}
	up := bits.Len64(uint64(d)) - binBits - 1
	return up<<binBits + int(d>>up)
}

// top is the longest duration of a bin.
func top(bin int) time.Duration {
	up := max(bin>>binBits-1, 0)
	if up >= 64-binBits-1 {
		return math.MaxInt64
	}
	low := bin - up<<binBits
	return time.Duration(low+1)<<up - 1
}

// note counts d.
func (h *Durations) note(d time.Duration) {
	i := bin(d)
	if i >= len(h.counts) {
		h.counts = append(h.counts, make([]int64, i+1-len(h.counts))...)
	}
	h.counts[i]++
	h.total++
	h.sum += d
	h.most = max(h.most, d)
}

func (h *Durations) clone() Durations {
	c := *h
	c.counts = slices.Clone(h.counts)
	return c
}

// Len is how many durations there were.
func (h Durations) Len() int64 { return h.total }

// Mean is their mean, 0 if there are none.
func (h Durations) Mean() time.Duration {
	if h.total == 0 {
		return 0
	}
	return h.sum / time.Duration(h.total)
}

// Max is the longest, exactly.
func (h Durations) Max() time.Duration { return h.most }

// Quantile is the least duration of which it is certain that a share of q, from 0 to 1, of
// all durations is no longer: the end of the bin in which the one of that rank is, at most
// 1/32 above it. It is 0 if there are none.
func (h Durations) Quantile(q float64) time.Duration {
	rank := int64(math.Ceil(min(max(q, 0), 1) * float64(h.total)))
	for i, n := range h.counts {
		if rank -= n; rank <= 0 && h.total > 0 {
			return min(top(i), h.most)
		}
	}
	return h.most
}

// Since is what was added to h since before was taken of the same Queue. Its Max is that of
// all time, since that of a part is not known.
func (h Durations) Since(before Durations) Durations {
	d := h.clone()
	for i, n := range before.counts {
		d.counts[i] -= n
	}
	d.total -= before.total
	d.sum -= before.sum
	return d
}
