package order

// A stream is what is known of a device's stream. Guarded by the Checker's mutex.
type stream struct {
	device *Device
	name   string
	index  int // in clocks; a later stream may get it
	// last is the number of its last access. A stream goes on counting where the one
	// before it with the same index has stopped.
	last uint64
	// seen is what comes before the work submitted next, its own included.
	seen clock
	host uint64 // which version of the host's clock is in seen

	capture *capture // nil unless its work is being captured
	branch  *stream  // what is known of that work

	records [recordsKept]mark // the newest, for reports; a ring
	marks   int
}

// A mark is a Record: what it is behind, and where it was called.
type mark struct {
	number uint64
	event  string
	site   *site
}

const recordsKept = 16

// An event is what is known of a device's event.
type event struct {
	name     string
	witness  *witness // whose the host's waits are, nil if everybody's
	recorded bool
	seen     clock    // what its newest Record comes after
	capture  *capture // the Record's, nil if it was captured by none
}

// A handle is a name of a stream; one may have several.
type handle struct {
	stream *stream
	users  int
}

// newStream gives a stream an index: one of a stream that has ended, if the host has
// seen the end of its work, for then nothing will ever be unordered with that again.
func (d *Device) newStream(name string) *stream {
	c := d.checker
	s := &stream{device: d, name: name}
	for i, old := range c.ended {
		if c.host.at(old.index) >= old.last {
			last := len(c.ended) - 1
			c.ended[i], c.ended[last] = c.ended[last], nil
			c.ended = c.ended[:last]
			s.index, s.last = old.index, old.last
			c.streams[s.index] = s
			return s
		}
	}
	s.index = len(c.streams)
	c.streams = append(c.streams, s)
	return s
}

// submits makes s's next work come after all that the host has seen, which is what
// submitting it orders and no more.
func (s *stream) submits() {
	c := s.device.checker
	if s.host != c.hostVersion {
		s.seen.join(c.host)
		s.host = c.hostVersion
	}
}

// sees makes the host come after what seen says.
func (c *Checker) sees(seen clock) {
	if c.host.join(seen) {
		c.hostVersion++
	}
}

// behind is the first Record of s behind its access of that number, as far as it is
// remembered.
func (s *stream) behind(number uint64) (mark, bool) {
	for i := max(0, s.marks-recordsKept); i < s.marks; i++ {
		if m := s.records[i%recordsKept]; m.number >= number {
			return m, true
		}
	}
	return mark{}, false
}

func (s *stream) record(m mark) {
	s.records[s.marks%recordsKept] = m
	s.marks++
}
