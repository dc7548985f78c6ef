package pinnedpool

import (
	"context"
	"sync"

	"github.com/leat-go/leat/internal/life"
)

// A recycler frees the buffers whose copies are done, on a goroutine that the first of
// them starts and end ends.
type recycler struct {
	pool  *Pool
	slots int

	mu       sync.Mutex
	inFlight chan group    // in the order of their copies; holds all; nil without a goroutine
	ended    chan struct{} // closed when that goroutine has ended
	active   int           // buffers in flight that are neither free nor doubtful yet
	fault    error         // an event's: what comes is doubtful until rest
	doubt    []*Buffer     // buffers that something may still read
	idle     chan struct{} // made by drain, closed when active is 0
}

// A group is buffers in flight whose end one event tells, that of the last. They are
// linked by next.
type group struct {
	first, last *Buffer
	size        int
}

func (r *recycler) init(p *Pool, slots int) {
	r.pool, r.slots = p, slots
	r.doubt = make([]*Buffer, 0, slots)
}

// count is how many buffers are free and how many in flight, at one moment.
func (r *recycler) count() (free, inFlight int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pool.free.len(), r.active
}

func (r *recycler) add(first, last *Buffer, size int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active += size
	if r.inFlight == nil {
		r.inFlight, r.ended = make(chan group, r.slots), make(chan struct{})
		go r.loop(r.inFlight, r.ended)
	}
	r.inFlight <- group{first, last, size} // it holds every buffer: this never blocks
}

// loop waits for the oldest copies, then frees all that are done: waiting for those that
// are costs a query.
func (r *recycler) loop(inFlight <-chan group, ended chan<- struct{}) {
	defer close(ended)
	for g := range inFlight {
		if !r.lost(g, nil) && !r.lost(g, g.await()) {
			r.land(g)
		}
	}
}

// await waits until the copies of a group are done.
func (g group) await() error {
	if err := g.last.copied.Synchronize(context.Background()); err != nil {
		return err
	}
	for b := g.first; b != nil; b = b.next {
		if err := b.unchanged(); err != nil {
			return err
		}
	}
	return nil
}

// land frees a group whose copies are done.
func (r *recycler) land(g group) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for b := g.first; b != nil; b = b.next {
		b.step(life.Copied) // I2
		b.poison()
	}
	r.pool.free.put(g.first)
	r.settle(g.size)
}

// lost reports whether a group, which is in flight, is in doubt from now on: err says that
// its copies can't be waited for, or has said so of others. An event's error is the
// device's fault: nothing in flight can be known to be done.
func (r *recycler) lost(g group, err error) bool {
	r.mu.Lock()
	if r.fault == nil {
		r.fault = err
	}
	lost := r.fault != nil
	if lost {
		for b := g.first; b != nil; {
			b.step(life.Doubt)
			r.doubt = append(r.doubt, b)
			b, b.next = b.next, nil
		}
		r.settle(g.size)
	}
	r.mu.Unlock()
	if lost {
		r.pool.mu.Lock()
		defer r.pool.mu.Unlock()
		r.pool.tell()
	}
	return lost
}

func (r *recycler) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fault
}

// keep keeps a buffer that something may read, though it was not submitted whole.
func (r *recycler) keep(b *Buffer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doubt = append(r.doubt, b)
}

func (r *recycler) doubtful() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.doubt)
}

// rest frees what was doubtful.
func (r *recycler) rest() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.doubt {
		b.step(life.Rest)
		r.pool.refill(b)
	}
	r.doubt, r.fault = r.doubt[:0], nil
}

// settle counts buffers that are not in flight any more. The caller holds mu.
func (r *recycler) settle(n int) {
	if r.active -= n; r.active == 0 && r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
}

// drain waits until nothing is in flight.
func (r *recycler) drain(ctx context.Context) error {
	r.mu.Lock()
	if r.active == 0 {
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

// end ends the goroutine and waits for its end. It does nothing and reports false if a
// buffer is in flight.
func (r *recycler) end() bool {
	r.mu.Lock()
	if r.active > 0 {
		r.mu.Unlock()
		return false
	}
	ended := r.stop()
	r.mu.Unlock()
	if ended != nil {
		<-ended
	}
	return true
}

// stop lets the goroutine end with the last of what is in flight, and returns what is
// closed then; nil if there is no goroutine. The caller holds mu.
func (r *recycler) stop() <-chan struct{} {
	if r.inFlight == nil {
		return nil
	}
	close(r.inFlight)
	r.inFlight = nil
	return r.ended
}
