package capture

import (
	"errors"
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/prefetch"
)

// maxFailures is after how many failed captures in a row the step is captured no more. One
// may be another goroutine's fault.
const maxFailures = 3

// capture captures the step, compares, and submits it as a graph. due is false if a
// checker alone wants that: without one, an earlier batch's graph would be launched.
func (s *step) capture(l *lane, g *graph, b prefetch.Batch, due bool) error {
	began := time.Now()
	captured, err := l.captured.Capture(func() error { return s.body(l.captured, Batch{b}, l.view()) })
	if err == nil {
		defer l.free(captured)
	}
	b.Len() // panics if body has released it
	if refused(err) {
		return s.failedBy(l, b, err)
	}
	if err != nil {
		return err
	}
	s.tally.captures.Add(1)
	if changed := g.differs(captured.Nodes()); changed != nil {
		e := &ChangedError{Position: b.Position(), Replays: s.unsure, Difference: changed}
		if s.unsure > 0 || !due {
			s.err = e
			return e
		}
		return s.single(l, b, captured, e)
	}
	if doubt := doubtful(captured.Nodes()); doubt != nil {
		return s.single(l, b, captured, doubt)
	}
	s.schedule.captured(began, time.Now())
	return s.agreed(l, g, b, captured, due)
}

// refused reports whether a capture failed for what the device or others made of it, and
// not by an error of the user's.
func refused(err error) bool {
	return errors.Is(err, device.ErrCapture) || errors.Is(err, device.ErrUnsupported)
}

// differs is the first difference to the captures of other batches, nil if there is none.
func (g *graph) differs(nodes []device.Node) *device.Difference {
	c := g.class
	if c.nodes == nil {
		return nil
	}
	if all := driver.Compare(c.nodes, normal(nodes, g.places)); len(all) > 0 {
		return all[0]
	}
	return nil
}

// agreed launches the graph of the place, which the capture shows to be right.
func (s *step) agreed(l *lane, g *graph, b prefetch.Batch, captured *device.Graph, due bool) error {
	c := g.class
	if c.nodes == nil {
		c.nodes = normal(captured.Nodes(), g.places)
	}
	if due {
		s.unsure -= c.unsure
		c.unsure = 0
	} else {
		s.unsure++
		c.unsure++
	}
	if g.exec == nil {
		x, err := captured.Instantiate()
		if errors.Is(err, device.ErrOutOfMemory) {
			return s.failedBy(l, b, err)
		}
		if err != nil {
			return err
		}
		g.exec = x
		s.tally.graphs.Add(1)
	}
	s.failed = 0
	l.worked = true
	return g.exec.Launch(l.compute)
}

// single launches a capture for the batch that it was made of: all steps from here on are
// submitted call by call.
func (s *step) single(l *lane, b prefetch.Batch, captured *device.Graph, reason error) error {
	s.tally.forGood(reason)
	x, err := captured.Instantiate()
	if errors.Is(err, device.ErrOutOfMemory) {
		return s.launch(l, b)
	}
	if err != nil {
		return err
	}
	l.worked = true
	l.once = append(l.once, x)
	return x.Launch(l.compute)
}

// failedBy submits the step call by call after a capture that failed.
func (s *step) failedBy(l *lane, b prefetch.Batch, failure error) error {
	s.failed++
	s.tally.fails(failure)
	if err := s.launch(l, b); err != nil {
		return err
	}
	if s.failed == maxFailures || errors.Is(failure, device.ErrUnsupported) {
		s.tally.forGood(failure)
	}
	return nil
}
