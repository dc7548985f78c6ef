package slotmodel

import "fmt"

// The size of the model: every device slot has a second lap, and a host slot too.
const (
	hostSlots   = 3
	deviceSlots = 2
	batches     = 4
)

// poison is the content of memory that no batch lies in; batches count from 1, so
// that the zero content is none.
const poison = -1

// use is where a slot stands.
type use uint8

const (
	free use = iota
	filling
	filled
	uploading
	inFlight
	doubtful    // an operation on it failed
	quarantined // somebody may write to it for ever
)

// hostSlot is a pinned slot, and its event.
type hostSlot struct {
	use     use
	batch   int8
	content int8
	failed  bool // the batch could not be read
	stuck   bool // its producer doesn't come back
	copied  recording
}

// deviceSlot is device memory for one batch, and its events.
type deviceSlot struct {
	use             use
	batch           int8
	content         int8
	used            bool // in an earlier lap
	ready, consumed recording
}

// queue is a channel of slots.
type queue struct {
	n  int8
	at [hostSlots]int8
}

func (q *queue) push(slot int8) {
	q.at[q.n] = slot
	q.n++
}

func (q *queue) pop() int8 {
	slot := q.at[0]
	copy(q.at[:], q.at[1:])
	q.n--
	q.at[q.n] = 0
	return slot
}

// An actor is at one place in its program, with the slots in its hands.
type actor struct {
	at           place
	host, device int8
	batch        int8 // the next, or the one in hand
	bound        recording
}

// place is where an actor's program stands.
type place uint8

const (
	idle place = iota
	taken
	ordered
	copying
	copied
	released
	delivering
	ended
)

// state is all there is. States that are equal have equal futures. It is made of
// single bytes, which hash fast.
type state struct {
	host       [hostSlots]hostSlot
	device     [deviceSlots]deviceSlot
	freeHost   queue
	freeDevice queue
	recycling  queue     // host slots in flight, in order
	delivered  queue     // device slots, in order
	streams    [2]stream // by streamID, from copies

	opened                       int8 // batches
	uploader, recycler, consumer actor

	faulted  bool // the one fault has been
	stopping bool // producers and uploader are told to end
	failed   bool // an error is under way to the user
	told     bool // or has arrived
	broken   violation
}

func initial() state {
	var s state
	for h := range int8(hostSlots) {
		s.freeHost.push(h)
	}
	for d := range int8(deviceSlots) {
		s.freeDevice.push(d)
	}
	s.uploader.batch, s.consumer.batch = 1, 1
	return s
}

// violate notes that a promise is broken. The explorer stops there.
func (s *state) violate(p promise, batch, other int8) {
	if s.broken.promise == kept {
		s.broken = violation{p, batch, other}
	}
}

// promise is one that can be broken.
type promise uint8

const (
	kept promise = iota
	overwrittenOnHost
	overwrittenOnDevice
	otherCopied
	otherRead
	outOfOrder
)

// violation is the first promise that was broken, and between which batches.
type violation struct {
	promise
	batch, other int8
}

func (v violation) String() string {
	switch v.promise {
	case overwrittenOnHost:
		return fmt.Sprintf("batch %d is written over batch %d, which is still being copied", v.batch, v.other)
	case overwrittenOnDevice:
		return fmt.Sprintf("batch %d is copied over batch %d, which compute has still to read", v.batch, v.other)
	case otherCopied:
		return fmt.Sprintf("the copy of batch %d reads other contents", v.batch)
	case otherRead:
		return fmt.Sprintf("work on batch %d reads other contents", v.batch)
	case outOfOrder:
		return fmt.Sprintf("batch %d comes instead of batch %d", v.batch, v.other)
	}
	return ""
}

// unfinished says what is missing in a state in which nobody can go on; nothing if
// that is as it should be.
func (s *state) unfinished(f Fault) string {
	switch {
	case s.consumer.at != ended || s.uploader.at != ended:
		return "nobody can go on"
	case !s.resting():
		return "a stream waits for ever"
	case !s.faulted && s.consumer.batch != batches+1:
		return "batches are missing"
	case s.failed && !s.told:
		return "the user was not told"
	case s.faulted && (f == ReadFails || f == UploadFails) && s.consumer.batch != s.uploader.batch:
		return "the error came before a batch"
	}
	for i, h := range s.host {
		if h.use != free && !(h.use == quarantined && f == Stuck) {
			return fmt.Sprintf("host slot %d is lost", i)
		}
	}
	for i, d := range s.device {
		if d.use != free {
			return fmt.Sprintf("device slot %d is lost", i)
		}
	}
	return ""
}
