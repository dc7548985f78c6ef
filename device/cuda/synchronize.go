package cuda

import (
	"context"
	"sync"
)

// Synchronize blocks the caller until all work of the context is done, that of
// other libraries included.
func (d *gpu) Synchronize(ctx context.Context) error {
	return d.await(ctx, "Synchronize", 0, d.cu.ctxSynchronize, 0)
}

// done asks query whether the work behind a handle is complete.
func (d *gpu) done(op string, known bool, query, handle uintptr) (bool, error) {
	if err := d.refused(op); err != nil {
		return false, err
	}
	if !known {
		return false, d.invalid(op, "no such handle on this device: was it freed?")
	}
	g, err := d.enter(op)
	if err != nil {
		return false, err
	}
	r := g.call(query, handle)
	if r == notReady {
		return false, g.leave(success)
	}
	if err := g.leave(r); err != nil {
		return false, err
	}
	return true, nil
}

// await blocks until the driver's call to fn returns, or ctx is done. Work already
// done, which query tells where there is one, is so whatever ctx says, and costs no
// goroutine; neither does a context that can't be cancelled.
func (d *gpu) await(ctx context.Context, op string, query, fn, handle uintptr) error {
	if query != 0 {
		if done, err := d.done(op, true, query, handle); done || err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if ctx.Done() == nil {
		return d.block(op, fn, handle)
	}
	w := d.waits.get(d)
	w.op, w.fn, w.handle = op, fn, handle
	d.waits.running.Add(1)
	go w.run()
	select {
	case err := <-w.done:
		d.waits.put(w)
		return err
	case <-ctx.Done():
		return ctx.Err() // the goroutine keeps w, and nobody takes it up again
	}
}

func (d *gpu) block(op string, fn, handle uintptr) error {
	g, err := d.enter(op)
	if err != nil {
		return err
	}
	return g.leave(g.call(fn, handle))
}

// A wait is a goroutine's blocking call. It is used again, with its channel and
// its function, so that waiting allocates nothing.
type wait struct {
	op         string
	fn, handle uintptr
	done       chan error
	run        func()
}

// waits are the waits in no use, and the goroutines of those that are.
type waits struct {
	running sync.WaitGroup

	mu   sync.Mutex
	free []*wait
}

func (ws *waits) get(d *gpu) *wait {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if n := len(ws.free); n > 0 {
		w := ws.free[n-1]
		ws.free = ws.free[:n-1]
		return w
	}
	w := &wait{done: make(chan error, 1)}
	w.run = func() {
		defer ws.running.Done()
		w.done <- d.block(w.op, w.fn, w.handle)
	}
	return w
}

func (ws *waits) put(w *wait) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.free = append(ws.free, w)
}

// join waits for the goroutines whose callers have left.
func (ws *waits) join() { ws.running.Wait() }
