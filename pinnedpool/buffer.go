package pinnedpool

import (
	"fmt"
	"sync/atomic"

	"github.com/leat-go/leat/device"
)

// state is where a buffer stands in its round.
type state uint32

const (
	free state = iota
	held
	inFlight
	quarantined
)

func (s state) String() string {
	return [...]string{"free", "held", "in flight", "quarantined"}[s]
}

// A Buffer is one pinned slot. Whoever got it from Get holds it until Put,
// PutAfter or Quarantine.
type Buffer struct {
	id     int
	host   *device.HostBuffer
	copied *device.Event
	state  atomic.Uint32
	sealed []byte // in an invariants build, what is being copied
}

// ID is the buffer's number in its pool, from 0.
func (b *Buffer) ID() int { return b.id }

// Bytes borrows the memory while the buffer is held.
func (b *Buffer) Bytes() []byte { return b.host.Bytes() }

// View is the memory as kernels see it, while the buffer is held.
func (b *Buffer) View() (device.View, error) { return b.host.View() }

// Copied is the event to record behind the last copy out of the buffer, before
// PutAfter. The pool waits for it, and a checker (device/order) takes the host's waits
// for it as the pool's own: to order other work, record an event of your own.
func (b *Buffer) Copied() *device.Event { return b.copied }

// move is the only writer of b.state. Going on after a bad move would hand one
// batch's memory to another, so it panics.
func (b *Buffer) move(from, to state) {
	if !b.state.CompareAndSwap(uint32(from), uint32(to)) {
		panic(fmt.Sprintf("pinnedpool: buffer %d: %v -> %v while %v", b.id, from, to, state(b.state.Load())))
	}
}
