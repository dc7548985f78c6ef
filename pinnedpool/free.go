package pinnedpool

import "sync"

// free is the free buffers, first in first out, so that neighbours that came back together
// go out one after the other.
type free struct {
	mu      sync.Mutex
	ring    []*Buffer // has room for all
	head, n int
	waiting int           // who wait for wake
	wake    chan struct{} // holds a token when there may be a buffer for one who waits
}

func (f *free) init(slots int) {
	f.ring = make([]*Buffer, slots)
	f.wake = make(chan struct{}, 1)
}

// put adds b and those linked behind it.
func (f *free) put(b *Buffer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for b != nil {
		f.ring[(f.head+f.n)%len(f.ring)] = b
		f.n++
		b, b.next = b.next, nil
	}
	f.signal()
}

// get takes the first, nil if there is none.
func (f *free) get() *Buffer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n == 0 {
		return nil
	}
	b := f.ring[f.head]
	f.ring[f.head] = nil
	f.head = (f.head + 1) % len(f.ring)
	f.n--
	return b
}

// signal wakes one who waits. The caller holds mu.
func (f *free) signal() {
	if f.waiting == 0 {
		return
	}
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// wait counts one more who waits, or with -1 one fewer: who has got a buffer, or gives up,
// wakes the next. Behind it get finds what was put before.
func (f *free) wait(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting += n
	if f.n > 0 {
		f.signal()
	}
}

func (f *free) len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n
}
