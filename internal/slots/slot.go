package slots

import (
	"fmt"
	"sync"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/invariants"
)

// A Slot is memory that one stream writes and others read. What lies in it has travelled
// together, so that one event tells when all of it is there.
//
// Each Wait binds to the newest Record issued. So a slot is written only when every EndRead
// of its last lap has returned (P1), and what was not read in that lap is not waited for
// (P2).
type Slot struct {
	ID     int
	Memory device.View
	Host   *device.HostBuffer // what Memory is, where the host reads it: pinned memory. Else nil
	Filled *device.Event
	buffer *device.Buffer // what Memory is, where Host is nil

	mu          sync.Mutex
	lap         uint64 // of Filled, that Waits are to bind to
	reads       reads  // of this lap, and of the last until it is overwritten
	undelivered int    // batches of this lap that are not delivered yet
	unreturned  int    // batches of this lap that are not back yet
	failed      bool   // an operation on it failed: what was submitted is unknown
}

// BeginWrite makes work submitted to stream from now on wait until the slot's last lap
// has been read.
func (s *Slot) BeginWrite(stream *device.Stream) error {
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

// EndWrite marks in stream where the slot is filled.
func (s *Slot) EndWrite(stream *device.Stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := stream.Record(s.Filled); err != nil { // read after filled
		return err
	}
	s.lap = s.Filled.Records()
	return nil
}

// BeginRead makes work submitted to stream from now on wait until the slot is filled.
func (s *Slot) BeginRead(stream *device.Stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.beginReadLocked(stream)
	return err
}

// EndRead marks in stream where its read ends.
func (s *Slot) EndRead(stream *device.Stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.endReadLocked(s.reads.by(stream))
}

func (s *Slot) beginReadLocked(stream *device.Stream) (*read, error) {
	if err := otherLap(stream, s.Filled, s.lap); err != nil {
		return nil, err
	}
	if err := stream.Wait(s.Filled); err != nil { // read after filled
		return nil, err
	}
	r, err := s.reads.begin(stream)
	if err == nil {
		r.unrecorded++
	}
	return r, err
}

func (s *Slot) endReadLocked(r *read) error {
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
