package probe

import (
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/units"
)

// clock shares the time that a probe may take out among its parts. What one leaves is
// for those behind it.
type clock struct {
	end     time.Time     // of the probe
	until   time.Time     // of the part that is measured
	all     time.Duration // what the probe may take
	weights int           // of the parts that are to come
	hurried bool          // some medians are of fewer runs than was asked for
}

func newClock(all time.Duration, weights int) clock {
	return clock{end: time.Now().Add(all), all: all, weights: weights}
}

// begin begins a part of that weight.
func (c *clock) begin(weight int) {
	left := max(0, time.Until(c.end))
	c.until = time.Now().Add(left * time.Duration(weight) / time.Duration(max(c.weights, 1)))
	c.weights -= weight
}

// late reports whether what takes so long would end behind the part's time.
func (c *clock) late(cost time.Duration) bool { return time.Until(c.until) < cost }

// runs is how many runs of that cost the part has time for, from 1 to most.
func (c *clock) runs(most int, cost time.Duration) int {
	n := min(most, int(min(time.Until(c.until)/max(cost, 1), 1<<20)))
	if n < most {
		c.hurried = true
	}
	return max(1, n)
}

// why says that a part was left out for want of time.
func (c *clock) why() string {
	return "there was no time left of " + units.Time(c.all)
}
