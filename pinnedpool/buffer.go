package pinnedpool

import (
	"fmt"
	"sync/atomic"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/life"
)

// A Buffer is pinned memory of the pool's size. Whoever got it from Get holds it until
// Put, PutAfter, Doubt or Quarantine.
type Buffer struct {
	id     int
	piece  *piece
	offset int64
	bytes  []byte
	copied *device.Event
	state  atomic.Uint32
	next   *Buffer // of those in flight with it, nil for the last; then of those that are freed with it
	sealed []byte  // in an invariants build, what is being copied
}

// ID is the buffer's number in its pool, from 0.
func (b *Buffer) ID() int { return b.id }

// Bytes borrows the memory while the buffer is held.
func (b *Buffer) Bytes() []byte { return b.bytes }

// View is the memory as kernels see it, while the buffer is held.
func (b *Buffer) View() (device.View, error) {
	v, err := b.piece.host.View()
	if err != nil {
		return v, err
	}
	return v.Slice(b.offset, int64(len(b.bytes))), nil
}

// With is the memory of b and of the n buffers that follow it, with the gaps between them,
// while all of them are held; nil if they don't lie together, or have no memory.
func (b *Buffer) With(n int) []byte {
	if n < 0 || n >= b.piece.first+b.piece.size-b.id {
		return nil
	}
	end := b.offset + int64(n)*b.piece.stride + int64(len(b.bytes))
	return b.piece.host.Bytes()[b.offset:end:end]
}

// Copied is the event to record after the last copy out of the buffer, before PutAfter. Of
// several buffers that are put together only the last one's is recorded. It is for the pool
// alone: to a checker (device/order) a wait for it orders nothing else, so record an event
// of your own to order other work.
func (b *Buffer) Copied() *device.Event { return b.copied }

// step is the only writer of b.state. Going on after an event that can't happen would
// hand one batch's memory to another, so it panics.
func (b *Buffer) step(e life.BufferEvent) {
	from := b.state.Load()
	to, possible := life.Buffer(from).Next(e)
	if !possible || !b.state.CompareAndSwap(from, uint32(to)) {
		b.refuse(e)
	}
}

func (b *Buffer) refuse(e life.BufferEvent) {
	panic(fmt.Sprintf("pinnedpool: buffer %d: %v while %v", b.id, e, life.Buffer(b.state.Load())))
}
