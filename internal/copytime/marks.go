// Package copytime measures on the device when copies ran and when compute was ready for
// them, by timed events.
package copytime

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/observe/journal"
)

// Marks are the timed events of the last copies. Where there are more of them than copies
// that can be under way, what a mark has measured is complete when its turn comes again;
// a copy for which that isn't so is not counted. The zero value measures nothing.
//
// One goroutine calls Start, Copied and Loaded, and one at a time Reached and Finished; any
// may call Measured.
type Marks struct {
	marks []mark
	every bool
	to    journal.Recorder // nil if nobody is told
	clock clock

	burst time.Time // when the last burst began
	left  int       // of the burst

	mu         sync.Mutex
	next       int  // the mark whose turn it is, the oldest one
	closed     bool // the events are gone
	uploads    int64
	copy, wait time.Duration
}

// A mark is the timed events of one upload.
type mark struct {
	started  *device.Event // the copy starts
	copied   *device.Event // the copy is done
	begun    *device.Event // the transform behind it begins
	loaded   *device.Event // the transform is done
	reached  *device.Event // compute has nothing left to do before this batch
	finished *device.Event // compute has done with the upload's batches

	of     journal.Upload
	anchor int // of the clock
	state  state
}

// state is what has become of the upload that a mark is of.
type state struct {
	transformed, reached bool // recorded
	returned             int  // of its batches; finished is recorded when all are
	counted, told        bool
}

// Events is how many events a mark has.
const Events = 6

// Unless every copy is timed they are in bursts, in which neighbours tell of the time between
// them too. A mark costs about 10 µs, in calls and on the device, so that a burst of 8 every
// 32 ms costs a quarter of a hundredth.
const (
	burstLength = 8
	burstPause  = 32 * time.Millisecond
)

// None is no mark's number.
const None = -1

// Options says what is timed, and who is told.
type Options struct {
	// Every says that every upload is timed.
	Every bool
	// To is told of each upload that was timed, if it is not nil.
	To journal.Recorder
}

// Init makes n marks on the device of copies, the stream that copies are submitted to. What
// it could make before an error is freed by Close.
func (t *Marks) Init(copies *device.Stream, n int, o Options) error {
	t.every, t.to = o.Every, o.To
	for i := range n {
		var m mark
		for name, e := range map[string]**device.Event{"started": &m.started, "ended": &m.copied, "begun": &m.begun, "loaded": &m.loaded, "reached": &m.reached, "finished": &m.finished} {
			var err error
			if *e, err = newEvent(copies.Device(), fmt.Sprintf("%s %d", name, i)); err != nil {
				return errors.Join(err, m.close())
			}
		}
		m.state.told, m.state.counted = true, true // there is nothing yet
		t.marks = append(t.marks, m)
	}
	if o.To == nil {
		return nil
	}
	// An anchor is needed until the marks of its burst have been read.
	return t.clock.init(copies, n/burstLength+3)
}

func newEvent(dev *device.Device, name string) (*device.Event, error) {
	return dev.NewEvent(device.EventOptions{Timing: true, Name: name})
}

// Start marks in stream where the copy of an upload starts, and returns its mark, None if it
// is not to be timed.
func (t *Marks) Start(stream *device.Stream) (number int, err error) {
	if len(t.marks) == 0 {
		return None, nil
	}
	begins, now := t.left == 0, time.Now()
	if begins && !t.every && !t.burst.IsZero() && now.Sub(t.burst) < burstPause {
		return None, nil
	}
	if begins {
		t.burst, t.left = now, burstLength
	}
	t.left--
	t.mu.Lock()
	number = t.next
	t.next = (t.next + 1) % len(t.marks)
	m := &t.marks[number]
	t.count(m)
	t.tell(m, true)
	m.of, m.state = journal.Upload{Sent: now}, state{}
	t.mu.Unlock()
	if begins && t.to != nil {
		if err := t.clock.anchor(stream); err != nil {
			return None, err
		}
	}
	m.anchor = t.clock.last
	return number, stream.Record(m.started)
}

// Describe says what has travelled: the Number, Batches, Bytes and Slot of an upload.
func (t *Marks) Describe(number int, of journal.Upload) {
	if number == None {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	of.Sent = t.marks[number].of.Sent
	t.marks[number].of = of
}

// Copied marks in stream where the copy ends.
func (t *Marks) Copied(stream *device.Stream, number int) error {
	if number == None {
		return nil
	}
	return stream.Record(t.marks[number].copied)
}

// Begun marks in a transform's stream where that begins.
func (t *Marks) Begun(stream *device.Stream, number int) error {
	if number == None || t.to == nil {
		return nil
	}
	return stream.Record(t.marks[number].begun)
}

// Loaded marks in a transform's stream where that ends.
func (t *Marks) Loaded(stream *device.Stream, number int) error {
	if number == None || t.to == nil {
		return nil
	}
	m := &t.marks[number]
	t.mu.Lock()
	defer t.mu.Unlock()
	m.state.transformed = true
	return stream.Record(m.loaded)
}

// Reached marks in a compute stream that it is about to wait for the copy. Of several calls
// for one copy the first counts.
func (t *Marks) Reached(stream *device.Stream, number int) error {
	if number == None {
		return nil
	}
	m := &t.marks[number]
	t.mu.Lock()
	defer t.mu.Unlock()
	if m.state.reached || t.closed {
		return nil
	}
	m.state.reached = true
	return stream.Record(m.reached)
}

// Finished marks in a compute stream where its work on one of the upload's batches ends. The
// last of them counts.
func (t *Marks) Finished(stream *device.Stream, number int) error {
	if number == None || t.to == nil {
		return nil
	}
	m := &t.marks[number]
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	if m.state.returned++; m.state.returned < m.of.Batches {
		return nil
	}
	m.of.Released = time.Now()
	return stream.Record(m.finished)
}

// count adds what a mark has measured, once that is complete. The caller holds t.mu.
func (t *Marks) count(m *mark) {
	if m.state.counted || !m.state.reached || t.closed {
		return
	}
	copied, err := device.Elapsed(m.started, m.copied)
	if err != nil {
		return // the device is at fault or behind; it counts among the uploads not measured
	}
	waited, err := device.Elapsed(m.reached, m.copied)
	if err != nil {
		return
	}
	m.state.counted = true
	t.uploads++
	t.copy += copied
	t.wait += max(0, waited)
}

// tell tells of a mark's upload, unless something of it may yet be known and the events are
// not about to be used again. It reports whether that is done. The caller holds t.mu.
func (t *Marks) tell(m *mark, last bool) (done bool) {
	if m.state.told || t.to == nil {
		return true
	}
	if !m.state.counted || !t.clock.place(m) || m.of.Finished < 0 && !last {
		return last
	}
	m.state.told = true
	t.to.Upload(&m.of)
	return true
}

// Measured is what has been measured so far, without what is under way: how many copies,
// how long they took, and how long compute waited for them.
func (t *Marks) Measured() (uploads int64, copying, waiting time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.marks {
		t.count(&t.marks[i])
	}
	for i := 0; i < len(t.marks) && t.tell(&t.marks[(t.next+i)%len(t.marks)], false); i++ { // in order
	}
	return t.uploads, t.copy, t.wait
}

// Close frees the events. What is not told by then nobody is told of.
func (t *Marks) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	errs := []error{t.clock.close()}
	for i := range t.marks {
		errs = append(errs, t.marks[i].close())
	}
	return errors.Join(errs...)
}

func (m *mark) close() error {
	var errs []error
	for _, e := range []*device.Event{m.started, m.copied, m.begun, m.loaded, m.reached, m.finished} {
		if e != nil {
			errs = append(errs, e.Close())
		}
	}
	return errors.Join(errs...)
}
