package capture

import (
	"math/bits"
	"time"
)

const (
	// A capture and its comparison may take one part in so many of the time.
	budget = 100
	// However little it takes, the uses between two captures are no fewer.
	leastGap = 16
)

// A schedule says at which uses captures are compared.
type schedule struct {
	uses, next int64
	since      time.Time // the end of the newest capture, which was
	at         int64     // at this use
	fewest     int64     // uses to the next one, by the budget; 0 if nothing is known yet
}

// due counts a use of the step, by batches of class c, and reports whether it is to be
// captured: at the step's first 16 uses, whenever a sixteenth more have passed, or so many
// that a capture costs a hundredth of their time, at the class's uses 1, 2, 4 and so on, and
// if it is to be captured anyway. What is done at every so many steps, people do at round
// numbers; so those are in it too, and the uses behind them, for who counts from 0.
func (s *schedule) due(c *class, anyway bool) bool {
	s.uses++
	c.uses++
	n := s.uses
	if !anyway && n < s.next && !round(n) && !round(n-1) && !powerOf2(c.uses) {
		return false
	}
	s.next = n + 1 + s.gap(n)
	return true
}

// gap is how many uses are let pass behind use n. By the budget they are now more and now
// fewer: who looks at every seventeenth use never sees what is done at another one of
// seventeen.
func (s *schedule) gap(n int64) int64 {
	grown := n / 16
	if s.fewest == 0 {
		return grown
	}
	more, _ := bits.Mul64(uint64(n)*0x9e3779b97f4a7c15, uint64(s.fewest/2+1))
	return min(grown, s.fewest+int64(more))
}

// captured notes when the capture at the newest use began, and when it had been compared.
func (s *schedule) captured(began, ended time.Time) {
	if passed := s.uses - s.at; passed > 0 && !s.since.IsZero() {
		use := began.Sub(s.since) / time.Duration(passed)
		s.fewest = max(leastGap, int64(budget*ended.Sub(began)/max(use, 1)))
	}
	s.since, s.at = ended, s.uses
}

// round reports whether n is a power of two, or 1, 2 or 5 and zeros.
func round(n int64) bool {
	if powerOf2(n) {
		return true
	}
	for n%10 == 0 {
		n /= 10
	}
	return n == 1 || n == 2 || n == 5
}

func powerOf2(n int64) bool { return n&(n-1) == 0 }
