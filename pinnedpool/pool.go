package pinnedpool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-go/leat/device"
)

// Options tunes a Pool. Slots and SlotBytes are required.
type Options struct {
	// Slots is the number of buffers.
	Slots int
	// SlotBytes is the exact size of each. 0 is legal: buffers without memory.
	SlotBytes int64
	// BudgetBytes bounds the pool's memory. 0 means DefaultBudget.
	BudgetBytes int64
	// MinSlots is how few buffers will do where the budget or the device allows no
	// more. 0 means Slots: fewer is an error.
	MinSlots int
	// Pageable allows memory that isn't locked where the device refuses to lock
	// any. Copies from it are slow and block the copying goroutine.
	Pageable bool
	// Locked asks the CPU device, which needs no locked memory, to lock it.
	Locked bool
}

// most bounds the slots: far above use, and far below what would exhaust memory by
// the bookkeeping alone.
const most = 1 << 16

func (o Options) validate() error {
	var errs []error
	if o.Slots < 1 || o.Slots > most {
		errs = append(errs, fmt.Errorf("Slots is %d, want 1 to %d", o.Slots, most))
	}
	if o.SlotBytes < 0 {
		errs = append(errs, fmt.Errorf("SlotBytes is %d, want 0 or more", o.SlotBytes))
	}
	if o.BudgetBytes < 0 {
		errs = append(errs, fmt.Errorf("BudgetBytes is %d, want 0 or more", o.BudgetBytes))
	}
	if o.MinSlots < 0 || o.MinSlots > o.Slots {
		errs = append(errs, fmt.Errorf("MinSlots is %d, want 0 to Slots (%d)", o.MinSlots, o.Slots))
	}
	return errors.Join(errs...)
}

// Stats is what a pool counted.
type Stats struct {
	// Slots is the number of buffers, Bytes their memory.
	Slots int
	Bytes int64
	// Pageable is true where the device refused pinned memory.
	Pageable bool
	// Free, InFlight and Quarantined buffers; the rest is held.
	Free, InFlight, Quarantined int
	// Gets counts the buffers handed out; Waits those for which Get had to wait,
	// WaitTime how long.
	Gets, Waits int64
	WaitTime    time.Duration
}

// A Pool hands out pinned buffers of one size. It is safe for concurrent use. Its
// one goroutine, the recycler, lives while copies are in flight, or until Keep lets
// it go.
type Pool struct {
	dev     *device.Device
	witness *device.Witness // the recycler: what it has seen the end of is the buffers' own
	buffers []*Buffer
	stats   struct {
		gets, waits, waitTime atomic.Int64
	}
	pageable bool

	free     chan *Buffer // holds every free buffer; never closed
	recycler recycler
	closing  chan struct{} // held by Close
	freeing  error         // of the last Close that freed anything; guarded by closing

	mu          sync.Mutex
	broken      chan struct{} // closed while no buffer can be got; err says why
	err         error
	quarantined int
}

// New allocates a pool's memory and events on dev. The caller owns the pool until
// Close. Short of memory the error is a *MemoryError.
func New(dev *device.Device, o Options) (*Pool, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("pinnedpool: %w", err)
	}
	slots, err := o.fit()
	if err != nil {
		return nil, err
	}
	p := &Pool{dev: dev, witness: dev.NewWitness(), free: make(chan *Buffer, slots), broken: make(chan struct{}),
		closing: make(chan struct{}, 1)}
	p.recycler.init(p, slots)
	for range slots {
		err = p.grow(o)
		if err != nil {
			break
		}
	}
	enough := len(p.buffers) >= o.least() && errors.Is(err, device.ErrOutOfMemory)
	if err != nil && !enough {
		got := p.bytes()
		return nil, errors.Join(o.refused(got, err), p.release())
	}
	return p, nil
}

// least is how few slots will do.
func (o Options) least() int {
	if o.MinSlots == 0 {
		return o.Slots
	}
	return o.MinSlots
}

// fit is the number of slots that the budget allows, worked out before a page is
// touched.
func (o Options) fit() (int, error) {
	budget := o.BudgetBytes
	if budget == 0 {
		budget = DefaultBudget()
	}
	slots := o.Slots
	if o.SlotBytes > 0 {
		slots = int(min(int64(slots), budget/o.SlotBytes)) // I4
	}
	if slots < o.least() {
		return 0, &MemoryError{Slots: o.Slots, SlotBytes: o.SlotBytes, GotBytes: budget,
			Hint: "that is the budget: raise it, or use a smaller batch or fewer slots"}
	}
	return slots, nil
}

// grow adds one buffer.
func (p *Pool) grow(o Options) error {
	host, err := p.dev.AllocHost(o.SlotBytes, device.HostOptions{Locked: o.Locked && !p.pageable, Pageable: p.pageable})
	if errors.Is(err, device.ErrOutOfMemory) && o.Pageable && !p.pageable {
		p.pageable = true
		host, err = p.dev.AllocHost(o.SlotBytes, device.HostOptions{Pageable: true})
	}
	if err != nil {
		return err
	}
	id := len(p.buffers)
	copied, err := p.dev.NewEvent(device.EventOptions{BlockingSync: true, Name: fmt.Sprintf("copied %d", id), Witness: p.witness})
	if err != nil {
		return errors.Join(err, host.Close())
	}
	host.Describe(func(int64, int64) (name, hint string) { return fmt.Sprintf("pinned buffer %d", id), "" })
	b := &Buffer{id: id, host: host, copied: copied}
	p.buffers = append(p.buffers, b)
	p.refill(b)
	return nil
}

// refused is the error for a device that gave no more than got bytes.
func (o Options) refused(got int64, err error) error {
	if !errors.Is(err, device.ErrOutOfMemory) {
		return err
	}
	return &MemoryError{Slots: o.Slots, SlotBytes: o.SlotBytes, GotBytes: got, Err: err,
		Hint: "raise the limit for locked memory (ulimit -l), use a smaller batch or fewer slots, or allow pageable memory"}
}

// Slots is the number of buffers.
func (p *Pool) Slots() int { return len(p.buffers) }

// Buffer is the buffer of that ID.
func (p *Pool) Buffer(id int) *Buffer { return p.buffers[id] }

// Get returns a free buffer whose last copy is done, and waits for one until ctx
// ends. The caller holds it until Put, PutAfter or Quarantine.
func (p *Pool) Get(ctx context.Context) (*Buffer, error) {
	broken, err := p.health()
	if err != nil {
		return nil, err
	}
	select {
	case b := <-p.free:
		return p.take(b)
	default:
	}
	start := time.Now()
	defer func() {
		p.stats.waits.Add(1)
		p.stats.waitTime.Add(int64(time.Since(start)))
	}()
	for err == nil {
		select {
		case b := <-p.free:
			return p.take(b)
		case <-broken:
			broken, err = p.health() // it may have recovered since
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return nil, err
}

// take hands b out, in an invariants build only if nobody wrote to it since it was
// put back.
func (p *Pool) take(b *Buffer) (*Buffer, error) {
	b.move(free, held) // I1
	p.stats.gets.Add(1)
	err := b.untouched()
	if err == nil {
		err = p.witness.HostAtRest(b.host.Bytes()) // so that the caller may write
	}
	if err != nil {
		p.Quarantine(b) // whoever writes or reads may do so again
		return nil, err
	}
	return b, nil
}

// Put takes b back; nothing may read or write its memory any more.
func (p *Pool) Put(b *Buffer) {
	b.move(held, free)
	p.refill(b)
}

// refill makes b, which is in state free, available to Get.
func (p *Pool) refill(b *Buffer) {
	b.poison()
	p.free <- b
}

// PutAfter takes b back once b.Copied(), which the caller has recorded behind the
// last copy out of b, is complete.
func (p *Pool) PutAfter(b *Buffer) {
	b.move(held, inFlight)
	b.seal()
	p.recycler.add(b)
}

// Quarantine takes b out of use until Readmit, perhaps for ever: somebody may still
// write to it. Its memory stays allocated and counted.
func (p *Pool) Quarantine(b *Buffer) {
	b.move(held, quarantined) // I3
	p.mu.Lock()
	p.quarantined++
	all := p.quarantined == len(p.buffers)
	p.mu.Unlock()
	if all {
		p.fail(ErrExhausted)
	}
}

// Readmit ends b's quarantine: nobody writes to it any more. The caller holds it.
func (p *Pool) Readmit(b *Buffer) {
	b.move(quarantined, held)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.quarantined--
	if p.err == ErrExhausted {
		p.err, p.broken = nil, make(chan struct{})
	}
}

// Failed is the device's error that ended the recycling, nil if there was none.
func (p *Pool) Failed() error {
	if err := p.failure(); err != nil && !errors.Is(err, ErrClosed) && !errors.Is(err, ErrExhausted) {
		return err
	}
	return nil
}

// Recover takes up work again after a device's error that was not the device's
// end. The caller has seen the copies' stream come to rest since: nothing in flight
// is being read any more.
func (p *Pool) Recover() {
	if p.Failed() == nil {
		return
	}
	_ = p.recycler.drain(context.Background()) // it has failed, and may be about to say so
	p.recycler.freeAll()
	p.mu.Lock()
	p.err, p.broken = nil, make(chan struct{})
	exhausted := p.quarantined == len(p.buffers)
	p.mu.Unlock()
	if exhausted {
		p.fail(ErrExhausted)
	}
}

// Keep makes the recycler stay between copies, for as long as they come one after
// the other, or lets it end; then it lives no longer than a copy is in flight.
func (p *Pool) Keep(stay bool) { p.recycler.keep(stay) }

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
// buffers are held or quarantined, those keep their memory and the error says how
// many; Close may then be called again. A Close during another waits for it, and
// returns its error if the memory could not be freed.
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
	if err := p.Drain(ctx); err != nil {
		return fmt.Errorf("pinnedpool: copies may still be in flight, nothing was freed: %w", err)
	}
	p.fail(ErrClosed)
	before := p.freeing
	p.freeing = p.release()
	if waited && p.freeing == nil {
		return before
	}
	return p.freeing
}

// release frees what is free and reports the rest.
func (p *Pool) release() error {
	var errs []error
	for {
		select {
		case b := <-p.free:
			p.mu.Lock()
			p.buffers[b.id] = nil // Stats looks at it no more
			p.mu.Unlock()
			errs = append(errs, b.untouched(), b.copied.Close(), b.host.Close())
			continue
		default:
		}
		break
	}
	left := 0
	p.mu.Lock()
	for _, b := range p.buffers {
		if b != nil {
			left++
		}
	}
	p.mu.Unlock()
	if left > 0 {
		errs = append(errs, fmt.Errorf("pinnedpool: %d of %d buffers are not back and keep their memory", left, len(p.buffers)))
	}
	return errors.Join(errs...)
}

// fail makes every Get from now on return err; the first failure stays.
func (p *Pool) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
		close(p.broken)
	}
}

func (p *Pool) failure() error {
	_, err := p.health()
	return err
}

// health is why no buffer can be got, or else a channel that is closed when none can.
func (p *Pool) health() (broken <-chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken, p.err
}

func (p *Pool) bytes() int64 {
	var n int64
	for _, b := range p.buffers {
		n += int64(len(b.host.Bytes()))
	}
	return n
}

// Stats returns what the pool has counted so far.
func (p *Pool) Stats() Stats {
	s := Stats{
		Slots: len(p.buffers), Pageable: p.pageable, Free: len(p.free), InFlight: p.recycler.len(),
		Gets: p.stats.gets.Load(), Waits: p.stats.waits.Load(), WaitTime: time.Duration(p.stats.waitTime.Load()),
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Quarantined = p.quarantined
	for _, b := range p.buffers {
		if b != nil {
			s.Bytes += int64(len(b.host.Bytes()))
		}
	}
	return s
}
