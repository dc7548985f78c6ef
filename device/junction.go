package device

import "slices"

// A Junction makes streams wait for each other: many for one, or one for many. It has one
// event, made once, so that forking and joining allocate nothing. One goroutine uses it
// at a time.
type Junction struct {
	// One event serves for all: a Wait is bound to its Record when it is issued.
	event *Event
}

// NewJunction makes a junction. The caller owns it until Close.
func (d *Device) NewJunction() (*Junction, error) {
	e, err := d.NewEvent(EventOptions{Name: "junction"})
	if err != nil {
		return nil, err
	}
	return &Junction{event: e}, nil
}

// Fork makes the work submitted to each of to from now on wait for all that was
// submitted to from: a table is uploaded once, and many streams read it. from is of
// the junction's device, to of that device or its peers.
func (j *Junction) Fork(from *Stream, to ...*Stream) error {
	if from == nil || slices.Contains(to, nil) {
		return j.event.dev.invalid("Fork", "a stream is nil")
	}
	if err := from.Record(j.event); err != nil {
		return err
	}
	for _, s := range to {
		if err := s.Wait(j.event); err != nil {
			return err
		}
	}
	return nil
}

// Join makes the work submitted to into from now on wait for all that was submitted
// to each of from: partial results meet. from and into are of Fork's devices.
func (j *Junction) Join(into *Stream, from ...*Stream) error {
	for _, s := range from {
		if err := j.Fork(s, into); err != nil {
			return err
		}
	}
	return nil
}

// Close frees the junction. A second Close does nothing.
func (j *Junction) Close() error { return j.event.Close() }
