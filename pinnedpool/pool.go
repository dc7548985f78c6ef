package pinnedpool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/life"
)

// Options tunes a Pool. The zero value is ready to use.
type Options struct {
	// BudgetBytes bounds the pool's memory. 0 means DefaultBudget.
	BudgetBytes int64
	// MinSlots is the smallest number of buffers that is acceptable if the budget or the
	// device allows no more. 0 means all: fewer is an error.
	MinSlots int
	// Together is how many buffers lie one behind the other, so that one copy can take
	// them. 0 means 1.
	Together int
	// Pageable allows memory that isn't locked where the device refuses to lock
	// any. Copies from it are slow and block the copying goroutine.
	Pageable bool
	// Locked asks the CPU device, which needs no locked memory, to lock it.
	Locked bool
}

// most bounds the slots: far above use, and far below what would exhaust memory by
// the bookkeeping alone.
const most = 1 << 20

// OptionError is a value that an option of New can't have.
type OptionError struct {
	// Option is the parameter of New or the field of Options.
	Option string
	// Value is what was found, Want what may be there.
	Value any
	Want  string
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("pinnedpool: %s is %v, want %s", e.Option, e.Value, e.Want)
}

func (o Options) validate(slots int, slotBytes int64) error {
	var errs []error
	check := func(ok bool, option string, value any, want string) {
		if !ok {
			errs = append(errs, &OptionError{Option: option, Value: value, Want: want})
		}
	}
	check(slots >= 1 && slots <= most, "slots", slots, fmt.Sprintf("1 to %d", most))
	check(slotBytes >= 0, "slotBytes", slotBytes, "0 or more")
	check(o.BudgetBytes >= 0, "BudgetBytes", o.BudgetBytes, "0 (a quarter of the memory) or more")
	check(o.MinSlots >= 0 && o.MinSlots <= max(slots, 0), "MinSlots", o.MinSlots, fmt.Sprintf("0 (all) to slots (%d)", slots))
	check(o.Together >= 0 && o.Together <= most, "Together", o.Together, fmt.Sprintf("0 (1) to %d", most))
	return errors.Join(errs...)
}

// Stats is what a pool counted.
type Stats struct {
	// Slots is the number of buffers. Bytes is the memory in which they lie, with what
	// is between neighbours, until it is given back.
	Slots int
	Bytes int64
	// Pageable is true where the device refused pinned memory.
	Pageable bool
	// Free, InFlight and Quarantined buffers; the rest is held or in doubt.
	Free, InFlight, Quarantined int
	// Gets counts the buffers handed out; Waits those for which Get had to wait,
	// WaitTime how long.
	Gets, Waits int64
	WaitTime    time.Duration
}

// A Pool hands out pinned buffers of one size. It is safe for concurrent use.
type Pool struct {
	dev     *device.Device
	witness *device.Witness // the recycler: what it has seen the end of is the buffers' own
	buffers []*Buffer
	stats   struct {
		gets, waits, waitTime atomic.Int64
	}
	pageable bool

	free     free
	refuses  atomic.Bool // there is a reason why no buffer can be got; tell sets it
	recycler recycler
	closing  chan struct{} // held by Close
	freeing  error         // of the last Close that had something to free; guarded by closing

	mu          sync.Mutex
	broken      chan struct{} // closed while no buffer can be got; why says why
	closed      bool
	quarantined int
	left        int   // buffers that are not given back
	bytes       int64 // and the memory
}

// New allocates slots buffers of slotBytes each, and their events, on dev. slotBytes is
// the exact size; 0 is legal: buffers without memory. The caller owns the pool until
// Close. Short of memory the error is a *MemoryError.
func New(dev *device.Device, slots int, slotBytes int64, o Options) (*Pool, error) {
	if err := o.validate(slots, slotBytes); err != nil {
		return nil, err
	}
	if o.MinSlots == 0 {
		o.MinSlots = slots
	}
	o.Together = min(max(o.Together, 1), slots)
	fit := o.fit(slots, slotBytes)
	if fit < o.MinSlots {
		return nil, &MemoryError{Slots: slots, SlotBytes: slotBytes, GotBytes: o.budget(),
			Hint: "that is the budget: raise it, or use a smaller batch or fewer slots"}
	}
	p := &Pool{dev: dev, witness: dev.NewWitness(), broken: make(chan struct{}),
		closing: make(chan struct{}, 1)}
	p.free.init(fit)
	p.recycler.init(p, fit)
	var refusal error
	for n := o.Together; n > 0 && len(p.buffers) < fit; {
		n = min(n, fit-len(p.buffers))
		err := p.grow(n, slotBytes, o)
		switch {
		case errors.Is(err, device.ErrOutOfMemory):
			refusal = err
			n /= 2 // there may be memory for fewer neighbours
		case err != nil:
			return nil, errors.Join(err, p.release())
		}
	}
	if len(p.buffers) < o.MinSlots {
		short := &MemoryError{Slots: slots, SlotBytes: slotBytes, GotBytes: p.bytes, Err: refusal,
			Hint: "raise the limit for locked memory (ulimit -l), use a smaller batch or fewer slots, or allow pageable memory"}
		return nil, errors.Join(short, p.release())
	}
	return p, nil
}

func (o Options) budget() int64 {
	if o.BudgetBytes == 0 {
		return DefaultBudget()
	}
	return o.BudgetBytes
}

// Slots is the number of buffers.
func (p *Pool) Slots() int { return len(p.buffers) }

// Buffer is the buffer of that ID.
func (p *Pool) Buffer(id int) *Buffer { return p.buffers[id] }

// Get returns a free buffer whose last copy is done, and waits for one until ctx
// ends. The caller holds it until Put, PutAfter, Doubt or Quarantine.
func (p *Pool) Get(ctx context.Context) (*Buffer, error) {
	if !p.refuses.Load() {
		if b := p.free.get(); b != nil {
			return p.take(b)
		}
	}
	return p.wait(ctx)
}

// wait is Get where there is no buffer, or none that can be got.
func (p *Pool) wait(ctx context.Context) (*Buffer, error) {
	start := time.Now()
	waited := false
	p.free.wait(1)
	defer func() {
		p.free.wait(-1)
		if waited {
			p.stats.waits.Add(1)
			p.stats.waitTime.Add(int64(time.Since(start)))
		}
	}()
	for {
		broken, err := p.health() // it may have recovered since
		if err != nil {
			return nil, err
		}
		if b := p.free.get(); b != nil {
			return p.take(b)
		}
		waited = true
		select {
		case <-p.free.wake:
		case <-broken:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// take hands b out, in an invariants build only if nobody wrote to it since it was
// put back.
func (p *Pool) take(b *Buffer) (*Buffer, error) {
	b.step(life.Get) // I1
	p.stats.gets.Add(1)
	err := b.untouched()
	if err == nil {
		err = p.witness.HostAtRest(b.bytes) // so that the caller may write
	}
	if err != nil {
		p.Quarantine(b) // whoever writes or reads may do so again
		return nil, err
	}
	return b, nil
}

// Put takes b back; nothing may read or write its memory any more.
func (p *Pool) Put(b *Buffer) {
	b.step(life.Put)
	p.refill(b)
}

// refill makes b, which is in state free, available to Get.
func (p *Pool) refill(b *Buffer) {
	b.poison()
	p.free.put(b)
}

// PutAfter takes buffers back once the Copied event of the last of them, which the caller
// has recorded behind the last copy out of any of them, is complete.
func (p *Pool) PutAfter(buffers ...*Buffer) {
	var next *Buffer
	for i := len(buffers) - 1; i >= 0; i-- {
		b := buffers[i]
		b.step(life.Send)
		b.next, next = next, b
		b.seal()
	}
	if next != nil {
		p.recycler.add(next, buffers[len(buffers)-1], len(buffers))
	}
}

// Doubt takes b back once Recover is called: a copy out of it was perhaps submitted, and
// no event tells its end.
func (p *Pool) Doubt(b *Buffer) {
	if life.Buffer(b.state.Load()) == life.InFlight { // it is the recycler's to doubt
		b.refuse(life.Doubt)
	}
	b.step(life.Doubt)
	p.recycler.keep(b)
}

// Quarantine takes b out of use until Readmit, perhaps for ever: somebody may still
// write to it. Its memory stays allocated and counted.
func (p *Pool) Quarantine(b *Buffer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b.step(life.Quarantine) // I3
	p.quarantined++
	p.tell()
}

// Readmit ends b's quarantine, since nobody writes to it any more: the caller holds it. It
// reports false if b is not in quarantine.
func (p *Pool) Readmit(b *Buffer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if life.Buffer(b.state.Load()) != life.Quarantined {
		return false
	}
	b.step(life.Readmit)
	p.quarantined--
	p.tell()
	return true
}

// Failed is the device's error that ended the recycling, nil if there was none.
func (p *Pool) Failed() error { return p.recycler.failed() }

// Doubtful is how many buffers wait for Recover.
func (p *Pool) Doubtful() int { return p.recycler.doubtful() }

// Recover frees what was in doubt, and takes up work again after a device's error that
// was not the device's end. The caller has seen the copies' stream come to rest since:
// nothing in flight is being read any more.
func (p *Pool) Recover() {
	if p.Failed() != nil {
		_ = p.recycler.drain(context.Background()) // what is in flight is about to be in doubt
	}
	p.recycler.rest()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tell()
}

// Drain waits until no copy is in flight and all their buffers are free. A device's
// error that ended the recycling ends the wait too.
func (p *Pool) Drain(ctx context.Context) error {
	if err := p.recycler.drain(ctx); err != nil {
		return err
	}
	p.witness.Tell()
	return p.Failed()
}

// Close gives the memory back when no copy is in flight. If ctx ends before, or if
// buffers are held, in doubt or quarantined, those keep their memory, and so do their
// neighbours; the error says how many, and Close may then be called again. A Close during
// another waits for it, and returns its error if the memory could not be freed.
func (p *Pool) Close(ctx context.Context) error {
	waited := false
	select {
	case p.closing <- struct{}{}:
	default:
		waited = true
		select {
		case p.closing <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("pinnedpool: another Close is under way: %w", context.Cause(ctx))
		}
	}
	defer func() { <-p.closing }()
	for ended := false; !ended; ended = p.recycler.end() {
		if err := p.Drain(ctx); err != nil {
			p.recycler.end() // if it has failed: nothing more comes back
			return fmt.Errorf("pinnedpool: copies may still be in flight, nothing was freed: %w", err)
		}
		p.shut()
	}
	switch {
	case p.open() > 0:
		p.freeing = p.release()
	case !waited:
		p.freeing = nil
	}
	return p.freeing
}

// shut ends Get.
func (p *Pool) shut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.tell()
}

// open is how many buffers are not given back.
func (p *Pool) open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left
}

// Abandon ends the pool's goroutine where the device has ended and Close can't free the
// memory any more: it is left as it is.
func (p *Pool) Abandon() {
	p.shut()
	p.recycler.mu.Lock()
	defer p.recycler.mu.Unlock()
	p.recycler.stop()
}

// release frees what is free and reports the rest.
func (p *Pool) release() error {
	var errs []error
	for b := p.free.get(); b != nil; b = p.free.get() {
		errs = append(errs, b.untouched(), p.retire(b))
	}
	if left := p.open(); left > 0 {
		errs = append(errs, fmt.Errorf("pinnedpool: %d of %d buffers are not back and keep their memory", left, len(p.buffers)))
	}
	return errors.Join(errs...)
}

// health is why no buffer can be got, or else a channel that is closed when none can.
func (p *Pool) health() (broken <-chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken, p.why()
}

// why is why no buffer can be got, nil if one can. The caller holds mu.
func (p *Pool) why() error {
	switch failed := p.recycler.failed(); {
	case p.closed:
		return ErrClosed
	case failed != nil:
		return failed
	case p.quarantined == len(p.buffers):
		return ErrExhausted
	}
	return nil
}

// tell wakes everybody in Get if what has changed is a reason that they should not
// wait. The caller holds mu.
func (p *Pool) tell() {
	told := false
	select {
	case <-p.broken:
		told = true
	default:
	}
	failed := p.why() != nil
	p.refuses.Store(failed)
	switch {
	case failed && !told:
		close(p.broken)
	case !failed && told:
		p.broken = make(chan struct{})
	}
}

// Stats returns what the pool has counted so far.
func (p *Pool) Stats() Stats {
	s := Stats{
		Slots: len(p.buffers), Pageable: p.pageable,
		Gets: p.stats.gets.Load(), Waits: p.stats.waits.Load(), WaitTime: time.Duration(p.stats.waitTime.Load()),
	}
	s.Free, s.InFlight = p.recycler.count()
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Quarantined, s.Bytes = p.quarantined, p.bytes
	return s
}
