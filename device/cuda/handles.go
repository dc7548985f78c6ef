package cuda

import (
	"sync"
	"unsafe"
)

// handles are the live objects of one kind. The handle is the driver's own
// pointer, so that other libraries can be given it; the driver would crash on one
// that was freed, so every handle is looked up before it is used. They lie in several
// maps, each with its lock, so that calls about different ones seldom meet.
type handles[H ~uintptr, T any] struct {
	shards [1 << shardBits]handleShard[H, T]
}

const shardBits = 4

// A handleShard has a cache line to itself: a reader writes to the lock too.
type handleShard[H ~uintptr, T any] struct {
	mu   sync.RWMutex
	live map[H]*T
	_    [64 - unsafe.Sizeof(sync.RWMutex{}) - unsafe.Sizeof(uintptr(0))]byte
}

// shard spreads pointers, whose low bits are alike, by their product with the golden ratio.
func (h *handles[H, T]) shard(handle H) *handleShard[H, T] {
	return &h.shards[uint64(handle)*0x9e3779b97f4a7c15>>(64-shardBits)]
}

func (h *handles[H, T]) get(handle H) *T {
	s := h.shard(handle)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.live[handle]
}

func (h *handles[H, T]) put(handle H, t *T) {
	h.change(handle, func(*T) *T { return t })
}

// take removes handle and returns what it stood for, nil if it is not live.
func (h *handles[H, T]) take(handle H) (taken *T) {
	h.change(handle, func(t *T) *T { taken = t; return nil })
	return taken
}

// change makes handle stand for what to makes of what it stood for; nil is for nothing.
func (h *handles[H, T]) change(handle H, to func(*T) *T) {
	s := h.shard(handle)
	s.mu.Lock()
	defer s.mu.Unlock()
	t := to(s.live[handle])
	switch {
	case t == nil:
		delete(s.live, handle)
		return
	case s.live == nil:
		s.live = make(map[H]*T)
	}
	s.live[handle] = t
}
