package life

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
)

// A History is the last few states of the place of a batch, for the panic that reports a
// mistake, and the place in the code that took the lease, for the report of one that nobody
// returns. Any goroutine may call it.
type History struct {
	mu    sync.Mutex
	moves [8]struct {
		to           Batch
		epoch, batch int
	}
	n     int
	taken [1]uintptr // empty for a lease of a range, which can't be forgotten
	depth int
	step  bool // a Map's step has it
}

// Add adds a state, and which batch it is about.
func (h *History) Add(to Batch, epoch, batch int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := &h.moves[h.n%len(h.moves)]
	m.to, m.epoch, m.batch = to, epoch, batch
	h.n++
	h.depth, h.step = 0, false
}

// Take notes the caller skip frames up as the one that took the lease.
func (h *History) Take(skip int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.depth = runtime.Callers(skip+1, h.taken[:])
}

// TakeInStep notes that it is the step of a Map that took the lease.
func (h *History) TakeInStep() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.step = true
}

// String is the states, oldest first, a line each.
func (h *History) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	b.WriteString("its last states:")
	for i := max(0, h.n-len(h.moves)); i < h.n; i++ {
		m := h.moves[i%len(h.moves)]
		fmt.Fprintf(&b, "\n\t%v (epoch %d, batch %d)", m.to, m.epoch, m.batch)
	}
	return b.String()
}

// Lease describes the lease that the newest state began.
func (h *History) Lease() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.moves[(h.n-1)%len(h.moves)]
	place := "in the body of a range"
	if h.step {
		place = "in the step of a Map"
	}
	if h.depth > 0 {
		f, _ := runtime.CallersFrames(h.taken[:h.depth]).Next()
		place = fmt.Sprintf("at %s:%d", f.File, f.Line)
	}
	return fmt.Sprintf("epoch %d, batch %d, taken %s", m.epoch, m.batch, place)
}

// Batches are the one that is in the window, or was last, and the one before.
func (h *History) Batches() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.n == 0 {
		return ""
	}
	last := h.moves[(h.n-1)%len(h.moves)]
	s := fmt.Sprintf(" (batch %d of epoch %d", last.batch, last.epoch)
	for i := h.n - 1; i >= max(0, h.n-len(h.moves)); i-- {
		if m := h.moves[i%len(h.moves)]; m.batch != last.batch || m.epoch != last.epoch {
			s += fmt.Sprintf(", before it batch %d of epoch %d", m.batch, m.epoch)
			break
		}
	}
	return s + ")"
}
