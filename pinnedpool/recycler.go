package pinnedpool

import (
	"context"
	"sync"
)

// A recycler frees the buffers whose copies are done. Its goroutine is started by
// add. It ends when nothing is in flight and nobody keeps it; drain waits for that.
type recycler struct {
	pool *Pool
	loop func() // run as a value, so that starting it allocates nothing

	mu      sync.Mutex
	queue   []*Buffer // a ring: buffers in flight in the order of their copies
	head, n int
	running bool
	active  bool          // what was in flight is not free yet
	kept    bool          // with nothing in flight the goroutine waits for more
	more    sync.Cond     // there is something in flight, or nobody keeps the goroutine
	failed  bool          // an event's error ended the goroutine; freeAll makes good
	idle    chan struct{} // made by drain, closed by the goroutine when nothing is in flight
}

func (r *recycler) init(p *Pool, slots int) {
	r.pool = p
	r.queue = make([]*Buffer, slots)
	r.loop = r.run
	r.more.L = &r.mu
}

// keep makes the goroutine stay while nothing is in flight, or lets it end.
func (r *recycler) keep(kept bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = kept
	r.more.Signal()
}

func (r *recycler) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}

func (r *recycler) add(b *Buffer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue[(r.head+r.n)%len(r.queue)] = b
	r.n++
	if r.failed {
		return
	}
	r.active = true
	r.more.Signal()
	if !r.running {
		r.running = true
		go r.loop()
	}
}

// run waits for the oldest copy, then frees all that are done. An event's error is
// the device's fault: nothing in flight can be known to be done, so nothing of it
// is freed and the pool fails.
func (r *recycler) run() {
	for b := r.oldest(); b != nil; b = r.oldest() {
		err := b.copied.Synchronize(context.Background())
		for done := true; err == nil && done && b != nil; {
			if err = b.unchanged(); err != nil {
				break
			}
			b.move(inFlight, free) // I2
			r.drop()
			r.pool.refill(b)
			if b = r.oldestInFlight(); b != nil {
				done, err = b.copied.Done()
			}
		}
		if err != nil {
			r.pool.fail(err)
			r.abandon()
			return
		}
	}
}

// freeAll frees what an abandoned goroutine has left in the queue.
func (r *recycler) freeAll() {
	for b := r.oldestInFlight(); b != nil; b = r.oldestInFlight() {
		b.move(inFlight, free)
		r.drop()
		r.pool.refill(b)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = false
}

// oldest is the buffer to wait for; with none left the goroutine has ended.
func (r *recycler) oldest() *Buffer {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.n == 0 {
		r.drained()
		if !r.kept {
			r.running = false
			return nil
		}
		r.more.Wait()
	}
	return r.queue[r.head]
}

// oldestInFlight is oldest without the ending.
func (r *recycler) oldestInFlight() *Buffer {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n == 0 {
		return nil
	}
	return r.queue[r.head]
}

func (r *recycler) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue[r.head] = nil
	r.head = (r.head + 1) % len(r.queue)
	r.n--
}

func (r *recycler) abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed, r.running = true, false
	r.drained()
}

// drained tells who waits in drain. Callers hold r.mu.
func (r *recycler) drained() {
	r.active = false
	if r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
}

// drain waits until all that was in flight is free, or the goroutine has given up.
func (r *recycler) drain(ctx context.Context) error {
	r.mu.Lock()
	if !r.active {
		r.mu.Unlock()
		return nil
	}
	if r.idle == nil {
		r.idle = make(chan struct{})
	}
	idle := r.idle
	r.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
