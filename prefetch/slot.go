package prefetch

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/pinnedpool"
)

// state is where a slot stands in its lap.
type state uint32

const (
	free    state = iota // no batch is in it
	filling              // the uploader's
	ready                // uploaded, waiting to be delivered
	leased               // the user's
)

func (s state) String() string {
	return [...]string{"free", "filling", "ready", "leased"}[s]
}

// A slot is the place of one batch, used lap after lap: a part of a carrier or,
// for a host consumer without a transform, a pinned host slot itself.
//
// Whoever moved it to its state owns its other fields: the uploader from filling,
// the user from leased.
type slot struct {
	id int
	// lap is the state, in its lowest bits, and the generation: one word, so that a
	// lease that a late call ends is the one that the call means.
	lap     atomic.Uint64
	history history

	carrier *carrier           // nil for a pinned host slot
	pinned  *pinnedpool.Buffer // the pinned host slot, else nil
	memory  device.View        // where the batch is; empty for a host consumer
	host    []byte             // where it is for a host consumer, else nil
	lent    lent

	// The batch that is in it.
	batch       loader.Filled
	substituted []loader.Substitution // of batch, in memory of its own
	rows        int
	shapes      [][]int        // by field; [0] is rows
	stream      *device.Stream // the compute stream that the batch was given to

	usedOn []*device.Stream // the streams of UsedOn; under the carrier's lock
}

const (
	stateBits = 2
	stateMask = 1<<stateBits - 1
)

// state is where the slot stands.
func (s *slot) state() state { return state(s.lap.Load() & stateMask) }

// generation counts the leases; a Batch carries the one it was made in.
func (s *slot) generation() uint64 { return s.lap.Load() >> stateBits }

// lentTo reports whether the lease of that generation lasts (P4).
func (s *slot) lentTo(generation uint64) bool {
	return s.lap.Load() == generation<<stateBits|uint64(leased)
}

// move and giveBack are the only writers of s.lap. Going on after a bad move would
// corrupt training data silently, so it panics. The move to leased begins a generation.
func (s *slot) move(from, to state) {
	old := s.lap.Load()
	next := old&^stateMask | uint64(to)
	if to == leased {
		next += 1 << stateBits
	}
	if state(old&stateMask) != from || !s.lap.CompareAndSwap(old, next) {
		panic(fmt.Sprintf("prefetch: slot %d: %v -> %v while %v\n%s", s.id, from, to, s.state(), &s.history))
	}
	s.history.add(to, s.batch)
}

// giveBack ends the lease of that generation, and reports false if it has ended.
func (s *slot) giveBack(generation uint64) bool {
	lap := generation << stateBits
	if !s.lap.CompareAndSwap(lap|uint64(leased), lap|uint64(free)) {
		return false
	}
	s.history.add(free, s.batch)
	return true
}

// hold takes what the loader filled as the slot's batch of this lap.
func (s *slot) hold(f loader.Filled) {
	// The list is the loader's again when the host slot is, which may be long before
	// the batch is released.
	s.substituted = append(s.substituted[:0], f.Substituted...)
	s.batch = f
	s.batch.Substituted = s.substituted
	s.rows = f.N
	setRows(s.shapes, f.N)
}

// shapes are the fields' shapes with room for the number of rows in front.
func shapes(l *loader.Layout) [][]int {
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

// history is the last few moves of a slot, for the panic that reports a bad one,
// and the place that took the lease, for the report of one that nobody returns.
type history struct {
	mu    sync.Mutex
	moves [8]struct {
		to           state
		epoch, batch int
	}
	n     int
	taken [6]uintptr // empty for a lease of a range, which can't be forgotten
	depth int
}

func (h *history) add(to state, f loader.Filled) {
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
	b.WriteString("the slot's last moves:")
	for i := max(0, h.n-len(h.moves)); i < h.n; i++ {
		m := h.moves[i%len(h.moves)]
		fmt.Fprintf(&b, "\n\t%v (epoch %d, batch %d)", m.to, m.epoch, m.batch)
	}
	return b.String()
}

// lease describes the lease that the newest move began.
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
