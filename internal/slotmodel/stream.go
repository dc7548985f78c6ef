package slotmodel

// kind of an operation in a stream.
type kind uint8

const (
	noOp kind = iota
	wait
	copyH2D
	work
	record
)

// op is an operation in a stream. One that is done is the zero op, so that states
// differ only where their future can.
type op struct {
	kind         kind
	host, device int8
	batch        int8
	bound        recording // what a wait waits for
}

// streamID says which stream.
type streamID int8

const (
	noStream streamID = iota
	copies
	compute
)

// stream is a queue of operations, done in order.
type stream struct {
	ops          [4 * batches]op
	issued, done int8
	running      bool
}

func (s *stream) idle() bool { return s.issued == s.done }

// resting is when no stream has anything to do.
func (s *state) resting() bool { return s.streams[0].idle() && s.streams[1].idle() }

// recording is one Record of an event: the operation of that number in a stream. The
// zero recording is of an event that was never recorded.
type recording struct {
	stream streamID
	number int8
}

func (s *state) issue(id streamID, o op) {
	q := &s.streams[id-copies]
	q.ops[q.issued] = o
	q.issued++
}

// record issues a Record of an event.
func (s *state) record(id streamID, e *recording) {
	*e = recording{id, s.streams[id-copies].issued}
	s.issue(id, op{kind: record})
}

func (s *state) complete(r recording) bool {
	return r.stream == noStream || r.number < s.streams[r.stream-copies].done
}

// pending calls f for each operation that is issued and not done.
func (s *state) pending(id streamID, f func(op)) {
	q := &s.streams[id-copies]
	for i := q.done; i < q.issued; i++ {
		f(q.ops[i])
	}
}

// advance is one step of a stream: an operation with a duration begins or ends,
// another is done at once.
func (s *state) advance(id streamID) (did note, possible bool) {
	q := &s.streams[id-copies]
	if q.idle() {
		return impossible()
	}
	o := q.ops[q.done]
	switch {
	case o.kind == wait && !s.complete(o.bound):
		return impossible()
	case o.kind == copyH2D && !q.running:
		s.beginCopy(o)
		q.running = true
		return note{"the copy of batch %d begins", o.batch}, true
	case o.kind == work && !q.running:
		s.read(o)
		q.running = true
		return note{"work on batch %d begins", o.batch}, true
	case o.kind == copyH2D:
		s.endCopy(o)
		did = note{"the copy of batch %d ends", o.batch}
	case o.kind == work:
		s.read(o)
		did = note{"work on batch %d ends", o.batch}
	default:
		did = note{[...]string{"", "the copy stream passes an event", "compute passes an event"}[id], 0}
	}
	q.ops[q.done] = op{}
	q.done++
	q.running = false
	return did, true
}

func (s *state) beginCopy(o op) {
	s.pending(compute, func(w op) {
		if w.kind == work && w.device == o.device && w.batch < o.batch {
			s.violate(overwrittenOnDevice, o.batch, w.batch)
		}
	})
	s.device[o.device].content = poison
}

func (s *state) endCopy(o op) {
	if s.host[o.host].content != o.batch {
		s.violate(otherCopied, o.batch, 0)
	}
	s.device[o.device].content = s.host[o.host].content
}

func (s *state) read(o op) {
	if s.device[o.device].content != o.batch {
		s.violate(otherRead, o.batch, 0)
	}
}
