package loader

import (
	"io"
	"slices"
	"sync"
)

// maxUnclosed is how many samples may wait for their Close before the iterator waits
// for it too.
const maxUnclosed = 16

// discarded is a sample that no batch takes, and where it was.
type discarded struct {
	sample        io.Closer
	epoch, number int // number of the batch in its epoch
	position      int64
}

// disposal closes the samples that no batch takes, one after the other. Close is the
// user's and may take for ever, so it is called on a goroutine that nobody waits for
// without a limit: neither who discards a sample nor who takes batches. The goroutine
// begins with a sample and ends when none is left.
type disposal struct {
	failed func(*Error)  // is told what goes wrong
	loop   func()        // is run: a method's value made once, for go allocates one
	room   chan struct{} // wakes who waits until there are fewer
	line   [64]byte      // only the goroutine's

	mu        sync.Mutex
	queue     []discarded // from next on; the first of them is being closed
	next      int
	running   bool
	goroutine uint64        // 0 before it has begun
	rest      chan struct{} // closed when the goroutine ends; nil if nobody waits for that
}

func newDisposal(failed func(*Error)) *disposal {
	d := &disposal{failed: failed, room: make(chan struct{}, 1)}
	d.loop = d.run
	return d
}

// add takes a sample: one that is no io.Closer has its end at once.
func (d *disposal) add(sample any, epoch, number int, position int64) {
	if held, ok := sample.(heldSample); ok && held.closer() == nil {
		held.drop()
		return
	}
	c, ok := sample.(io.Closer)
	if !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue = append(d.queue, discarded{c, epoch, number, position})
	if !d.running {
		d.running = true
		go d.loop() // ends when no sample is left
	}
}

// run closes what there is.
func (d *disposal) run() {
	id, ended := readGoroutineID(d.line[:]), false
	defer func() {
		if !ended { // Close called runtime.Goexit
			go d.loop()
		}
	}()
	for s, ok := d.first(id); ok; s, ok = d.first(id) {
		d.close(s)
	}
	ended = true
}

// first is the sample to be closed now. Without one the goroutine is to end.
func (d *disposal) first(goroutine uint64) (s discarded, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.next < len(d.queue) {
		d.goroutine = goroutine
		return d.queue[d.next], true
	}
	d.running, d.goroutine = false, 0
	if d.rest != nil {
		close(d.rest)
		d.rest = nil
	}
	return discarded{}, false
}

// close closes one sample.
func (d *disposal) close(s discarded) {
	var err error
	returned := false
	defer func() {
		if !returned {
			err = caught(recover())
		}
		if err != nil {
			d.failed(&Error{Epoch: s.epoch, Batch: s.number, Sample: int(s.position), Position: s.position,
				Shard: -1, Stage: StageClose, Err: err})
		}
		d.closed()
	}()
	err = s.sample.Close()
	returned = true
}

// closed ends the first sample.
func (d *disposal) closed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue[d.next] = discarded{} // what it refers to may be garbage from now on
	d.next++
	if 2*d.next >= len(d.queue) { // seldom enough to cost nothing
		d.queue = slices.Delete(d.queue, 0, d.next)
		d.next = 0
	}
	wake(d.room)
}

// crowded reports whether so many samples are left that no more are to come.
func (d *disposal) crowded() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.queue)-d.next > maxUnclosed
}

// suspect is the Close under way, if there is one.
func (d *disposal) suspect() (s suspect, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.next == len(d.queue) || d.goroutine == 0 {
		return suspect{}, false
	}
	f := d.queue[d.next]
	return suspect{
		epoch: f.epoch, number: f.number, sample: int(f.position), position: f.position,
		stage: StageClose, goroutine: d.goroutine,
	}, true
}

// atRest returns a channel that is closed when no sample is left. Nobody may add one
// any more.
func (d *disposal) atRest() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.running {
		rest := make(chan struct{})
		close(rest)
		return rest
	}
	if d.rest == nil {
		d.rest = make(chan struct{})
	}
	return d.rest
}
