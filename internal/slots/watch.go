package slots

import (
	"context"
	"sync"
)

// A watch waits on the host until slots are read: a goroutine for each slot, which sleeps
// while nobody asks.
type watch struct {
	asked []chan *Slot // by the slot's number; it holds one
	stop  context.CancelFunc
	group sync.WaitGroup
}

// start starts the goroutines. They end with ctx, or end.
func (w *watch) start(ctx context.Context, slots int, read func()) {
	ctx, w.stop = context.WithCancel(ctx)
	w.asked = w.asked[:0]
	for range slots {
		asked := make(chan *Slot, 1)
		w.asked = append(w.asked, asked)
		w.group.Go(func() {
			for {
				select {
				case s := <-asked:
					_ = s.Rest(ctx) // an error is told by the work that is submitted next
					read()
				case <-ctx.Done():
					return
				}
			}
		})
	}
}

// ask has read called when s is read.
func (w *watch) ask(s *Slot) {
	select {
	case w.asked[s.ID] <- s:
	default: // it is asked already
	}
}

// end joins the goroutines.
func (w *watch) end() {
	w.stop()
	w.group.Wait()
}

// StartWatching has the ring watched, if that is needed, until ctx ends. Nobody calls Next
// meanwhile.
func (r *Ring) StartWatching(ctx context.Context) {
	if r.watch != nil {
		r.watch.start(ctx, len(r.slots), r.Signal)
	}
}

// StopWatching joins who watches.
func (r *Ring) StopWatching() {
	if r.watch != nil {
		r.watch.end()
	}
}
