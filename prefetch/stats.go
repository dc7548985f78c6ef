package prefetch

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/observe/journal"
	"github.com/leat-go/leat/pinnedpool"
)

// Stats is what a Prefetcher counted since New: how much went through, and who waited
// for whom. Each figure by itself is exact; together they are taken one after the other
// while the pipeline goes on. A wait counts when it is over; a wait of Next that its context
// ended, when the batch has come.
//
// A call of Next waits for one batch, the next in order. WaitProducer, WaitOrder,
// WaitDevice and WaitRelease divide that wait by what the batch lacked at each instant,
// and so their sum, Wait, is all the time that Next waited. A call that finds its batch
// ready waits for nothing.
type Stats struct {
	// Device is the device's name, empty without one.
	Device string

	// Batches and Samples were delivered, padding not counted; Bytes were uploaded, or
	// without a device delivered.
	Batches, Samples, Bytes int64
	// Uploads is the number of uploads, of Options.BatchesPerCopy batches at most.
	Uploads int64

	// WaitProducer is how long Next waited for a batch whose rows were not all written,
	// while no later batch was complete either: reading is the slower side.
	WaitProducer time.Duration
	// WaitOrder is how long Next waited for a batch whose rows were not all written, while
	// a later one was complete: one slow sample held back what was ready, because batches
	// are delivered in order. More host slots allow more to be read behind it, but do not
	// shorten this wait.
	WaitOrder time.Duration
	// WaitDevice is how long Next waited for work in flight: the batch had no host slot
	// because the copies out of all of them were still to be done, behind the bus or behind
	// compute; or it was filled, and a copy from pageable memory or a Transform's Apply kept
	// the uploader. The device is the slower side, which is as it should be. Without a
	// device it is the time of the Transform, and 0 where there is none.
	WaitDevice time.Duration
	// WaitRelease is how long Next waited for a slot that you held: every device slot, or
	// without a device every host slot. Next reports that as a *LeaseError instead, where
	// nobody else can release one; WaitNext waits.
	WaitRelease time.Duration
	// Body is how long you worked between two calls of Next: from the delivery of a batch to
	// the next call of the same Reader, or to its Close. Time between two ranges is not in it.
	Body time.Duration

	// WaitSlot is how long the uploader waited with a filled batch for a device slot, all of
	// which were yours or held batches ready for you. That is how a pipeline waits that is
	// fast enough. It is 0 without device slots. With several compute streams the uploader
	// also waits for one to be done with a slot that you have released: that is not in it.
	WaitSlot time.Duration
	// WaitHostSlot is how long the producers had nothing to do because no host slot was free:
	// every batch that was begun was complete. The slots were in flight, or held batches ready
	// for you, or were yours.
	WaitHostSlot time.Duration

	// WaitCopy is how long the compute stream stood still on the device because a
	// batch's copy wasn't done, CopyTime how long the copies took, both over
	// TimedUploads: those of Options.Timing, or the few that a Recorder is told of. A
	// Transform's own time is in neither.
	WaitCopy, CopyTime time.Duration
	TimedUploads       int64

	// Leases is the number of batches not released.
	Leases int
	// Free is the number of device slots that wait for the uploader.
	Free int
	// Pool is the host slots' own count.
	Pool pinnedpool.Stats
	// Loader is what the producers did, over all ranges: how long each worker was busy, the
	// slowest sample, substitutes. They read ahead, so its Batches and Samples may be more
	// than those delivered here.
	Loader loader.Stats
}

// Wait is how long Next waited, for whatever reason.
func (s Stats) Wait() time.Duration {
	return s.WaitProducer + s.WaitOrder + s.WaitDevice + s.WaitRelease
}

// Overlap is the share of copying that was hidden behind compute, from 0 to 1; 0
// where it wasn't measured.
func (s Stats) Overlap() float64 {
	if s.CopyTime <= 0 {
		return 0
	}
	return max(0, 1-float64(s.WaitCopy)/float64(s.CopyTime))
}

// String is the table of who waited for whom. Each share is one of your own time, Body and
// Wait together.
func (s Stats) String() string {
	var b strings.Builder
	yours := s.Body + s.Wait()
	row := func(d time.Duration, format string, args ...any) {
		fmt.Fprintf(&b, "%-60s %12v", fmt.Sprintf(format, args...), d.Round(time.Microsecond))
		if yours > 0 {
			fmt.Fprintf(&b, " %6.1f%%", 100*d.Seconds()/yours.Seconds())
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%d batches, %d samples, %d bytes", s.Batches, s.Samples, s.Bytes)
	if yours > 0 {
		fmt.Fprintf(&b, ", %.0f samples a second", float64(s.Samples)/yours.Seconds())
	}
	b.WriteByte('\n')
	row(s.Body, "you worked on batches")
	row(s.WaitProducer, "you waited for producers to fill the next batch")
	row(s.WaitOrder, "you waited for a slow sample, with later batches filled")
	switch {
	case s.Device != "":
		row(s.WaitDevice, "you waited for the device to take a batch")
	case s.WaitDevice > 0:
		row(s.WaitDevice, "you waited for the transform")
	}
	if s.WaitRelease > yours/1000 { // less is the moment in which a slot changes hands
		row(s.WaitRelease, "you waited for a slot, and held all of them")
	}
	if s.TimedUploads > 0 {
		row(s.WaitCopy, "compute waited for copies, which took %v", s.CopyTime.Round(time.Microsecond))
	}
	if s.Device != "" {
		row(s.WaitSlot, "the uploader waited for a device slot, to be released by you")
	}
	row(s.WaitHostSlot, "producers waited for a host slot, with nothing else to do")
	if busy := s.Loader.Busy; len(busy) > 0 {
		row(average(busy), "each of %d workers read samples, on average", len(busy))
	}
	if all := s.Loader.Decisions; len(all) > 0 {
		fmt.Fprintf(&b, "%d workers: %s\n", s.Loader.Workers, all[len(all)-1].Reason)
	}
	if reading := s.Loader.Reading; len(reading) > 0 {
		row(average(reading), "each of %d shards was read, on average", len(reading))
	}
	if slow := s.Loader.Slowest; slow.Neighbours > 0 {
		row(slow.Took, "the slowest sample took (%d, in epoch %d)", slow.Sample, slow.Epoch)
	}
	if n := s.Loader.Substituted; n > 0 {
		fmt.Fprintf(&b, "%d samples could not be read, others stand in for them\n", n)
	}
	if n := s.Loader.Skipped; n > 0 {
		fmt.Fprintf(&b, "%d samples were left out\n", n)
	}
	return b.String()
}

func average(all []time.Duration) (d time.Duration) {
	for _, one := range all {
		d += one
	}
	return d / time.Duration(len(all))
}

// counters are what Stats is made of. The reader's and the uploader's have cache lines of
// their own.
type counters struct {
	batches, samples                       atomic.Int64
	producer, order, device, release, body atomic.Int64
	_                                      [128]byte
	uploads, bytes, waitSlot, waitHostSlot atomic.Int64
	_                                      [128]byte

	mu     sync.Mutex
	before loader.Stats // of the runs that are over
}

func (c *counters) delivered(w *window) {
	c.batches.Add(1)
	c.samples.Add(int64(w.batch.Valid))
	if w.pinned != nil { // nothing was uploaded
		c.bytes.Add(w.in.bytes())
	}
}

// uploaded counts an upload of batches.
func (c *counters) uploaded(windows []*window) {
	c.uploads.Add(1)
	for _, w := range windows {
		c.bytes.Add(w.in.bytes())
	}
}

// waited counts a wait of Next for a batch, nil if there was none to come.
func (c *counters) waited(s span, w *window) journal.Parts {
	of := journal.Parts{Producers: s.to.Sub(s.from)}
	if w != nil {
		of = w.way.Divide(s.from, s.to)
	}
	c.producer.Add(int64(of.Producers))
	c.order.Add(int64(of.Order))
	c.device.Add(int64(of.HostSlot + of.Copy + of.Transform + of.Device))
	c.release.Add(int64(of.Leases))
	return of
}

// Stats returns what was counted so far.
func (p *Prefetcher) Stats() Stats {
	g := p.stages
	c := &g.counters
	get := func(n *atomic.Int64) time.Duration { return time.Duration(n.Load()) }
	s := Stats{
		Batches: c.batches.Load(), Samples: c.samples.Load(), Bytes: c.bytes.Load(), Uploads: c.uploads.Load(),
		WaitProducer: get(&c.producer), WaitOrder: get(&c.order), WaitDevice: get(&c.device), WaitRelease: get(&c.release),
		Body: get(&c.body), WaitSlot: get(&c.waitSlot), WaitHostSlot: get(&c.waitHostSlot),
		Leases: leased(g.windows), Pool: g.pinned.pool.Stats(),
	}
	if g.dev != nil {
		s.Device = g.dev.Name()
	}
	if g.ring != nil {
		s.Free = g.ring.Free()
	}
	s.TimedUploads, s.CopyTime, s.WaitCopy = g.timeline.Measured()
	p.ahead.mu.Lock()
	r := p.ahead.run
	p.ahead.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Loader = c.before
	if r != nil && !r.counted {
		s.Loader = plus(s.Loader, r.batches.Stats())
	}
	return s
}

// ended adds what a run's producers did, when it is over or given up, once.
func (c *counters) ended(r *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.counted {
		return
	}
	c.before = plus(c.before, r.batches.Stats())
	r.counted = true
}

// plus is what two runs of a loader did.
func plus(a, b loader.Stats) loader.Stats {
	a.Batches += b.Batches
	a.Samples += b.Samples
	a.Substituted += b.Substituted
	a.WaitSlot += b.WaitSlot
	a.WaitBatch += b.WaitBatch
	a.WaitOrder += b.WaitOrder
	a.Skipped += b.Skipped
	if len(a.FirstSkipped) == 0 {
		a.FirstSkipped = b.FirstSkipped
	}
	a.Busy, a.Reading = sums(a.Busy, b.Busy), sums(a.Reading, b.Reading)
	a.Workers, a.Decisions = b.Workers, lastOf(a.Decisions, b.Decisions)
	if b.Slowest.Took > a.Slowest.Took {
		a.Slowest = b.Slowest
	}
	return a
}

// lastOf is the last decisions of two runs, as many as one keeps.
func lastOf(a, b []loader.Decision) []loader.Decision {
	all := slices.Concat(a, b)
	return all[max(0, len(all)-loader.KeptDecisions):]
}

// sums are the sums of what each goroutine took in two runs, of which one may have had more.
func sums(a, b []time.Duration) []time.Duration {
	if len(a) > len(b) {
		a, b = b, a
	}
	b = slices.Clone(b)
	for i := range a {
		b[i] += a[i]
	}
	return b
}
