package prefetch

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/life"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/pinnedpool"
)

// A window is the place of one batch, used lap after lap: a part of a slot or, for a host
// consumer without a transform, a pinned buffer itself.
//
// Whoever moved it to its state owns its other fields: the uploader while it is filling,
// the user while it is leased.
type window struct {
	id int
	// lap is the state, in its lowest bits, and the generation: one word, so that a
	// lease that a late call ends is the one that the call means.
	lap     atomic.Uint64
	history history

	slot   *slot              // nil for a pinned buffer
	pinned *pinnedpool.Buffer // the pinned buffer, else nil
	memory device.View        // where the batch is; empty for a host consumer
	host   []byte             // where it is for a host consumer, else nil
	lent   lent

	// The batch that is in it.
	batch       loader.Filled
	substituted []loader.Substitution // of batch, in memory of its own
	short       shortage              // in which the uploader had it and no slot
	shapes      [][]int               // by field; [0] is the rows
	stream      *device.Stream        // the compute stream that the batch was given to
	usedOn      []*device.Stream      // the streams of UsedOn; guarded by the slot's lock
}

const (
	stateBits = 2
	stateMask = 1<<stateBits - 1
)

// state is where the window stands.
func (w *window) state() life.Batch { return life.Batch(w.lap.Load() & stateMask) }

// generation counts the leases; a Batch carries the one it was made in.
func (w *window) generation() uint64 { return w.lap.Load() >> stateBits }

// lentTo reports whether the lease of that generation lasts (P4).
func (w *window) lentTo(generation uint64) bool {
	return w.lap.Load() == generation<<stateBits|uint64(life.Leased)
}

// step and giveBack are the only writers of w.lap. Going on after an event that can't
// happen would corrupt training data silently, so it panics. A delivery begins a
// generation.
func (w *window) step(e life.BatchEvent) {
	old := w.lap.Load()
	to, possible := life.Batch(old & stateMask).Next(e)
	next := old&^stateMask | uint64(to)
	if e == life.Deliver {
		next += 1 << stateBits
	}
	if !possible || !w.lap.CompareAndSwap(old, next) {
		panic(fmt.Sprintf("prefetch: window %d: %v while %v\n%s", w.id, e, w.state(), &w.history))
	}
	w.history.add(to, w.batch)
}

// giveBack ends the lease of that generation, and reports false if it has ended.
func (w *window) giveBack(generation uint64) bool {
	from := generation<<stateBits | uint64(life.Leased)
	to, _ := life.Leased.Next(life.Release)
	if !w.lap.CompareAndSwap(from, generation<<stateBits|uint64(to)) {
		return false
	}
	w.history.add(to, w.batch)
	return true
}

// hold takes what the loader filled as the window's batch of this lap.
func (w *window) hold(f loader.Filled) {
	// The list is the loader's again when the pinned buffer is, which may be long before
	// the batch is released.
	w.substituted = append(w.substituted[:0], f.Substituted...)
	w.batch = f
	w.batch.Substituted = w.substituted
	setRows(w.shapes, f.N)
	w.step(life.Fill)
}

func (w *window) position() Position {
	return Position{Epoch: w.batch.Epoch, Batch: w.batch.Batch, First: w.batch.Position}
}

// endUses marks in the streams of a batch's UsedOn where its use ends. The newest Record
// of an event covers the older ones of the same stream, and the stream may be closed from
// here on. The caller holds the slot's lock.
func (w *window) endUses() error {
	var first error
	for _, stream := range w.usedOn {
		if err := w.slot.end(w.slot.reads.by(stream)); err != nil && first == nil {
			first = err
		}
	}
	w.usedOn = w.usedOn[:0]
	return first
}

// newShapes are the fields' shapes with room for the number of rows in front.
func newShapes(l *loader.Layout) [][]int {
	all := make([][]int, len(l.Fields()))
	for i, f := range l.Fields() {
		all[i] = append([]int{0}, f.Shape...)
	}
	return all
}

func setRows(shapes [][]int, n int) {
	for _, shape := range shapes {
		shape[0] = n
	}
}

// history is the last few states of a window, for the panic that reports a mistake, and
// the place that took the lease, for the report of one that nobody returns.
type history struct {
	mu    sync.Mutex
	moves [8]struct {
		to           life.Batch
		epoch, batch int
	}
	n     int
	taken [6]uintptr // empty for a lease of a range, which can't be forgotten
	depth int
}

func (h *history) add(to life.Batch, f loader.Filled) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := &h.moves[h.n%len(h.moves)]
	m.to, m.epoch, m.batch = to, f.Epoch, f.Batch
	h.n++
	h.depth = 0
}

// take notes the caller skip frames up as the one that took the lease.
func (h *history) take(skip int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.depth = runtime.Callers(skip+1, h.taken[:])
}

func (h *history) String() string {
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

// lease describes the lease that the newest state began.
func (h *history) lease() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.moves[(h.n-1)%len(h.moves)]
	place := "in the body of a range"
	if h.depth > 0 {
		f, _ := runtime.CallersFrames(h.taken[:h.depth]).Next()
		place = fmt.Sprintf("at %s:%d", f.File, f.Line)
	}
	return fmt.Sprintf("epoch %d, batch %d, taken %s", m.epoch, m.batch, place)
}

// batches are the one that is in the window, or was last, and the one before.
func (h *history) batches() string {
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

// outstanding describes the leased batches.
func outstanding(windows []*window) []string {
	var leases []string
	for _, w := range windows {
		if w.state() == life.Leased {
			leases = append(leases, w.history.lease())
		}
	}
	return leases
}

// leased is how many batches are the user's.
func leased(windows []*window) (n int) {
	for _, w := range windows {
		if w.state() == life.Leased {
			n++
		}
	}
	return n
}
