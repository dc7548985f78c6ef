package cuda

import "sync"

// handles are the live objects of one kind. The handle is the driver's own
// pointer, so that other libraries can be given it; the driver would crash on one
// that was freed, so every handle is looked up before it is used.
type handles[H ~uintptr, T any] struct {
	mu   sync.RWMutex
	live map[H]*T
}

func (h *handles[H, T]) get(handle H) *T {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.live[handle]
}

func (h *handles[H, T]) put(handle H, t *T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.live == nil {
		h.live = make(map[H]*T)
	}
	h.live[handle] = t
}

// take removes handle and returns what it stood for, nil if it is not live.
func (h *handles[H, T]) take(handle H) *T {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.live[handle]
	delete(h.live, handle)
	return t
}
