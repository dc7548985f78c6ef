package copytime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leat-go/leat/device"
)

// clock tells where on the device's time events lie. A driver tells how long it is from one
// event to another, to within a microsecond where they are near each other: so events are
// placed by an anchor near them, and each anchor by the one before.
type clock struct {
	zero    time.Time       // on the host's clock, of the first anchor
	anchors []*device.Event // used in turn
	at      []time.Duration // where the anchors are
	last    int             // the newest one, counted from 0
	placed  int             // the newest one of which that is known
}

// init makes n anchors, and records the first while the stream has nothing else to do.
func (c *clock) init(stream *device.Stream, n int) error {
	c.at = make([]time.Duration, n)
	for i := range n {
		e, err := newEvent(stream.Device(), fmt.Sprintf("anchor %d", i))
		if err != nil {
			return err
		}
		c.anchors = append(c.anchors, e)
	}
	if err := stream.Record(c.anchors[0]); err != nil {
		return err
	}
	if err := c.anchors[0].Synchronize(context.Background()); err != nil {
		return err
	}
	c.zero = time.Now()
	return nil
}

// anchor records another anchor.
func (c *clock) anchor(stream *device.Stream) error {
	c.last++
	return stream.Record(c.anchors[c.last%len(c.anchors)])
}

// place says in a mark's upload when what was timed took place. It reports false if that is
// not to be known yet. Finished is -1 as long as that is not.
func (c *clock) place(m *mark) bool {
	n := len(c.anchors)
	for c.placed < m.anchor {
		d, err := device.Elapsed(c.anchors[c.placed%n], c.anchors[(c.placed+1)%n])
		if err != nil {
			return false
		}
		c.at[(c.placed+1)%n] = c.at[c.placed%n] + d
		c.placed++
	}
	u := &m.of
	u.Origin, u.Begun, u.Loaded, u.Finished = c.zero, 0, 0, -1
	for _, e := range [...]struct {
		at       *time.Duration
		event    *device.Event
		recorded bool
	}{
		{&u.Started, m.started, true}, {&u.Copied, m.copied, true}, {&u.Reached, m.reached, true},
		{&u.Begun, m.begun, m.state.transformed}, {&u.Loaded, m.loaded, m.state.transformed}, {&u.Finished, m.finished, m.state.returned == m.of.Batches},
	} {
		if !e.recorded {
			continue
		}
		d, err := device.Elapsed(c.anchors[m.anchor%n], e.event)
		switch {
		case err == nil:
			*e.at = c.at[m.anchor%n] + d
		case e.event != m.finished:
			return false
		}
	}
	u.Begun, u.Loaded = max(u.Begun, u.Copied), max(u.Loaded, u.Copied)
	return true
}

func (c *clock) close() (err error) {
	for _, e := range c.anchors {
		err = errors.Join(err, e.Close())
	}
	return err
}
