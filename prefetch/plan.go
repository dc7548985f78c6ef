package prefetch

import (
	"fmt"
	"strings"

	"github.com/leat-go/leat/loader"
)

// A Plan is everything that was decided for a Prefetcher, by its options or on the
// user's behalf, before the first batch.
type Plan struct {
	// Device is the device's name and product, and DeviceNotes why it was chosen
	// and what it decided. Without a device both are empty.
	Device      string
	DeviceNotes []string
	// Depth is the number of device slots, DeviceBytes their memory and what a
	// transform works with beside them.
	Depth       int
	DeviceBytes int64
	// BatchesPerCopy is how many batches a device slot holds and a copy carries at most.
	BatchesPerCopy int
	// ComputeStreams is the number of compute streams.
	ComputeStreams int
	// HostSlots is the number of batches that have room in pinned memory, HostBytes that memory, and
	// HostMemory what kind of memory it is: "pinned" or "pageable".
	HostSlots  int
	HostBytes  int64
	HostMemory string
	// BatchBytes is the size of a full batch, packed.
	BatchBytes int64
	Fields     []loader.FieldLayout
	// Delivered are the fields behind the transform, nil without one.
	Delivered []loader.FieldLayout
	// BatchSize is the rows of a full batch, BatchesPerEpoch this rank's batches in
	// an epoch, -1 if unknown, Epochs the stated number of epochs, 0 if none is.
	BatchSize, BatchesPerEpoch, Epochs int
	// Shard is which rank's part of every global batch it is.
	Shard loader.Shard
	// Workers is the most goroutines that read samples; Goroutines all that a
	// running Prefetcher has at most, without those of a Map.
	Workers, Goroutines int
	// Options are those in force, defaults filled in.
	Options Options
	// Notes are other decisions, one sentence each.
	Notes []string
}

// Plan says what was decided. It doesn't change.
func (p *Prefetcher) Plan() Plan { return p.plan }

func makePlan(g *stages, ld *loader.Loader) Plan {
	lo, z, o := ld.Options(), &g.sizes, g.sizes.options
	pool := g.pinned.pool.Stats()
	plan := Plan{
		HostSlots: pool.Slots, HostBytes: pool.Bytes, HostMemory: "pinned", BatchBytes: z.in.Size(),
		Fields: z.in.Fields(), BatchSize: z.in.BatchSize(), BatchesPerEpoch: -1,
		Epochs: lo.Epochs, Shard: lo.Shard, Workers: ld.Workers(), Options: o,
		Goroutines: ld.Workers() + ld.Shards() + 2, // and the loader's dispatcher, and the uploader
	}
	if n, known := ld.Batches(); known {
		plan.BatchesPerEpoch = n
	}
	if n := len(ld.Options().BatchSizes); n > 0 {
		plan.Notes = append(plan.Notes, fmt.Sprintf("the batch size changes %d times: memory is for the largest, and batches of all other sizes are copied field by field", n))
	}
	if pool.Pageable {
		plan.HostMemory = "pageable"
		plan.Notes = append(plan.Notes, "the device refused pinned memory: copies from pageable memory don't overlap compute")
	}
	if pool.Slots < o.Memory.HostSlots {
		plan.Notes = append(plan.Notes, fmt.Sprintf("%d host slots instead of %d: there is no memory for more", pool.Slots, o.Memory.HostSlots))
	}
	if g.near > 0 {
		plan.Notes = append(plan.Notes, nearNote(g.near, ld.Workers(), g.dev.Properties().Node))
	}
	if g.ring != nil {
		plan.Goroutines++ // the recycler
	}
	if g.transform != nil {
		plan.Delivered = z.out.Fields()
	}
	if g.dev != nil {
		plan.Device, plan.DeviceNotes = g.dev.String(), g.dev.Notes()
		plan.Depth, plan.DeviceBytes = o.Depth, z.slots
		plan.BatchesPerCopy, plan.ComputeStreams = o.BatchesPerCopy, len(g.computes.Streams)
		if n := len(g.computes.Streams); n > 1 {
			plan.Goroutines += o.Depth // who watch the slots
		}
		if plan.Depth == 1 {
			plan.Notes = append(plan.Notes, "Depth 1: copies don't overlap compute")
		}
	}
	return plan
}

// String is the plan for a person.
func (p Plan) String() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-14s "+format+"\n", append([]any{name}, args...)...)
	}
	if p.Device == "" {
		line("device", "none: batches stay in host memory")
	} else {
		line("device", "%s", p.Device)
		for _, n := range p.DeviceNotes {
			line("", "%s", n)
		}
		line("device slots", "%d (Depth) of %d batches (BatchesPerCopy), %d bytes in all", p.Depth, p.BatchesPerCopy, p.DeviceBytes)
		line("streams", "1 for copies, %d for compute", p.ComputeStreams)
	}
	line("host slots", "%d (HostSlots) of %s memory for a batch each, %d bytes in all; a full batch has %d bytes", p.HostSlots, p.HostMemory, p.HostBytes, p.BatchBytes)
	for _, f := range p.Fields {
		line("field", "%v at byte %d", f.Field, f.Offset)
	}
	for _, f := range p.Delivered {
		line("transformed", "%v", f.Field)
	}
	epochs := "no stated number of"
	if p.Epochs > 0 {
		epochs = fmt.Sprint(p.Epochs)
	}
	batches := "an unknown number of"
	if p.BatchesPerEpoch >= 0 {
		batches = fmt.Sprint(p.BatchesPerEpoch)
	}
	line("batches", "%s of %d rows an epoch, %s epochs", batches, p.BatchSize, epochs)
	if p.Shard.Count > 1 {
		line("rank", "%d of %d", p.Shard.Index, p.Shard.Count)
	}
	line("goroutines", "up to %d workers, %d in all", p.Workers, p.Goroutines)
	for _, n := range p.Notes {
		line("note", "%s", n)
	}
	return b.String()
}
