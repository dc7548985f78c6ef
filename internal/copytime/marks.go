// Package copytime measures on the device when copies ran and when compute was ready for
// them, by timed events.
package copytime

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leat-go/leat/device"
)

// Marks are the timed events of the last copies. Where there are more of them than copies
// that can be under way, what a mark has measured is complete when its turn comes again;
// a copy for which that isn't so is not counted. The zero value measures nothing.
//
// One goroutine calls Start and End, and one at a time Reached; any may call Measured.
type Marks struct {
	marks []mark
	next  int

	mu         sync.Mutex
	closed     bool // the events are gone
	uploads    int64
	copy, wait time.Duration
}

// A mark is the timed events of one upload.
type mark struct {
	started *device.Event // the copy starts
	ended   *device.Event // the copy is done
	reached *device.Event // compute has nothing left to do before this batch
	lent    bool          // reached is recorded
}

// Events is how many events a mark has.
const Events = 3

// Init makes n marks on dev. What it could make before an error is freed by Close.
func (t *Marks) Init(dev *device.Device, n int) error {
	for i := range n {
		var m mark
		for name, e := range map[string]**device.Event{"started": &m.started, "ended": &m.ended, "reached": &m.reached} {
			var err error
			if *e, err = dev.NewEvent(device.EventOptions{Timing: true, Name: fmt.Sprintf("%s %d", name, i)}); err != nil {
				return errors.Join(err, m.close())
			}
		}
		t.marks = append(t.marks, m)
	}
	return nil
}

// Start marks in stream where the next copy starts, and returns the copy's mark.
func (t *Marks) Start(stream *device.Stream) (number int, err error) {
	if len(t.marks) == 0 {
		return 0, nil
	}
	number = t.next
	t.next = (t.next + 1) % len(t.marks)
	m := &t.marks[number]
	t.read(m)
	t.mu.Lock()
	m.lent = false
	t.mu.Unlock()
	return number, stream.Record(m.started)
}

// End marks in stream where the copy ends.
func (t *Marks) End(stream *device.Stream, number int) error {
	if len(t.marks) == 0 {
		return nil
	}
	return stream.Record(t.marks[number].ended)
}

// Reached marks in a compute stream that it is about to wait for the copy. Of several calls
// for one copy the first counts.
func (t *Marks) Reached(stream *device.Stream, number int) error {
	if len(t.marks) == 0 {
		return nil
	}
	m := &t.marks[number]
	t.mu.Lock()
	defer t.mu.Unlock()
	if m.lent {
		return nil
	}
	m.lent = true
	return stream.Record(m.reached)
}

// read adds what m has measured, if it has, and empties it.
func (t *Marks) read(m *mark) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !m.lent || t.closed {
		return
	}
	copied, err := device.Elapsed(m.started, m.ended)
	if err != nil {
		return // the device is at fault or behind; it counts among the uploads not measured
	}
	waited, err := device.Elapsed(m.reached, m.ended)
	if err != nil {
		return
	}
	m.lent = false
	t.uploads++
	t.copy += copied
	t.wait += max(0, waited)
}

// Measured is what has been measured so far, without what is under way: how many copies,
// how long they took, and how long compute waited for them.
func (t *Marks) Measured() (uploads int64, copying, waiting time.Duration) {
	for i := range t.marks {
		t.read(&t.marks[i])
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.uploads, t.copy, t.wait
}

// Close frees the events.
func (t *Marks) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	var errs []error
	for i := range t.marks {
		errs = append(errs, t.marks[i].close())
	}
	return errors.Join(errs...)
}

func (m *mark) close() error {
	var errs []error
	for _, e := range []*device.Event{m.started, m.ended, m.reached} {
		if e != nil {
			errs = append(errs, e.Close())
		}
	}
	return errors.Join(errs...)
}
