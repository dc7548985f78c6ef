package ui

import (
	"sync"
	"time"

	"github.com/leat-go/leat/observe"
)

// A window is the last seconds of a pipeline, as far as somebody looked at it.
type window struct {
	take func() *observe.Snapshot

	mu   sync.Mutex
	kept []*observe.Snapshot // the oldest first, never empty
}

const (
	// length is for how long what was seen is kept: long enough for figures that don't jump,
	// and short enough to see what a change does.
	length = 10 * time.Second
	// apart is how far apart what is kept is at least, however many look.
	apart = 500 * time.Millisecond
)

func newWindow(take func() *observe.Snapshot) *window {
	return &window{take: take, kept: []*observe.Snapshot{take()}}
}

// look is the pipeline as it is now, and the interval since an earlier look. That is of the last
// seconds where there was one; the first look after a while is at all that has happened since.
func (w *window) look() (now, interval *observe.Snapshot) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now = w.take()
	for len(w.kept) > 1 && now.Taken.Sub(w.kept[0].Taken) > length {
		w.kept = append(w.kept[:0], w.kept[1:]...)
	}
	interval = now.Sub(w.kept[0])
	if now.Taken.Sub(w.kept[len(w.kept)-1].Taken) >= apart {
		w.kept = append(w.kept, now)
	}
	return now, interval
}
