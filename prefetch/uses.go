package prefetch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/leat-go/leat/device"
)

// A use is the work of one stream on a carrier in one lap: from the Wait for ready
// to the Record of consumed.
type use struct {
	stream   *device.Stream
	consumed *device.Event // of the stream's device
	lap      uint64        // of consumed, that a Wait is to bind to
	peer     bool          // the stream is of another device than the carrier
	compute  bool          // it ends with the carrier's last batch, not with each one's Release
	open     int           // how many ends are still to be marked
}

// end marks the end of one of the uses.
func (u *use) end() error {
	if err := u.stream.Record(u.consumed); err != nil { // (b)
		return err
	}
	u.lap = u.consumed.Records()
	u.open--
	return nil
}

// rest waits until the stream is behind the use. If its end could not be marked it
// waits for all of the stream's work, or of the device's where the stream is gone.
func (u *use) rest(ctx context.Context) error {
	if u.open == 0 {
		return u.unlessEnded(u.consumed.Synchronize(ctx))
	}
	return u.unlessEnded(rest(ctx, u.stream))
}

// rest waits for all work of a stream, or of its device where the stream is gone.
func rest(ctx context.Context, s *device.Stream) error {
	err := s.Synchronize(ctx)
	if errors.Is(err, device.ErrInvalid) {
		err = s.Device().Synchronize(ctx)
	}
	if err != nil {
		return fmt.Errorf("stream %q: %w", s.Name(), err)
	}
	return nil
}

// unlessEnded is err, or nil if it says that a peer is closed: its work has ended too.
func (u *use) unlessEnded(err error) error {
	if errors.Is(err, device.ErrClosed) && u.peer {
		return nil
	}
	return err
}

// uses are those of a carrier's lap, and the events for them. A stream has one in a
// lap, whichever of the batches it is for.
type uses struct {
	list  []use
	spare []*device.Event // in no use; the last is taken next
	dev   *device.Device
	id    int
	made  int
}

// init makes the events for n uses on dev. Those for peers are made when the first
// use on a peer comes, and then kept.
func (us *uses) init(dev *device.Device, id, n int) error {
	us.dev, us.id = dev, id
	us.list, us.spare = make([]use, 0, n), make([]*device.Event, 0, n)
	for range n {
		e, err := us.event(dev)
		if err != nil {
			return err
		}
		us.spare = append(us.spare, e)
	}
	slices.Reverse(us.spare) // the first is taken first
	return nil
}

func (us *uses) event(dev *device.Device) (*device.Event, error) {
	us.made++
	// No BlockingSync, although Close waits for it: the device's own cost of marking such
	// an event, 3 to 8 µs a batch on an H200, is more than what Close saves.
	return dev.NewEvent(device.EventOptions{Name: fmt.Sprintf("consumed %d.%d", us.id, us.made-1)})
}

// find is a stream's use in this lap, nil if there is none.
func (us *uses) find(stream *device.Stream) *use {
	for i := range us.list {
		if us.list[i].stream == stream {
			return &us.list[i]
		}
	}
	return nil
}

// of is a stream's use in this lap, begun if there is none.
func (us *uses) of(stream *device.Stream) (*use, error) {
	if u := us.find(stream); u != nil {
		return u, nil
	}
	e, err := us.take(stream.Device())
	if err != nil {
		return nil, err
	}
	us.list = append(us.list, use{stream: stream, consumed: e, peer: stream.Device() != us.dev})
	return &us.list[len(us.list)-1], nil
}

// take is an event of dev that is in no use.
func (us *uses) take(dev *device.Device) (*device.Event, error) {
	last := len(us.spare) - 1
	for i := last; i >= 0; i-- {
		if e := us.spare[i]; e.Device() == dev {
			us.spare[i] = us.spare[last]
			us.spare = us.spare[:last]
			return e, nil
		}
	}
	return us.event(dev)
}

// clear ends the lap: nobody needs to wait for its uses any more.
func (us *uses) clear() {
	for i := len(us.list) - 1; i >= 0; i-- {
		us.spare = append(us.spare, us.list[i].consumed)
		us.list[i] = use{}
	}
	us.list = us.list[:0]
}

// release frees the events. Those of a peer that is closed went with it.
func (us *uses) release() error {
	us.clear()
	var errs []error
	for _, e := range us.spare {
		err := e.Close()
		if e.Device() != us.dev && errors.Is(err, device.ErrClosed) {
			err = nil
		}
		errs = append(errs, err)
	}
	us.spare = nil
	return errors.Join(errs...)
}
