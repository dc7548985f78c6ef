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
	inFlight chan *Buffer  // in the order of their copies; holds every buffer; nil without a goroutine
	ended    chan struct{} // closed when that goroutine has ended
	active   int           // buffers in flight that are neither free nor doubtful yet
	fault    error         // an event's: what comes is doubtful until rest
	doubt    []*Buffer     // buffers that something may still read
	idle     chan struct{} // made by drain, closed when active is 0
}

func (r *recycler) init(p *Pool, slots int) {
	r.pool, r.slots = p, slots
	r.doubt = make([]*Buffer, 0, slots)
}

// count is how many buffers are free and how many in flight, at one moment.
func (r *recycler) count() (free, inFlight int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pool.free), r.active
}

func (r *recycler) add(buffers []*Buffer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active += len(buffers)
	if r.inFlight == nil {
		r.inFlight, r.ended = make(chan *Buffer, r.slots), make(chan struct{})
		go r.loop(r.inFlight, r.ended)
	}
	for _, b := range buffers {
		r.inFlight <- b // it holds every buffer: this never blocks
	}
}

// loop waits for the oldest copy, then frees all that are done: waiting for one that is
// costs a query.
func (r *recycler) loop(inFlight <-chan *Buffer, ended chan<- struct{}) {
	defer close(ended)
	var done *Buffer // its event is complete; the rest of those in flight with it come next
	for b := range inFlight {
		if r.lost(b, nil) || r.lost(b, b.await(done)) {
			done = nil
			continue
		}
		if done = b.behind; b == done {
			done = nil // the next Record of its event is another one
		}
		r.land(b)
	}
}

// await waits until the copies of b are done, which they are if it stands behind done.
func (b *Buffer) await(done *Buffer) error {
	if b.behind != done {
		if err := b.behind.copied.Synchronize(context.Background()); err != nil {
			return err
		}
	}
	return b.unchanged()
}

// land frees a buffer whose copies are done.
func (r *recycler) land(b *Buffer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b.step(life.Copied) // I2
	r.pool.refill(b)
	r.settle()
}

// lost reports whether b, which is in flight, is in doubt from now on: err says that its
// copies can't be waited for, or has said so of others. An event's error is the device's
// fault: nothing in flight can be known to be done.
func (r *recycler) lost(b *Buffer, err error) bool {
	r.mu.Lock()
	if r.fault == nil {
		r.fault = err
	}
	lost := r.fault != nil
	if lost {
		b.step(life.Doubt)
		r.doubt = append(r.doubt, b)
		r.settle()
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

// settle counts a buffer that is not in flight any more. The caller holds mu.
func (r *recycler) settle() {
	if r.active--; r.active == 0 && r.idle != nil {
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
