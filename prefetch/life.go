package prefetch

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/life"
)

// A lifecycle is where a Prefetcher stands in its life: package life has the states and
// says which event leads from one to which. Any goroutine may call it. A batch takes two
// events, so the state is one word and no lock.
type lifecycle struct{ word atomic.Uint64 }

// step is the only writer of the state. It returns the state behind e, or ErrBusy or
// ErrClosed if e comes at the wrong time. An event that can't happen is a mistake of this
// package, with which nothing can be relied on any more: it panics.
func (l *lifecycle) step(e life.PipelineEvent) (life.Pipeline, error) {
	for {
		word := l.word.Load()
		now := life.PipelineOf(word)
		next, err := now.Next(e)
		switch err {
		case nil:
			if l.word.CompareAndSwap(word, next.Word()) {
				return next, nil
			}
		case life.ErrBusy:
			return next, ErrBusy
		case life.ErrClosed:
			return next, ErrClosed
		default:
			panic(fmt.Sprintf("prefetch: %v while %+v", e, now))
		}
	}
}

// must is step for an event that no user brings about.
func (l *lifecycle) must(e life.PipelineEvent) life.Pipeline {
	now, err := l.step(e)
	if err != nil {
		panic(fmt.Sprintf("prefetch: %v: %v", e, err))
	}
	return now
}

func (l *lifecycle) state() life.Pipeline { return life.PipelineOf(l.word.Load()) }

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
