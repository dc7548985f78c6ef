package prefetch

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/pinnedpool"
)

// A Prefetcher brings a loader's batches to a device, or to a host consumer, ahead
// of their use. New and NewHost make one; the caller owns it until Close.
//
// One goroutine at a time consumes it, by Batches or by a Reader. Stats, Plan,
// Batch.Release and Close may be called from any.
type Prefetcher struct {
	options Options
	loader  *loader.Loader
	layout  *loader.Layout
	dev     *device.Device // nil without a device
	compute *device.Stream // the user's
	copy    *device.Stream // owned
	pool    *pinnedpool.Pool
	hostDev *device.Device // where the pool's memory is from; owned without a device
	slots   []*slot
	free    chan *slot // device slots for the uploader; holds every free one
	plan    Plan

	timeline timeline
	counters counters
	leases   atomic.Int32
	reading  atomic.Bool   // a Reader is open
	closed   chan struct{} // closed by Close
	inNext   sync.Mutex    // held by Next, so that Close can wait until nobody is in it
	stopping sync.Mutex    // held while a run is stopped

	mu        sync.Mutex
	cursor    loader.Cursor        // P5
	run       *run                 // what produces batches now; nil if nothing does
	pending   error                // what went wrong where nobody could be told
	uncertain []*pinnedpool.Buffer // host slots that a failed upload may still read
	closing   bool
}

// New makes a Prefetcher that uploads ld's batches to compute's device for work on
// compute, which stays the caller's. All memory, streams and events are made here,
// within the budgets; nothing runs before the first Next.
func New(compute *device.Stream, ld *loader.Loader, o Options) (*Prefetcher, error) {
	if compute == nil {
		return nil, errors.New("prefetch: New needs a compute stream; NewHost is the form without a device")
	}
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("prefetch: %w", err)
	}
	p := newPrefetcher(ld, o)
	p.dev, p.hostDev, p.compute = compute.Device(), compute.Device(), compute
	if err := p.allocate(); err != nil {
		return nil, errors.Join(err, p.freeAll())
	}
	p.plan = p.makePlan()
	return p, nil
}

// NewHost makes a Prefetcher whose consumer reads the host slots themselves: there
// is no copy, and Release gives a slot straight back to the producers. Depth,
// MaxStreams and DeviceBytes have no meaning.
func NewHost(ld *loader.Loader, o Options) (*Prefetcher, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("prefetch: %w", err)
	}
	p := newPrefetcher(ld, o)
	dev, err := cpu.Open(cpu.Options{})
	if err != nil {
		return nil, err
	}
	p.hostDev = dev
	if err := p.allocate(); err != nil {
		return nil, errors.Join(err, p.freeAll())
	}
	p.plan = p.makePlan()
	return p, nil
}

func newPrefetcher(ld *loader.Loader, o Options) *Prefetcher {
	return &Prefetcher{options: o.withDefaults(), loader: ld, layout: ld.Layout(), closed: make(chan struct{})}
}

// allocate makes the pool, the copy stream and the slots.
func (p *Prefetcher) allocate() error {
	o := p.options
	pool, err := pinnedpool.New(p.hostDev, pinnedpool.Options{
		Slots: o.HostSlots, SlotBytes: p.layout.Bytes(), BudgetBytes: o.PinnedBytes,
		MinSlots: o.MinHostSlots, Pageable: o.Pageable,
	})
	if err != nil {
		return err
	}
	p.pool = pool
	if p.dev == nil {
		for i := range pool.Slots() {
			s := p.newSlot(i)
			s.host = pool.Buffer(i)
			s.tensors = make([]tensors, len(s.shapes))
			p.slots = append(p.slots, s)
		}
		return nil
	}
	if bytes := int64(o.Depth) * p.layout.Bytes(); o.DeviceBytes > 0 && bytes > o.DeviceBytes {
		return fmt.Errorf("prefetch: %d device slots of %d bytes asked for, %d bytes in the budget (raise DeviceBytes, or use a smaller batch or Depth): %w",
			o.Depth, p.layout.Bytes(), o.DeviceBytes, device.ErrOutOfMemory)
	}
	if p.copy, err = p.dev.NewStream(device.StreamOptions{Name: "copy"}); err != nil {
		return err
	}
	if err := p.timeline.init(p.dev, o); err != nil {
		return err
	}
	p.free = make(chan *slot, o.Depth)
	for i := range o.Depth {
		s := p.newSlot(i)
		p.slots = append(p.slots, s)
		if err := p.allocateSlot(s); err != nil {
			return err
		}
		p.free <- s
	}
	return nil
}

func (p *Prefetcher) newSlot(id int) *slot {
	s := &slot{id: id}
	for _, f := range p.layout.Fields() {
		s.shapes = append(s.shapes, append([]int{0}, f.Shape...))
	}
	return s
}

// allocateSlot gives s its device memory and events.
func (p *Prefetcher) allocateSlot(s *slot) (err error) {
	if s.buffer, err = p.dev.Alloc(p.layout.Bytes()); err != nil {
		return err
	}
	s.memory = s.buffer.View()
	if s.ready, err = p.dev.NewEvent(device.EventOptions{Name: fmt.Sprintf("ready %d", s.id)}); err != nil {
		return err
	}
	s.users = make([]*device.Stream, 0, p.options.MaxStreams)
	for i := range p.options.MaxStreams {
		e, err := p.dev.NewEvent(device.EventOptions{Name: fmt.Sprintf("consumed %d.%d", s.id, i)})
		if err != nil {
			return err
		}
		s.consumed = append(s.consumed, e)
	}
	return nil
}

// Epoch is the epoch of the cursor: that of the next batch to be delivered.
func (p *Prefetcher) Epoch() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cursor.Epoch
}

// State is the place after the last batch delivered: restored, also by a loader
// with other workers and another depth, the next batch is the one after it. In the
// body of a range the batch in hand counts as delivered.
func (p *Prefetcher) State() loader.State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.loader.StateAt(p.cursor)
}

// Restore continues where st was taken. It fails, and changes nothing, if st is of
// another dataset, seed or version, or if a range or Reader is open.
func (p *Prefetcher) Restore(st loader.State) error {
	if err := p.loader.Check(st); err != nil {
		return fmt.Errorf("prefetch: Restore: %w", err)
	}
	return p.seek(p.loader.Normalize(st.Cursor()))
}

// Seek moves the cursor to a sample position of an epoch, both from 0: the next
// global batch starts there. It fails if there is no such place, or if a range or
// Reader is open.
func (p *Prefetcher) Seek(epoch int, position int64) error {
	to := p.loader.StateAt(loader.Cursor{})
	to.Epoch, to.Position = epoch, position
	if err := p.loader.Check(to); err != nil {
		return fmt.Errorf("prefetch: Seek: %w", err)
	}
	return p.seek(p.loader.Normalize(to.Cursor()))
}

func (p *Prefetcher) seek(cursor loader.Cursor) error {
	if !p.reading.CompareAndSwap(false, true) {
		return ErrBusy
	}
	defer p.reading.Store(false)
	err := p.stop() // the look-ahead is for another place
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cursor = cursor
	return err
}

// delivered moves the cursor behind a batch (P5).
func (p *Prefetcher) delivered(after loader.Cursor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cursor = p.loader.Normalize(after)
}

// release is the end of a lease: from here on the slot is the uploader's, or the
// producers'.
func (p *Prefetcher) release(s *slot) {
	if s.host != nil {
		s.move(leased, free)
		p.leases.Add(-1)
		p.returnHost(s)
		return
	}
	err := s.handBack()
	if err != nil {
		p.retire(s, leased, fmt.Errorf("prefetch: Release: %w", err))
		p.leases.Add(-1)
		return
	}
	p.leases.Add(-1)
	if p.isClosing() {
		p.reapSlot(s)
		return
	}
	s.move(leased, free)
	p.free <- s
}

// retire takes a slot out of use on which an operation failed: what was submitted
// for it is unknown. The run ends with err, and recover takes the slot back.
func (p *Prefetcher) retire(s *slot, from state, err error) {
	s.move(from, retired)
	p.keep(err)
	p.mu.Lock()
	r := p.run
	p.mu.Unlock()
	if r != nil {
		r.cancel(err)
	}
}

// keep stores an error for the next Open to return.
func (p *Prefetcher) keep(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending == nil {
		p.pending = err
	}
}

func (p *Prefetcher) isClosing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closing
}
