package slotmodel

import (
	"fmt"

	"github.com/leat-go/leat/internal/life"
)

const (
	maxBuffers  = 4
	maxSlots    = 3
	maxTogether = 2
)

// poison is the content of memory that is being written; batches count from 1.
const poison = -1

// buffer is a pinned buffer, and its event.
type buffer struct {
	life    life.Buffer
	batch   int8
	content int8
	filled  bool
	failed  bool // the batch could not be read
	stuck   bool // its producer doesn't come back
	away    bool // and it is in quarantine
	writer  bool // somebody who had it before may write yet: a mistake
	behind  int8 // the last of those in flight with it
	copied  recording
}

// window is the place of a batch in a slot.
type window struct {
	life    life.Batch
	batch   int8
	content int8
	used    bool // on the second stream
}

// read is what a stream reads in a slot in this lap.
type read struct {
	begun bool
	whole bool // it ends with the last of the slot's batches
	open  int8 // how many ends are still to be recorded
	done  recording
}

// slot is device memory for batches that travel together, and its events.
type slot struct {
	windows       [maxTogether]window
	filled        recording
	reads         [streams]read // by stream
	waiting, left int8          // batches that are not delivered, or not back
	failed        bool
}

// queue is a channel of numbers.
type queue struct {
	n  int8
	at [maxBuffers * maxTogether]int8
}

func (q *queue) push(x int8) {
	q.at[q.n] = x
	q.n++
}

func (q *queue) pop() int8 { return q.remove(0) }

func (q *queue) remove(i int8) int8 {
	x := q.at[i]
	copy(q.at[i:], q.at[i+1:])
	q.n--
	q.at[q.n] = 0
	return x
}

// place is where an actor's program stands.
type place uint8

const (
	idle    place = iota // the uploader takes a batch; the consumer does what it likes
	sending              // the uploader has enough, and needs a slot
	late                 // the uploader has still to record copied: a mistake
	waiting              // the consumer is in Next
	left                 // the consumer has left the run, which is to be joined
	ended                // the uploader's program; the consumer has closed all
)

// uploader is the uploader's place, and what it has gathered.
type uploader struct {
	at       place
	next     int8 // the batch that comes next in order
	gathered queue
	record   int8 // the buffer whose event is recorded too late, from 1
}

// state is all there is. It is made of single bytes, which hash fast.
type state struct {
	buffers  [maxBuffers]buffer
	slots    [maxSlots]slot
	free     queue // buffers, in the order in which they came back
	ring     queue // slots, likewise
	inFlight queue // buffers, in the order of their copies
	items    queue // windows that are ready, in order
	streams  [streams]stream

	opened   int8 // batches, by the producers
	uploader uploader
	consumer place
	next     int8 // the batch that comes next to the consumer
	late     int8 // the slot that came back before its reads' Records, from 1: a mistake

	faulted   bool // the one fault has been
	fault     bool // of the recycler's, until what was in flight is taken back
	cancelled bool // producers and uploader are told to end
	failed    bool // the run ends with an error
	told      bool // and the user has got it

	broken violation
}

// window number of a slot's window.
func (o Shape) window(slot, i int8) int8 { return slot*int8(o.Together) + i }

func (m *model) at(s *state, number int8) (*slot, *window) {
	t := int8(m.Shape.Together)
	return &s.slots[number/t], &s.slots[number/t].windows[number%t]
}

func (m *model) initial() state {
	var s state
	for b := range int8(m.Shape.Buffers) {
		s.free.push(b)
	}
	for d := range int8(m.Shape.Slots) {
		s.ring.push(d)
	}
	s.uploader.next, s.next = 1, 1
	return s
}

// buffer is the only writer of a buffer's state, batch of a window's.
func (m *model) buffer(s *state, b int8, e life.BufferEvent) {
	from := s.buffers[b].life
	to, possible := m.Buffer(from, e)
	if !possible {
		s.violate(impossibleBuffer, int8(e), int8(from))
	}
	m.moves.Buffers[from][e] = m.moves.Buffers[from][e] || possible
	s.buffers[b].life = to
}

func (m *model) batch(s *state, w *window, e life.BatchEvent) {
	from := w.life
	to, possible := m.Batch(from, e)
	if !possible {
		s.violate(impossibleBatch, int8(e), int8(from))
	}
	m.moves.Batches[from][e] = m.moves.Batches[from][e] || possible
	if w.life = to; to == life.Empty {
		w.batch = 0
	}
}

// promise is one that can be broken.
type promise uint8

const (
	kept promise = iota
	overwrittenOnHost
	otherCopied
	otherRead
	outOfOrder
	heldUp
	errorTooEarly
	notFree
	impossibleBuffer
	impossibleBatch
)

// violation is the first promise that was broken, and between which batches, or by which
// event in which state.
type violation struct {
	promise
	batch, other int8
}

// violate notes that a promise is broken. The search stops there.
func (s *state) violate(p promise, batch, other int8) {
	if s.broken.promise == kept {
		s.broken = violation{p, batch, other}
	}
}

func (v violation) String() string {
	switch v.promise {
	case overwrittenOnHost:
		return fmt.Sprintf("batch %d is written over batch %d, which is still to be copied", v.batch, v.other)
	case otherCopied:
		return fmt.Sprintf("the copy of batch %d reads other contents", v.batch)
	case otherRead:
		return fmt.Sprintf("work on batch %d reads other contents", v.batch)
	case outOfOrder:
		return fmt.Sprintf("batch %d comes instead of batch %d", v.batch, v.other)
	case heldUp:
		return fmt.Sprintf("the copy of batch %d waits for compute, though there are several streams", v.batch)
	case errorTooEarly:
		return fmt.Sprintf("the error comes instead of batch %d", v.batch)
	case notFree:
		return fmt.Sprintf("buffer %d counts as free and is %v", v.batch, life.Buffer(v.other))
	case impossibleBuffer:
		return fmt.Sprintf("%v of a buffer that is %v", life.BufferEvent(v.batch), life.Buffer(v.other))
	case impossibleBatch:
		return fmt.Sprintf("%v of a batch that is %v", life.BatchEvent(v.batch), life.Batch(v.other))
	}
	return ""
}

// unfinished says what is missing in a state in which nobody can go on.
func (m *model) unfinished(s *state) string {
	switch {
	case s.consumer != ended || s.uploader.at != ended:
		return "nobody can go on"
	case s.next != int8(m.Shape.Batches)+1:
		return "batches are missing"
	case s.failed && !s.told:
		return "the user was not told"
	}
	for id := range int8(streams) {
		if !s.idle(id) {
			return "a stream waits for ever"
		}
	}
	for i, b := range s.buffers[:m.Shape.Buffers] {
		if b.life != life.Free {
			return fmt.Sprintf("buffer %d is %v at the end", i, b.life)
		}
	}
	if int(s.ring.n) != m.Shape.Slots {
		return "a slot is lost"
	}
	for i, d := range s.slots[:m.Shape.Slots] {
		for _, w := range d.windows {
			if w.life != life.Empty {
				return fmt.Sprintf("a batch in slot %d is %v at the end", i, w.life)
			}
		}
	}
	return ""
}
