package slots

import "github.com/leat-go/leat/device"

// Computes are the compute streams: the first is the user's, the others are made for
// them.
type Computes struct {
	Streams    []*device.Stream
	RoundRobin bool
	inTurn     int // the stream whose turn it is
}

// Next is the stream for the next batch: the one with the fewest batches that it has not
// finished, and of those the next in turn. With one stream nothing is asked.
func (c *Computes) Next(of *Ring) *device.Stream {
	n := len(c.Streams)
	if n == 1 {
		return c.Streams[0]
	}
	best := c.inTurn
	if !c.RoundRobin {
		fewest := of.unfinished(c.Streams[best])
		for i := 1; i < n && fewest > 0; i++ {
			at := (c.inTurn + i) % n
			if batches := of.unfinished(c.Streams[at]); batches < fewest {
				best, fewest = at, batches
			}
		}
	}
	c.inTurn = (best + 1) % n
	return c.Streams[best]
}

// Index is which of the streams s is, -1 if it is none.
func (c *Computes) Index(s *device.Stream) int {
	for i, compute := range c.Streams {
		if compute == s {
			return i
		}
	}
	return -1
}

// unfinished is how many batches in the ring's slots a stream has been given and has not
// finished.
func (r *Ring) unfinished(stream *device.Stream) (batches int) {
	for _, s := range r.slots {
		s.mu.Lock()
		if its := s.reads.by(stream); its != nil && its.unfinished() {
			batches += its.batches
		}
		s.mu.Unlock()
	}
	return batches
}
