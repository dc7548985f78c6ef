package slots

import (
	"errors"
	"fmt"
	"slices"

	"github.com/leat-go/leat/device"
)

// A read is the work of one stream on a slot in one lap, from its Wait for filled to the
// Record of done.
type read struct {
	stream     *device.Stream
	done       *device.Event // of the stream's device
	lap        uint64        // of done, that a Wait is to bind to
	unrecorded int           // how many ends are still to be recorded
	batches    int           // delivered to the stream; only compute streams have any
	whole      bool          // it ends with the last of the slot's batches, not with each one's Release
	peer       bool          // the stream is of another device than the slot
	over       bool          // done was seen to be complete
}

// unfinished reports whether the stream may still be at work. If the query fails, the read
// counts as ended: the work that is submitted next will tell the error.
func (r *read) unfinished() bool {
	if r.unrecorded > 0 {
		return true
	}
	if !r.over {
		done, err := r.done.Done()
		r.over = done || err != nil
	}
	return !r.over
}

// unlessEnded is err, or nil if it says that a peer is closed: its work has ended too.
func (r *read) unlessEnded(err error) error {
	if errors.Is(err, device.ErrClosed) && r.peer {
		return nil
	}
	return err
}

// reads are those of a slot's lap, and the events for them. A stream has one in a lap,
// whichever of the slot's batches it is for.
type reads struct {
	list    []read
	spare   []*device.Event // in no use; the last is taken next
	dev     *device.Device
	options device.EventOptions
	made    int
}

// init makes the events for n reads on dev. Those for peers are made when the first read
// on a peer comes, and then kept.
func (rs *reads) init(dev *device.Device, o device.EventOptions, n int) error {
	rs.dev, rs.options = dev, o
	rs.list, rs.spare = make([]read, 0, n), make([]*device.Event, 0, n)
	for range n {
		e, err := rs.event(dev)
		if err != nil {
			return err
		}
		rs.spare = append(rs.spare, e)
	}
	slices.Reverse(rs.spare) // the first is taken first
	return nil
}

func (rs *reads) event(dev *device.Device) (*device.Event, error) {
	o := rs.options
	o.Name = fmt.Sprintf("%s.%d", o.Name, rs.made)
	rs.made++
	return dev.NewEvent(o)
}

// by is a stream's read in this lap, nil if there is none.
func (rs *reads) by(stream *device.Stream) *read {
	for i := range rs.list {
		if rs.list[i].stream == stream {
			return &rs.list[i]
		}
	}
	return nil
}

// begin is a stream's read in this lap, a new one if there is none.
func (rs *reads) begin(stream *device.Stream) (*read, error) {
	if r := rs.by(stream); r != nil {
		return r, nil
	}
	e, err := rs.take(stream.Device())
	if err != nil {
		return nil, err
	}
	rs.list = append(rs.list, read{stream: stream, done: e, peer: stream.Device() != rs.dev})
	return &rs.list[len(rs.list)-1], nil
}

// take is an event of dev that is in no use.
func (rs *reads) take(dev *device.Device) (*device.Event, error) {
	last := len(rs.spare) - 1
	for i := last; i >= 0; i-- {
		if e := rs.spare[i]; e.Device() == dev {
			rs.spare[i] = rs.spare[last]
			rs.spare = rs.spare[:last]
			return e, nil
		}
	}
	return rs.event(dev)
}

// over reports whether all of them have ended.
func (rs *reads) over() bool {
	for i := range rs.list {
		if rs.list[i].unfinished() {
			return false
		}
	}
	return true
}

// othersOver reports whether those have ended that are no compute stream's.
func (rs *reads) othersOver() bool {
	for i := range rs.list {
		if r := &rs.list[i]; !r.whole && r.unfinished() {
			return false
		}
	}
	return true
}

// clear ends the lap: nobody needs to wait for its reads any more.
func (rs *reads) clear() {
	for i := len(rs.list) - 1; i >= 0; i-- {
		rs.spare = append(rs.spare, rs.list[i].done)
		rs.list[i] = read{}
	}
	rs.list = rs.list[:0]
}

// close gives the events back. Those of a peer that is closed went with it.
func (rs *reads) close() error {
	rs.clear()
	var errs []error
	for _, e := range rs.spare {
		err := e.Close()
		if e.Device() != rs.dev && errors.Is(err, device.ErrClosed) {
			err = nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// isRead reports whether the streams have done with the last lap.
func (s *Slot) isRead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads.over()
}

// isReadByOthers reports whether the streams of uses have done with the last lap. It asks
// nothing of the device where there were none.
func (s *Slot) isReadByOthers() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads.othersOver()
}
