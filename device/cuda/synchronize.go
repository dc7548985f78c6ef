package cuda

import (
	"context"
	"sync"

	"github.com/leat-go/leat/device/driver"
)

// pending is work that a caller asks about or waits for: the driver's calls that
// ask and that wait, and the handle that both take.
type pending struct {
	op, name string
	query    uintptr // 0 where nothing can be asked
	wait     uintptr
	handle   uintptr
}

// Synchronize blocks the caller until all work of the context is done, that of
// other libraries included.
func (d *gpu) Synchronize(ctx context.Context) error {
	const op = "Synchronize"
	if d.captures.active.Load() > 0 {
		return d.spoil(op, driver.CaptureUnsupported, "streams of the device are captured")
	}
	return d.await(ctx, pending{op: op, wait: d.cu.ctxSynchronize})
}

// done asks whether p is complete.
func (d *gpu) done(p pending) (bool, error) {
	g, err := d.enter(p.op)
	if err != nil {
		return false, err
	}
	g.name = p.name
	r := g.call(p.query, p.handle)
	if r == notReady {
		return false, g.leave(success)
	}
	if err := g.leave(r); err != nil {
		return false, err
	}
	if err := d.refused(p.op); err != nil { // a host function before p has failed
		return false, err
	}
	return true, nil
}

// await blocks until p is complete or ctx is done. Work already complete is so
// whatever ctx says, and costs no goroutine; neither does a context that can't be
// cancelled.
func (d *gpu) await(ctx context.Context, p pending) error {
	if p.query != 0 {
		if done, err := d.done(p); done || err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if ctx.Done() == nil {
		return d.block(p)
	}
	w := d.waits.get(d)
	w.pending = p
	d.waits.running.Add(1)
	go w.run()
	select {
	case err := <-w.done:
		d.waits.put(w)
		return err
	case <-ctx.Done():
		return context.Cause(ctx) // the goroutine keeps w, and nobody takes it up again
	}
}

func (d *gpu) block(p pending) error {
	g, err := d.enter(p.op)
	if err != nil {
		return err
	}
	g.name = p.name
	if err := g.leave(g.call(p.wait, p.handle)); err != nil {
		return err
	}
	return d.refused(p.op) // a host function before p has failed
}

// A wait is a goroutine's blocking call. It is used again, with its channel and
// its function, so that waiting allocates nothing.
type wait struct {
	pending pending
	done    chan error
	run     func()
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
		w.done <- d.block(w.pending)
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
