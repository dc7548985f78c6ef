package observe

import "time"

// clock puts a device's instants onto the host's clock. Where the device's zero lies was
// found when the pipeline was made; clocks drift apart, and what must hold tells how far:
// nothing starts before the host submitted it, and what the host has seen the end of has
// ended. So each upload bounds the distance from both sides, and it stays within the bounds
// of the last ones.
type clock struct {
	shift  time.Duration // of the host's clock against the device's, beyond the origin
	bounds [lastBounds]bounds
	n      int
}

const lastBounds = 64

type bounds struct{ least, most time.Duration }

// far is beyond all bounds.
const far = time.Duration(1 << 62)

// narrow takes the bounds of one more upload into account.
func (c *clock) narrow(b bounds) {
	c.bounds[c.n%lastBounds] = b
	c.n++
	least, most := -far, far
	for _, b := range c.bounds[:min(c.n, lastBounds)] {
		least, most = max(least, b.least), min(most, b.most)
	}
	if least > most { // the clocks have moved against each other meanwhile: the newest tell
		least, most = b.least, max(b.least, b.most)
	}
	c.shift = min(max(c.shift, least), most)
}
