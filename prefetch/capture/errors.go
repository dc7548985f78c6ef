package capture

import (
	"errors"
	"fmt"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/prefetch"
)

var (
	// ErrClosed is returned by Run once the Step is closed, or its Prefetcher is.
	ErrClosed = prefetch.ErrClosed
	// ErrBusy is returned by Run while another Run of the same Step is under way, of
	// which a Run in the step's own code is one.
	ErrBusy = errors.New("capture: another Run of this Step is under way: make a Step for each goroutine")
)

// ChangedError says that two captures of a step differ.
type ChangedError struct {
	// Position says at which batch that was found.
	Position prefetch.Position
	// Replays is how many steps may have repeated something that is no longer what the
	// step does: those since captures last agreed. If it is 0 none has.
	Replays int64
	// Difference is the first difference: the kernel, the argument and both values.
	// Addresses in the batch's own memory are given relative to that, from 1<<63 on.
	Difference *device.Difference
}

// Error implements error.
func (e *ChangedError) Error() string {
	s := fmt.Sprintf("capture: batch %d of epoch %d: the step is not what was captured: %v: give what changes to Run",
		e.Position.Batch, e.Position.Epoch, e.Difference)
	switch e.Replays {
	case 0:
		return s
	case 1:
		return s + "; 1 step before may have used the old value"
	}
	return fmt.Sprintf("%s; %d steps before may have used the old value", s, e.Replays)
}

// Unwrap returns the Difference.
func (e *ChangedError) Unwrap() error { return e.Difference }

// NodeError says why a step is not replayed: a piece of its work about which it is not
// known that a replay would do the same.
type NodeError struct {
	// Node is its number, Op its call and Kernel the name of its kernel.
	Node       int
	Op, Kernel string
	// Why is the reason, a sentence.
	Why string
}

// Error implements error.
func (e *NodeError) Error() string {
	who := e.Op
	if e.Kernel != "" {
		who = fmt.Sprintf("kernel %q", e.Kernel)
	}
	return fmt.Sprintf("capture: node %d, %s: %s", e.Node, who, e.Why)
}
