package prefetch

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/invariants"
)

// A slot is memory that one stream writes and others read, with the events that order the
// two: a device slot, a transform's raw memory, a Map's result. What lies in it has
// travelled together, so that one event tells when all of it is there; a batch is a
// window on it.
//
// Two rules order its use lap after lap, whoever writes and whoever reads:
//
//	overwrite after read   beginWrite waits for the last lap's reads, which endRead records
//	read after filled      beginRead waits for filled, which endWrite records
//
// Each Wait binds to the newest Record issued: so a slot is written only when every
// endRead of its last lap has returned (P1), and what was not read in that lap is not
// waited for (P2).
type slot struct {
	id     int
	memory device.View
	buffer *device.Buffer     // what memory is: the slot's own, or
	host   *device.HostBuffer // pinned memory, which the host reads
	filled *device.Event

	windows []*window // one for each batch in it, none for what holds no batch
	mark    int       // of the timeline, in this lap

	mu          sync.Mutex
	lap         uint64 // of filled, that Waits are to bind to
	reads       reads  // of this lap, and of the last until it is overwritten
	undelivered int    // batches of this lap that are not delivered yet
	unreturned  int    // batches of this lap that are not back yet
	failed      bool   // an operation on it failed: what was submitted is unknown
}

// beginWrite makes work submitted to stream from now on wait until the slot's last lap
// has been read.
func (s *slot) beginWrite(stream *device.Stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.reads.list {
		r := &s.reads.list[i]
		if err := otherLap(stream, r.done, r.lap); err != nil {
			return err
		}
		if err := r.unlessEnded(stream.Wait(r.done)); err != nil { // overwrite after read
			return err
		}
	}
	s.reads.clear()
	return nil
}

// endWrite marks in stream where the slot is filled.
func (s *slot) endWrite(stream *device.Stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := stream.Record(s.filled); err != nil { // read after filled
		return err
	}
	s.lap = s.filled.Records()
	return nil
}

// beginRead makes work submitted to stream from now on wait until the slot is filled.
func (s *slot) beginRead(stream *device.Stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.beginReadLocked(stream)
	return err
}

// endRead marks in stream where its read ends.
func (s *slot) endRead(stream *device.Stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.endReadLocked(s.reads.by(stream))
}

// beginReadLocked is beginRead; the caller holds s.mu.
func (s *slot) beginReadLocked(stream *device.Stream) (*read, error) {
	if err := otherLap(stream, s.filled, s.lap); err != nil {
		return nil, err
	}
	if err := stream.Wait(s.filled); err != nil { // read after filled
		return nil, err
	}
	r, err := s.reads.begin(stream)
	if err == nil {
		r.unrecorded++
	}
	return r, err
}

// endReadLocked is endRead; the caller holds s.mu.
func (s *slot) endReadLocked(r *read) error {
	if err := r.stream.Record(r.done); err != nil { // overwrite after read
		return err
	}
	r.lap = r.done.Records()
	r.unrecorded--
	return nil
}

// otherLap is why a Wait would bind to another Record than the one that is meant. Builds
// with the tag invariants look: a slot that is written too early, or by two, shows here
// even where its bytes happen to be right.
func otherLap(stream *device.Stream, e *device.Event, meant uint64) error {
	if !invariants.Enabled || e.Records() == meant {
		return nil
	}
	return fmt.Errorf("prefetch: stream %q would wait for lap %d of event %q, lap %d is meant", stream.Name(), e.Records(), e.Name(), meant)
}

// slotOptions says what a slot is made of.
type slotOptions struct {
	id     int
	bytes  int64
	onHost bool                // pinned memory, for a reader on the host
	filled device.EventOptions // its name without the slot's number
	read   device.EventOptions // of the reads' events, their names without numbers
	reads  int                 // how many streams may read it in a lap
}

// newSlot makes a slot on dev. What it could make before an error is in it, for close.
func newSlot(dev *device.Device, o slotOptions) (s *slot, err error) {
	s = &slot{id: o.id}
	if o.onHost {
		if s.host, err = dev.AllocHost(o.bytes, device.HostOptions{}); err == nil {
			s.memory, err = s.host.View()
		}
	} else if s.buffer, err = dev.Alloc(o.bytes); err == nil {
		s.memory = s.buffer.View()
	}
	if err != nil {
		return s, err
	}
	o.filled.Name = fmt.Sprintf("%s %d", o.filled.Name, o.id)
	if s.filled, err = dev.NewEvent(o.filled); err != nil {
		return s, err
	}
	o.read.Name = fmt.Sprintf("%s %d", o.read.Name, o.id)
	return s, s.reads.init(dev, o.read, o.reads)
}

// describe says what the memory is in reports of a checker of orders.
func (s *slot) describe(what func(offset, bytes int64) (name, hint string)) {
	if s.buffer != nil {
		s.buffer.Describe(what)
	} else {
		s.host.Describe(what)
	}
}

// load begins a lap with so many batches.
func (s *slot) load(batches int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.undelivered, s.unreturned = batches, batches
}

// delivered notes that one more of its batches is the user's.
func (s *slot) delivered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.undelivered--
}

// held reports whether the user has all that is in the slot.
func (s *slot) held() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.undelivered == 0 && s.unreturned > 0
}

// isRead reports whether the streams have done with the last lap.
func (s *slot) isRead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads.over()
}

// isReadByOthers reports whether the streams of UsedOn have done with the last lap. It asks
// nothing of the device where there were none.
func (s *slot) isReadByOthers() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads.othersOver()
}

// rest waits until the streams have passed the point where their reads end.
func (s *slot) rest(ctx context.Context) error {
	for i := 0; ; i++ {
		r, ok := s.at(i)
		if !ok {
			return nil
		}
		if err := r.rest(ctx); err != nil {
			return err
		}
	}
}

// at is the read of that number in this lap.
func (s *slot) at(i int) (r read, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i >= len(s.reads.list) {
		return r, false
	}
	return s.reads.list[i], true
}

// renew makes a slot that has failed, and has come to rest, as good as new.
func (s *slot) renew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads.clear()
	s.failed = false
}

// close gives the memory and the events back.
func (s *slot) close() error {
	errs := []error{s.reads.close()}
	if s.filled != nil {
		errs = append(errs, s.filled.Close())
	}
	if s.buffer != nil {
		errs = append(errs, s.buffer.Close())
	}
	if s.host != nil {
		errs = append(errs, s.host.Close())
	}
	return errors.Join(errs...)
}
