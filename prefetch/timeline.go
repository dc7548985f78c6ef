package prefetch

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leat-go/leat/device"
)

// A timeline measures on the device when copies ran and when compute was ready for
// them, by timed events, if Options.Timing asks for it.
//
// The marks are a ring longer than the uploads that can be under way: when a mark
// comes round again, as many uploads have been submitted since as there are batches
// in all slots. The copy of a later one into the same slot is done by then, and
// so is all that the mark measured.
type timeline struct {
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

// timings is how many events a mark has.
const timings = 3

func (t *timeline) init(dev *device.Device, o Options) error {
	if !o.Timing {
		return nil
	}
	for i := range o.Memory.HostSlots + o.Depth*o.BatchesPerCopy + 1 {
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

// copyStarts gives the slot the next mark and submits its first event.
func (t *timeline) copyStarts(stream *device.Stream, s *slot) error {
	if len(t.marks) == 0 {
		return nil
	}
	s.mark = t.next
	t.next = (t.next + 1) % len(t.marks)
	m := &t.marks[s.mark]
	t.read(m)
	t.mu.Lock()
	m.lent = false
	t.mu.Unlock()
	return stream.Record(m.started)
}

func (t *timeline) copyEnds(stream *device.Stream, s *slot) error {
	if len(t.marks) == 0 {
		return nil
	}
	return stream.Record(t.marks[s.mark].ended)
}

// reached marks where compute stands when it is about to wait for the slot: the first time in
// a lap.
func (t *timeline) reached(stream *device.Stream, s *slot) error {
	if len(t.marks) == 0 {
		return nil
	}
	m := &t.marks[s.mark]
	t.mu.Lock()
	defer t.mu.Unlock()
	if m.lent {
		return nil
	}
	m.lent = true
	return stream.Record(m.reached)
}

// read adds what m has measured, if it has, and empties it.
func (t *timeline) read(m *mark) {
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

// measured is what has been measured so far, without what is under way.
func (t *timeline) measured() (uploads int64, copying, waiting time.Duration) {
	for i := range t.marks {
		t.read(&t.marks[i])
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.uploads, t.copy, t.wait
}

func (t *timeline) close() error {
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
