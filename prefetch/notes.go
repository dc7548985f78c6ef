package prefetch

import (
	"errors"
	"sync"

	"github.com/leat-go/leat/device"
)

// notes is errors that had no caller to return them to: the next Open, or Close, tells it.
type notes struct {
	mu      sync.Mutex
	pending error
	faulted bool // the user has been told of a fault of the device
}

// keep stores an error, unless there is one.
func (n *notes) keep(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.pending == nil {
		n.pending = err // which may be nil
	}
}

// take is what was kept, which is the caller's to return from here on.
func (n *notes) take() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	err := n.pending
	n.pending = nil
	return err
}

// told notes that the user has got err: it need not be told again.
func (n *notes) told(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.pending != nil && (errors.Is(err, n.pending) || sameFault(err, n.pending)) {
		n.pending = nil
	}
}

// sameFault reports whether both errors tell of a device's fault: once a device has failed
// every call says so, and only the first is news.
func sameFault(a, b error) bool {
	return errors.Is(a, device.ErrFault) && errors.Is(b, device.ErrFault)
}

// joined is both errors, or the first if there is no other, or both tell of a device's fault.
func joined(err, also error) error {
	if also == nil || sameFault(err, also) {
		return err
	}
	return errors.Join(err, also)
}

// fault notes that the user is told of a fault of the device, and reports whether they
// were before.
func (n *notes) fault() (before bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, n.faulted = n.faulted, true
	return before
}

// news is err for the user: a fault of the device in full the first time, and without its
// stacks from then on.
func (n *notes) news(err error) error {
	if errors.Is(err, device.ErrFault) && n.fault() {
		return &endedError{firstLine(err.Error()), err}
	}
	return err
}
