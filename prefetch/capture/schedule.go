package capture

// A schedule says at which uses captures are compared.
type schedule struct{ uses, next int64 }

// due counts a use of the step, by batches of class c, and reports whether it is to be
// captured: at the step's first 16 uses, whenever a sixteenth more have passed, at the
// class's uses 1, 2, 4 and so on, and if it is to be captured anyway. What is done at every
// so many steps, people do at round numbers; so those are in it too, and the uses behind
// them, for who counts from 0.
func (s *schedule) due(c *class, anyway bool) bool {
	s.uses++
	c.uses++
	n := s.uses
	if !anyway && n < s.next && !round(n) && !round(n-1) && !powerOf2(c.uses) {
		return false
	}
	s.next = n + 1 + n/16
	return true
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
