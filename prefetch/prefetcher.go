package prefetch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/internal/invariants"
	"github.com/leat-go/leat/internal/life"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/pinnedpool"
)

// A Prefetcher brings a loader's batches to a device, or to a host consumer, ahead
// of their use. New and NewHost make one; the caller owns it until Close.
//
// One goroutine at a time consumes it, by a range, by a Reader or by Map. Stats, Plan,
// Epoch, State, Batch.Release and Close may be called from any goroutine at any time. So
// may Start, Seek, Restore and Quiesce, which return ErrBusy where they would disturb a
// reader.
type Prefetcher struct {
	loader  *loader.Loader
	stages  *stages
	plan    Plan
	place   place
	results *results // made by the first Map

	life      lifecycle
	notes     notes
	closed    chan struct{} // closed by Close
	closeOnce once
	watch     invariants.Watch

	// turn is held by who uses the run: Open, Next, Seek, Quiesce, and Close for good.
	turn  gate
	quiet bool // Quiesce has stages.calls; guarded by turn

	mu      sync.Mutex
	run     *run            // nil if nothing works ahead; who changes it holds turn too
	reapers []chan struct{} // each closed when what a Map has left is freed
}

// New makes a Prefetcher that uploads ld's batches to compute's device for work on
// compute, which stays the caller's. All memory, streams and events are made here,
// within the budgets; nothing runs before Start or the first Open.
func New(compute *device.Stream, ld *loader.Loader, o Options) (*Prefetcher, error) {
	if compute == nil {
		return nil, &OptionError{Option: "compute", Value: "nil", Want: "a stream; NewHost is the form without a device"}
	}
	dev := compute.Device()
	return newPrefetcher(ld, o, func() (*stages, error) {
		m := machine{gpu: dev.Properties().Kind != "cpu"}
		var err error
		if o.Memory.DeviceBytes == 0 {
			if m.free, _, err = dev.Memory(); err != nil {
				return nil, err
			}
		}
		return newStages(dev, dev, compute, ld, o, m)
	})
}

// NewHost makes a Prefetcher whose consumer reads the pinned memory itself: there is no
// copy, and Release gives it straight back to the producers. Streams, BatchesPerCopy and
// DeviceBytes have no meaning, and Depth only with a Transform.
func NewHost(ld *loader.Loader, o Options) (*Prefetcher, error) {
	return newPrefetcher(ld, o, func() (*stages, error) {
		// A consumer may keep a slice or a tensor beyond Close: its memory must live as long.
		host, err := cpu.Open(cpu.Options{GoMemory: true})
		if err != nil {
			return nil, err
		}
		g, err := newStages(nil, host, nil, ld, o, machine{host: true})
		if err != nil {
			return nil, errors.Join(err, host.Close())
		}
		return g, nil
	})
}

func newPrefetcher(ld *loader.Loader, o Options, stages func() (*stages, error)) (*Prefetcher, error) {
	if ld == nil {
		return nil, &OptionError{Option: "ld", Value: "nil", Want: "a loader"}
	}
	if err := o.validate(ld.Layout().BatchSize()); err != nil {
		return nil, err
	}
	g, err := stages()
	if err != nil {
		return nil, err
	}
	p := &Prefetcher{loader: ld, stages: g, place: place{loader: ld}, closed: make(chan struct{}), turn: newGate()}
	if p.place.claim, err = ld.Claim(); err != nil {
		return nil, errors.Join(err, g.release(), g.releaseLast())
	}
	p.plan = makePlan(g, ld)
	p.watch = invariants.WatchClose(p, "prefetch: a Prefetcher", unreleased(g.windows), 2)
	return p, nil
}

// unreleased is the end of the report on a Prefetcher that nobody closed.
func unreleased(windows []*window) func() string {
	return func() string {
		leases := outstanding(windows)
		if len(leases) == 0 {
			return ""
		}
		return ", with batches not released: " + strings.Join(leases, "; ")
	}
}

// newStages makes all that a pipeline needs, or an error and nothing is left of it except
// host.
func newStages(dev, host *device.Device, compute *device.Stream, ld *loader.Loader, o Options, m machine) (*stages, error) {
	m.pinned = pinnedpool.DefaultBudget()
	m.epoch, _ = ld.Batches()
	z, err := fit(o, ld.Layout(), m)
	if err != nil {
		return nil, err
	}
	g := &stages{sizes: z, seed: ld.Options().Seed, dev: dev, host: host, calls: newGate(), ahead: ld.Options().Epochs > 0}
	if compute != nil {
		g.computes = computes{streams: []*device.Stream{compute}, roundRobin: z.options.Streams.RoundRobin}
	}
	if err := g.allocate(); err != nil {
		return nil, errors.Join(err, g.release(), g.closeComputes())
	}
	return g, nil
}

// allocate makes the pinned memory, the streams, the transform and the slots.
func (g *stages) allocate() (err error) {
	if err := g.allocatePinned(); err != nil {
		return err
	}
	if g.dev != nil {
		if err := g.allocateStreams(); err != nil {
			return err
		}
	}
	o := &g.sizes.options
	if o.Transform != nil {
		if g.transform, err = newTransforming(g.host, *o.Transform, &g.sizes, g.seed, g.dev != nil); err != nil {
			return err
		}
	}
	if g.dev != nil || g.transform != nil {
		return g.allocateSlots()
	}
	for i := range g.pinned.pool.Slots() {
		b := g.pinned.pool.Buffer(i)
		g.windows = append(g.windows, &window{id: i, pinned: b, host: b.Bytes(), shapes: newShapes(g.sizes.out)})
	}
	return nil
}

func (g *stages) allocatePinned() error {
	z, o := &g.sizes, &g.sizes.options
	pool, err := pinnedpool.New(g.host, o.Memory.HostSlots, z.in.Size(), pinnedpool.Options{
		BudgetBytes: z.pinned - z.outputs, MinSlots: o.Memory.MinHostSlots, Together: o.BatchesPerCopy, Pageable: o.Memory.Pageable,
	})
	if short := new(pinnedpool.MemoryError); errors.As(err, &short) {
		return &MemoryError{What: fmt.Sprintf("%d host slots in pinned memory", short.Slots), Bytes: product(int64(short.Slots), short.SlotBytes),
			Budget: short.GotBytes, Err: short.Err,
			Hint: "raise Memory.PinnedBytes or the limit for locked memory (ulimit -l), use a smaller batch or fewer Memory.HostSlots, or allow fewer by Memory.MinHostSlots or pageable ones by Memory.Pageable"}
	}
	if err != nil {
		return err
	}
	g.pinned = &pinned{pool: pool, layout: z.in, stride: z.stride, pageable: pool.Stats().Pageable,
		group: make([]*pinnedpool.Buffer, 0, o.BatchesPerCopy)}
	return nil
}

// allocateStreams makes the copy stream and the compute streams beside the user's.
func (g *stages) allocateStreams() (err error) {
	if g.copies, err = g.dev.NewStream(device.StreamOptions{Name: "copy"}); err != nil {
		return err
	}
	for i := 1; i < g.sizes.options.Streams.Compute; i++ {
		s, err := g.dev.NewStream(device.StreamOptions{Name: fmt.Sprintf("compute %d", i)})
		if err != nil {
			return err
		}
		g.computes.streams = append(g.computes.streams, s)
	}
	return g.timeline.init(g.dev, g.sizes.options)
}

// allocateSlots makes the ring of device slots, or of what a host consumer's transform
// writes.
func (g *stages) allocateSlots() error {
	z, o := &g.sizes, &g.sizes.options
	so := slotOptions{bytes: z.outStride * int64(o.BatchesPerCopy), onHost: g.dev == nil}
	so.filled.Name, so.read.Name = "ready", "consumed"
	if g.dev != nil {
		so.reads = z.slotReads()
		// No BlockingSync for one compute stream, although Close waits for the reads: the
		// device's own cost of marking such an event, 3 to 8 µs a batch on an H200, is more
		// than what Close saves. Of several the watchers wait all the time.
		so.read.BlockingSync = o.Streams.Compute > 1
	} else {
		so.filled.BlockingSync = true // the consumer waits on the host
	}
	var slots []*slot
	for i := range o.Depth {
		so.id = i
		s, err := newSlot(g.host, so)
		slots = append(slots, s)
		if err != nil {
			g.ring = newRing(slots, 1)
			return err
		}
		for at := range int64(o.BatchesPerCopy) {
			w := &window{id: len(g.windows), slot: s, shapes: newShapes(z.out), usedOn: make([]*device.Stream, 0, z.others)}
			if g.dev != nil {
				w.memory = s.memory.Slice(at*z.outStride, z.out.Size())
			} else {
				w.host = s.host.Bytes()[at*z.outStride:][:z.out.Size()]
			}
			s.windows = append(s.windows, w)
			g.windows = append(g.windows, w)
		}
		g.describe(s)
	}
	g.ring = newRing(slots, len(g.computes.streams))
	return nil
}

// Epoch is the epoch of the cursor: that of the next batch to be delivered.
func (p *Prefetcher) Epoch() int { return p.place.at().Epoch }

// State is the place after the last batch delivered: restored, also by a loader
// with other workers and another depth, the next batch is the one after it. In the
// body of a range the batch in hand counts as delivered.
func (p *Prefetcher) State() loader.State { return p.loader.StateAt(p.place.at()) }

// Restore continues where st was taken. It fails, and changes nothing, if st is of
// another dataset, seed or version, or where Seek would.
func (p *Prefetcher) Restore(st loader.State) error {
	if err := p.loader.Check(st); err != nil {
		return fmt.Errorf("prefetch: Restore: the state does not fit: %w", err)
	}
	to := st.Cursor()
	if p.loader.Options().Shard.Count > 1 { // it can't tell this rank's number
		to.Substituted = p.place.substituted(to)
	}
	return p.seek(p.place.claim.Normalize(to))
}

// Seek moves the cursor to a sample position of an epoch, both from 0: the next global
// batch starts there. What was read ahead is kept if that is where the cursor stands
// already, and thrown away otherwise. It fails, and changes nothing, if there is no such
// place, if a range or Reader is open, or if user code that works ahead for the present
// place does not stop: then it may be called again.
func (p *Prefetcher) Seek(epoch int, position int64) error {
	to := p.loader.StateAt(loader.Cursor{})
	to.Epoch, to.Position = epoch, position
	if err := p.loader.Check(to); err != nil {
		return fmt.Errorf("prefetch: Seek: %w", err)
	}
	cursor := to.Cursor()
	cursor.Substituted = p.place.substituted(cursor)
	return p.seek(p.place.claim.Normalize(cursor))
}

func (p *Prefetcher) seek(cursor loader.Cursor) error {
	return p.alone(func() error {
		if p.run != nil && p.run.at != cursor {
			if err := p.stop(); err != nil {
				return err
			}
		}
		p.place.set(cursor)
		return nil
	})
}

// alone runs f while nobody reads.
func (p *Prefetcher) alone(f func() error) error {
	if _, err := p.life.step(life.Read); err != nil {
		return err
	}
	defer p.life.must(life.EndRead)
	p.turn.Lock()
	defer p.turn.Unlock()
	return f()
}

// Start begins to fill batches from the cursor on, before anybody reads them: while a
// model is loaded, for example. The contexts that samples are read under have ctx's values
// but don't end with it. If batches are filled already, or none are left, it does nothing.
func (p *Prefetcher) Start(ctx context.Context) error {
	return p.alone(func() error {
		err := p.ready(ctx)
		if a, ok := err.(again); ok {
			return a.error
		}
		return p.notes.news(err)
	})
}

// ready makes sure that there is a run at the cursor, unless all epochs are done. The
// caller holds p.turn.
func (p *Prefetcher) ready(ctx context.Context) error {
	p.resume()
	if err := p.notes.take(); err != nil {
		return errors.Join(err, unlessTold(p.stop(), err))
	}
	if r := p.run; r != nil && (r.over || r.ctx.Err() != nil || r.at != p.place.at()) {
		if err := p.stop(); err != nil {
			return err
		}
	}
	if p.run != nil || p.place.finished() {
		return nil
	}
	if p.isClosed() {
		return ErrClosed
	}
	rest, cancel := context.WithTimeout(ctx, p.closeTimeout())
	defer cancel()
	if err := p.stages.recover(rest); err != nil {
		if ctx.Err() != nil {
			return again{context.Cause(ctx)}
		}
		return err
	}
	if _, err := p.life.step(life.Begin); err != nil {
		return err
	}
	r := startRun(ctx, p.stages, p.loader, p.place.at())
	p.mu.Lock()
	p.run = r
	p.mu.Unlock()
	if p.isClosed() { // and had no run to cancel
		r.cancel(ErrClosed)
	}
	return nil
}

func (p *Prefetcher) closeTimeout() time.Duration { return p.stages.sizes.options.CloseTimeout }

// stop ends the run, if there is one, and joins its goroutines. What was uploaded and not
// delivered is discarded. The caller holds p.turn.
func (p *Prefetcher) stop() error {
	p.resume()
	r := p.run
	if r == nil {
		return nil
	}
	r.cancel(errStopped)
	if err := r.join(p.limits()); err != nil {
		p.life.must(life.Stick)
		return err // the run stays: what it may use can't be used or freed
	}
	return p.joined(r)
}

// joined ends a run whose uploader has ended.
func (p *Prefetcher) joined(r *run) error {
	err := r.batches.Close()
	p.stages.counters.ended(r)
	p.mu.Lock()
	p.run = nil
	p.mu.Unlock()
	p.life.must(life.Join)
	return err
}

func (p *Prefetcher) limits() *limits {
	l := &limits{}
	if p.stages.transform != nil {
		l.apply = p.grace()
	}
	if p.stages.pinned.pageable {
		l.copy = p.closeTimeout()
	}
	return l
}

// fail ends the run with an error that came up outside of it.
func (p *Prefetcher) fail(err error) {
	p.notes.keep(err)
	p.cancelRun(err)
}

// cancelRun tells the run to end, if there is one.
func (p *Prefetcher) cancelRun(cause error) {
	p.mu.Lock()
	r := p.run
	p.mu.Unlock()
	if r != nil {
		r.cancel(cause)
	}
}

func (p *Prefetcher) isClosed() bool {
	select {
	case <-p.closed:
		return true
	default:
		return false
	}
}

// recover takes back what failed operations have left in doubt: when the streams have
// come to rest, nothing reads or writes it any more.
func (g *stages) recover(ctx context.Context) error {
	var failed []*slot
	if g.ring != nil {
		failed = g.ring.takeFailed()
	}
	if len(failed)+g.pinned.pool.Doubtful() == 0 && g.pinned.pool.Failed() == nil {
		return nil
	}
	if err := g.comeToRest(ctx, failed); err != nil {
		for _, s := range failed {
			g.ring.back(s, true)
		}
		return fmt.Errorf("prefetch: the device doesn't come to rest after a failed operation: %w", err)
	}
	g.pinned.pool.Recover()
	if g.transform != nil {
		for _, s := range g.transform.raws {
			s.renew()
		}
	}
	for _, s := range failed {
		s.renew()
		g.ring.back(s, false)
	}
	return nil
}

// comeToRest waits for all that may use what is in doubt.
func (g *stages) comeToRest(ctx context.Context, failed []*slot) error {
	if g.copies != nil {
		if err := rest(ctx, g.copies); err != nil {
			return err
		}
	}
	if g.transform != nil {
		if err := rest(ctx, g.transform.stream); err != nil {
			return err
		}
	}
	for _, s := range failed {
		if err := s.rest(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Quiesce brings the pipeline to rest on the device: the uploader stops, the copies in
// flight end, and with them what a Map that was left has under way. From its return until
// the next call that reads no goroutine of the Prefetcher calls the device; producers may
// go on to read samples into pinned memory. Then all goes on where it stood: nothing that
// was read ahead is lost. It may be called between two calls of Next, in the body of a
// range too, and batches in hand stay valid.
//
// It is for what may not be disturbed by calls of other goroutines: capturing a CUDA
// graph in global mode. In thread-local mode nothing disturbs a capture.
//
// It is ErrBusy while another goroutine is in Next and during a Map, whose steps run
// ahead.
func (p *Prefetcher) Quiesce(ctx context.Context) error {
	if p.isClosed() {
		return ErrClosed
	}
	if p.life.state().Reader == life.Mapping || !p.turn.TryLock() {
		if p.isClosed() {
			return ErrClosed
		}
		return ErrBusy
	}
	defer p.turn.Unlock()
	if p.isClosed() {
		return ErrClosed
	}
	if err := p.pause(ctx); err != nil {
		return err
	}
	if err := p.stages.drain(ctx); err != nil {
		return err
	}
	return p.awaitReapers(ctx)
}

// pause has the uploader call nothing until resume. The caller holds p.turn.
func (p *Prefetcher) pause(ctx context.Context) error {
	if p.quiet {
		return nil
	}
	inApply, inCopy := p.limits(), error(nil)
	apply, copies := inApply.begin()
	defer inApply.end()
	for !p.stages.calls.TryLock() {
		select {
		case <-p.stages.calls.opened:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-apply:
			if err := p.stages.transform.visit.stuck("Transform.Apply", p.grace()); err != nil {
				return err
			}
		case <-copies:
			if p.stages.pinned.copying.Load() {
				inCopy = &CloseError{HostSlots: true, Err: errPageable}
				return inCopy
			}
		}
	}
	p.quiet = true
	if r := p.run; r != nil && p.stages.ring != nil {
		p.stages.ring.stopWatching()
	}
	return nil
}

// resume ends what pause has begun, if it has. The caller holds p.turn.
func (p *Prefetcher) resume() {
	if !p.quiet {
		return
	}
	p.quiet = false
	if r := p.run; r != nil && p.stages.ring != nil {
		p.stages.ring.startWatching(r.ctx)
		p.stages.ring.signal()
	}
	p.stages.calls.Unlock()
}

// awaitReapers waits for what Maps have left to a reaper.
func (p *Prefetcher) awaitReapers(ctx context.Context) error {
	p.mu.Lock()
	reapers := append([]chan struct{}(nil), p.reapers...)
	p.mu.Unlock()
	for _, done := range reapers {
		select {
		case <-done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
