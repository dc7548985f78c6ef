package slotmodel

// kind of an operation in a stream.
type kind uint8

const (
	noOp kind = iota
	wait
	copyH2D // of neighbours in pinned memory into neighbours in a slot
	work    // on a window
	record
)

// op is an operation in a stream.
type op struct {
	kind         kind
	buffer, n    int8 // a copy's first source, and how many
	slot, window int8 // a copy's first destination, or what work reads
	batch        int8 // the first that is copied, or the one that work is for
	bound        recording
}

// The streams.
const (
	copies  = 0
	compute = 1 // and perhaps 2
	other   = 3 // of UsedOn
	streams = 4
)

// stream is a queue of operations, done in order.
type stream struct {
	n   int8
	ops [16]op
}

// recording is one Record of an event: how far from the front of its stream it stands,
// from 1. The zero recording is complete, or of an event that was never recorded, which
// is the same to whoever waits for it.
type recording struct{ stream, number int8 }

func (r recording) complete() bool { return r.number == 0 }

func (s *state) idle(id int8) bool { return s.streams[id].n == 0 }

func (s *state) issue(id int8, o op) {
	q := &s.streams[id]
	q.ops[q.n] = o
	q.n++
}

// record issues a Record of an event.
func (s *state) record(id int8, e *recording) {
	s.issue(id, op{kind: record})
	*e = recording{id, s.streams[id].n}
}

// pop ends a stream's oldest operation.
func (s *state) pop(id int8) {
	q := &s.streams[id]
	copy(q.ops[:], q.ops[1:q.n])
	q.n--
	q.ops[q.n] = op{}
	pass := func(r *recording) {
		if r.number > 0 && r.stream == id {
			if r.number--; r.number == 0 {
				*r = recording{}
			}
		}
	}
	for i := range s.buffers {
		pass(&s.buffers[i].copied)
	}
	for i := range s.slots {
		pass(&s.slots[i].filled)
		for j := range s.slots[i].reads {
			pass(&s.slots[i].reads[j].done)
		}
	}
	for i := range s.streams {
		q := &s.streams[i]
		for j := range q.ops[:q.n] {
			pass(&q.ops[j].bound)
		}
	}
}

// settle ends the operations that take no time and can end. Nobody can tell that from
// their ending later: what they let others do, those may do later too.
func (s *state) settle() {
	for again := true; again; {
		again = false
		for id := range int8(streams) {
			for q := &s.streams[id]; q.n > 0; again = true {
				if o := &q.ops[0]; o.kind != record && !(o.kind == wait && o.bound.complete()) {
					break
				}
				s.pop(id)
			}
		}
	}
}

// advance does a stream's oldest copy or work. It is done at one moment: where two that
// touch the same memory are not ordered, they come in either order.
func (m *model) advance(s *state, id int8) (did note, possible bool) {
	q := &s.streams[id]
	if q.n == 0 || q.ops[0].kind == wait {
		return impossible()
	}
	o := q.ops[0]
	if o.kind == copyH2D {
		did = note{"batch %d is copied", o.batch}
		for i := range o.n {
			s.copy(o, i)
		}
	} else {
		did = note{"work on batch %d is done", o.batch}
		if s.slots[o.slot].windows[o.window].content != o.batch {
			s.violate(otherRead, o.batch, 0)
		}
	}
	s.pop(id)
	s.settle()
	return did, true
}

// copy does a part of a copy.
func (s *state) copy(o op, i int8) {
	batch, to := o.batch+i, &s.slots[o.slot].windows[o.window+i]
	if s.buffers[o.buffer+i].content != batch {
		s.violate(otherCopied, batch, 0)
	}
	to.content = batch
}
