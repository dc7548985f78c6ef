package prefetch

import (
	"context"
	"errors"
	"fmt"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/copytime"
	"github.com/leat-go/leat/internal/hold"
	"github.com/leat-go/leat/internal/slots"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/pinnedpool"
)

// newStages makes all that a pipeline needs, or an error and nothing is left of it except
// host.
func newStages(dev, host *device.Device, compute *device.Stream, ld *loader.Loader, o Options, m machine) (*stages, error) {
	m.pinned = pinnedpool.DefaultBudget()
	m.epoch, _ = ld.Batches()
	z, err := fit(o, ld.Layout(), m)
	if err != nil {
		return nil, err
	}
	g := &stages{sizes: z, timeline: timeline{to: z.options.Recorder}, seed: ld.Options().Seed, dev: dev, host: host, calls: hold.NewGate(), acrossEpochs: ld.Options().Epochs > 0}
	if compute != nil {
		g.computes = slots.Computes{Streams: []*device.Stream{compute}, RoundRobin: z.options.Streams.RoundRobin}
	}
	if err := g.allocate(ld.Workers()); err != nil {
		return nil, errors.Join(err, g.release(), g.closeComputes())
	}
	return g, nil
}

// allocate makes the pinned memory, the streams, the transform and the slots.
func (g *stages) allocate(workers int) (err error) {
	if err := g.allocatePinned(workers); err != nil {
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
		w := newWindow(i, &g.sizes)
		w.pinned, w.host = b, b.Bytes()
		g.windows = append(g.windows, w)
	}
	return nil
}

func (g *stages) allocatePinned(workers int) error {
	z, o := &g.sizes, &g.sizes.options
	// All of them in one piece, as far as there is one: the part of a piece that is no whole
	// huge page is mapped in small ones, which takes a fifth of a small sample's time.
	pool, err := pinnedpool.New(g.host, o.Memory.HostSlots, z.in.Size(), pinnedpool.Options{
		BudgetBytes: z.pinned - z.outputs, MinSlots: o.Memory.MinHostSlots, Together: o.Memory.HostSlots, Pageable: o.Memory.Pageable,
	})
	if short := new(pinnedpool.MemoryError); errors.As(err, &short) {
		return &MemoryError{What: fmt.Sprintf("%d host slots in pinned memory", short.Slots), Bytes: product(int64(short.Slots), short.SlotBytes),
			Budget: short.GotBytes, Err: short.Err,
			Hint: "raise Memory.PinnedBytes or the limit for locked memory (ulimit -l), use a smaller batch or fewer Memory.HostSlots, or allow fewer by Memory.MinHostSlots or pageable ones by Memory.Pageable"}
	}
	if err != nil {
		return err
	}
	g.pinned = &pinned{pool: pool, layout: z.in, extent: newExtent(z.in), stride: z.stride, pageable: pool.Stats().Pageable,
		group: make([]*pinnedpool.Buffer, 0, o.BatchesPerCopy)}
	g.feed, g.memory = g.pinned, g.pinned
	if g.dev != nil {
		g.memory, g.near = placed(g.pinned, g.dev.Properties(), workers)
	}
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
		g.computes.Streams = append(g.computes.Streams, s)
	}
	o := &g.sizes.options
	marks := g.sizes.marks(o.Memory.HostSlots, o.BatchesPerCopy)
	return g.timeline.Init(g.copies, int(marks), copytime.Options{Every: o.Timing, To: o.Recorder})
}

// allocateSlots makes the ring of device slots, or of what a host consumer's transform
// writes.
func (g *stages) allocateSlots() error {
	z, o := &g.sizes, &g.sizes.options
	so := slots.Options{Bytes: z.outStride * int64(o.BatchesPerCopy), OnHost: g.dev == nil}
	so.Filled.Name, so.Read.Name = "ready", "consumed"
	if g.dev != nil {
		so.Reads = z.slotReads()
		// No BlockingSync for one compute stream, although Close waits for the reads: the
		// device's own cost of marking such an event, 3 to 8 µs a batch on an H200, is more
		// than what Close saves. Of several the watchers wait all the time.
		so.Read.BlockingSync = o.Streams.Compute > 1
	} else {
		so.Filled.BlockingSync = true // the consumer waits on the host
	}
	var all []*slots.Slot
	for i := range o.Depth {
		so.ID = i
		s, err := slots.New(g.host, so)
		all = append(all, s)
		if err != nil {
			g.ring = slots.NewRing(all, 1)
			return err
		}
		for at := range int64(o.BatchesPerCopy) {
			w := newWindow(len(g.windows), z)
			w.slot, w.usedOn = s, make(slots.Uses, 0, z.others)
			if g.dev != nil {
				w.memory = s.Memory.Slice(at*z.outStride, z.out.Size())
			} else {
				w.host = s.Host.Bytes()[at*z.outStride:][:z.out.Size()]
			}
			g.windows = append(g.windows, w)
		}
		g.describe(s)
	}
	g.ring = slots.NewRing(all, len(g.computes.Streams))
	return nil
}

// release is the way out of New: nothing has run yet.
func (g *stages) release() error {
	var errs []error
	if g.ring != nil {
		errs = append(errs, g.ring.Close())
	}
	errs = append(errs, g.closeStreams())
	if g.pinned != nil {
		errs = append(errs, g.pinned.pool.Close(context.Background()))
	}
	return errors.Join(errs...)
}
