package prefetch

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/internal/invariants"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/pinnedpool"
)

// A Prefetcher brings a loader's batches to a device, or to a host consumer, ahead
// of their use. New and NewHost make one; the caller owns it until Close.
//
// One goroutine at a time consumes it, by Batches, by a Reader or by Map. Stats, Plan,
// Epoch, State, Batch.Release and Close may be called from any goroutine at any time. So
// may Seek, Restore and Quiesce, which return ErrBusy where they would disturb a reader.
type Prefetcher struct {
	options Options
	loader  *loader.Loader
	layout  *loader.Layout // as the loader fills it
	out     *loader.Layout // as it is delivered: another one only with a transform
	scratch *loader.Layout // between a transform's operations; nil without
	stride  int64          // between batches that lie together as the loader fills them
	pinned  int64          // the budget for pinned memory
	plan    Plan

	dev       *device.Device   // nil without a device
	hostDev   *device.Device   // where the pool's memory is from; owned without a device
	compute   []*device.Stream // the first is the user's, others are owned
	turn      int              // the compute stream whose turn it is
	copy      *device.Stream   // owned; nil without a device
	transform *transforming    // nil without a transform
	pool      *pinnedpool.Pool
	pageable  bool // copies from the host slots block the uploader
	memory    *hostMemory
	carriers  []*carrier // none for a host consumer without a transform
	downloads *downloads // made by the first Map
	slots     []*slot
	free      chan *carrier // for the uploader; holds every free one

	timeline  timeline
	counters  counters
	leases    atomic.Int32  // batches not released
	users     atomic.Int32  // of what is freed last; see leave
	reading   atomic.Bool   // a Reader is open
	copying   atomic.Bool   // the uploader is in a copy from pageable memory
	mapping   atomic.Bool   // a Map is under way
	faulted   atomic.Bool   // the user has been told of a fault of the device
	closed    chan struct{} // closed by Close
	closeOnce once
	watch     invariants.Watch
	inNext    gate // held by Open and Next, so that Close can wait until nobody is in them
	stopping  gate // held while a run is stopped

	mu        sync.Mutex
	cursor    loader.Cursor        // P5
	replaced  replaced             // of its epoch
	run       *run                 // what produces batches now; nil if nothing does
	pending   error                // what went wrong where nobody could be told
	retired   []*carrier           // on which an operation failed
	uncertain []*pinnedpool.Buffer // host slots that a failed upload may still read
	closing   bool
	reapers   []chan struct{} // each closed when a ring that a Map has left is freed
	reaping   bool            // what comes back is freed by who brings it
}

// New makes a Prefetcher that uploads ld's batches to compute's device for work on
// compute, which stays the caller's. All memory, streams and events are made here,
// within the budgets; nothing runs before the first Open.
func New(compute *device.Stream, ld *loader.Loader, o Options) (*Prefetcher, error) {
	if compute == nil {
		return nil, errors.New("prefetch: New needs a compute stream; NewHost is the form without a device")
	}
	if ld == nil {
		return nil, errNoLoader
	}
	if err := o.validate(ld.Layout().BatchSize()); err != nil {
		return nil, fmt.Errorf("prefetch: %w", err)
	}
	p := newPrefetcher(ld, o)
	p.dev, p.hostDev, p.compute = compute.Device(), compute.Device(), []*device.Stream{compute}
	return p.allocated()
}

// NewHost makes a Prefetcher whose consumer reads the host slots themselves: there
// is no copy, and Release gives a slot straight back to the producers. MaxStreams,
// ComputeStreams, BatchesPerCopy and DeviceBytes have no meaning, and Depth only with
// a Transform.
func NewHost(ld *loader.Loader, o Options) (*Prefetcher, error) {
	if ld == nil {
		return nil, errNoLoader
	}
	if err := o.validate(ld.Layout().BatchSize()); err != nil {
		return nil, fmt.Errorf("prefetch: %w", err)
	}
	// A consumer may keep a slice or a tensor beyond Close: its memory must live as long.
	dev, err := cpu.Open(cpu.Options{GoMemory: true})
	if err != nil {
		return nil, err
	}
	p := newPrefetcher(ld, o)
	p.hostDev = dev
	return p.allocated()
}

func newPrefetcher(ld *loader.Loader, o Options) *Prefetcher {
	p := &Prefetcher{options: o.withDefaults(), loader: ld, layout: ld.Layout(), stride: stride(ld.Layout()),
		closed: make(chan struct{}), inNext: newGate(), stopping: newGate()}
	p.users.Store(1) // its own, until it is closed
	return p
}

// allocated is p with all it needs, or an error and nothing left of it.
func (p *Prefetcher) allocated() (*Prefetcher, error) {
	err := p.allocate()
	if err == nil {
		err = p.loader.Claim()
	}
	if err != nil {
		return nil, errors.Join(err, p.freeAll())
	}
	p.plan = p.makePlan()
	p.watch = invariants.WatchClose(p, "prefetch: a Prefetcher", unreleased(p.slots), 2)
	return p, nil
}

// unreleased is the end of the report on a Prefetcher that nobody closed.
func unreleased(slots []*slot) func() string {
	return func() string {
		leases := outstanding(slots)
		if len(leases) == 0 {
			return ""
		}
		return ", with batches not released: " + strings.Join(leases, "; ")
	}
}

// allocate makes the pool, the streams, the transform and the slots.
func (p *Prefetcher) allocate() (err error) {
	p.out = p.layout
	if t := p.options.Transform; t != nil {
		if err := t.fits(p.layout); err != nil {
			return fmt.Errorf("prefetch: %w", err)
		}
		if p.out, err = loader.NewLayout(t.Out, p.layout.BatchSize()); err != nil {
			return err
		}
	}
	if t := p.options.Transform; t != nil && len(t.Scratch) > 0 {
		if p.scratch, err = loader.NewLayout(t.Scratch, p.layout.BatchSize()); err != nil {
			return err
		}
	}
	if err := p.size(); err != nil {
		return err
	}
	if err := p.allocateHost(); err != nil {
		return err
	}
	if p.dev != nil {
		if err := p.allocateStreams(); err != nil {
			return err
		}
	}
	if p.options.Transform != nil {
		if p.transform, err = p.newTransforming(*p.options.Transform); err != nil {
			return err
		}
	}
	if p.dev == nil && p.transform == nil {
		p.wrapHostSlots()
		return nil
	}
	return p.allocateCarriers()
}

func (p *Prefetcher) allocateHost() (err error) {
	o := p.options
	p.pool, err = pinnedpool.New(p.hostDev, pinnedpool.Options{
		Slots: o.HostSlots, SlotBytes: p.hostSlotBytes(o.BatchesPerCopy), BudgetBytes: p.pinned - p.outputBytes(),
		MinSlots: o.MinHostSlots, Pageable: o.Pageable,
	})
	if short := new(pinnedpool.MemoryError); errors.As(err, &short) && short.Err == nil {
		return fmt.Errorf("prefetch: Options.PinnedBytes is %d: %w", p.pinned, err)
	}
	if err == nil {
		p.pageable = p.pool.Stats().Pageable
		p.memory = newHostMemory(p.pool, p.layout, o.BatchesPerCopy)
		p.memory.returned = p.readmitted
	}
	return err
}

// wrapHostSlots makes a slot of every host slot, for a consumer that reads them.
func (p *Prefetcher) wrapHostSlots() {
	for i := range p.pool.Slots() {
		b := p.pool.Buffer(i)
		p.slots = append(p.slots, &slot{id: i, pinned: b, host: b.Bytes(), shapes: shapes(p.out)})
	}
}

// allocateStreams makes the copy stream and the compute streams beside the user's.
func (p *Prefetcher) allocateStreams() (err error) {
	if p.copy, err = p.dev.NewStream(device.StreamOptions{Name: "copy"}); err != nil {
		return err
	}
	for i := 1; i < p.options.ComputeStreams; i++ {
		s, err := p.dev.NewStream(device.StreamOptions{Name: fmt.Sprintf("compute %d", i)})
		if err != nil {
			return err
		}
		p.compute = append(p.compute, s)
	}
	return p.timeline.init(p.dev, p.options)
}

func (p *Prefetcher) allocateCarriers() error {
	o := p.options
	p.free = make(chan *carrier, o.Depth)
	for i := range o.Depth {
		c, err := p.newCarrier(i)
		p.carriers = append(p.carriers, c)
		if err != nil {
			return err
		}
		p.free <- c
	}
	return nil
}

// Epoch is the epoch of the cursor: that of the next batch to be delivered.
func (p *Prefetcher) Epoch() int { return p.place().Epoch }

func (p *Prefetcher) place() loader.Cursor {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cursor
}

// State is the place after the last batch delivered: restored, also by a loader
// with other workers and another depth, the next batch is the one after it. In the
// body of a range the batch in hand counts as delivered.
func (p *Prefetcher) State() loader.State {
	return p.loader.StateAt(p.place())
}

// Restore continues where st was taken. It fails, and changes nothing, if st is of
// another dataset, seed or version, or where Seek would.
func (p *Prefetcher) Restore(st loader.State) error {
	if err := p.loader.Check(st); err != nil {
		return fmt.Errorf("prefetch: Restore: the state does not fit: %w", err)
	}
	to := st.Cursor()
	if p.loader.Options().Shard.Count > 1 { // it can't tell this rank's number
		to.Substituted = p.replacedBefore(to)
	}
	return p.seek(p.loader.Normalize(to))
}

// Seek moves the cursor to a sample position of an epoch, both from 0: the next
// global batch starts there. It fails, and changes nothing, if there is no such place,
// if a range or Reader is open, or if user code that works ahead for the present place
// does not stop: then it may be called again.
func (p *Prefetcher) Seek(epoch int, position int64) error {
	to := p.loader.StateAt(loader.Cursor{})
	to.Epoch, to.Position = epoch, position
	if err := p.loader.Check(to); err != nil {
		return fmt.Errorf("prefetch: Seek: %w", err)
	}
	cursor := to.Cursor()
	cursor.Substituted = p.replacedBefore(cursor)
	return p.seek(p.loader.Normalize(cursor))
}

func (p *Prefetcher) seek(cursor loader.Cursor) error {
	if p.isClosed() {
		return ErrClosed
	}
	if !p.reading.CompareAndSwap(false, true) {
		return ErrBusy
	}
	defer p.reading.Store(false)
	if err := p.stop(); err != nil { // the look-ahead is for another place
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cursor = cursor
	if p.replaced.before(cursor) != cursor.Substituted { // a state knows of others
		p.replaced = p.replaced[:0]
	}
	p.replaced.note(cursor)
	return nil
}

// delivered moves the cursor behind a batch (P5).
func (p *Prefetcher) delivered(after loader.Cursor) {
	after = p.loader.Normalize(after)
	p.mu.Lock()
	p.cursor = after
	p.replaced.note(after)
	p.mu.Unlock()
	p.loader.Delivered(after)
}

// released follows the end of a lease: from here on the memory is the uploader's, or
// the producers', as soon as all that shares it is back.
func (p *Prefetcher) released(s *slot) {
	p.leases.Add(-1)
	s.withdraw()
	if s.carrier == nil {
		p.returnHost(s)
	} else {
		p.back(s, true)
	}
	if err := p.leave(); err != nil {
		p.keep(err)
	}
}

// keep stores an error for the next Open, or Close, to return.
func (p *Prefetcher) keep(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending == nil {
		p.pending = err // which may be nil
	}
}

// takePending is what was kept, which is the caller's to return from here on.
func (p *Prefetcher) takePending() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.pending
	p.pending = nil
	return err
}

// reported notes that the user has got err: the next Open need not say it again.
func (p *Prefetcher) reported(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending != nil && errors.Is(err, p.pending) {
		p.pending = nil
	}
}
