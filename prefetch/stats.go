package prefetch

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/pinnedpool"
)

// Stats is what a Prefetcher counted since New: how much went through, and who
// waited for whom.
type Stats struct {
	// Batches and Samples were delivered; Bytes were uploaded, or without a device
	// delivered.
	Batches, Samples, Bytes int64
	// WaitProducer is how long Next waited for producers to fill a batch.
	WaitProducer time.Duration
	// WaitDevice is how long Next waited while all host slots were filled or in
	// flight: the device is the slower side, which is as it should be.
	WaitDevice time.Duration
	// WaitSlot is how long the uploader waited for a device slot: it waited for
	// you to release one. That is how a pipeline waits that is fast enough.
	WaitSlot time.Duration
	// WaitHostSlot is how long producers waited for a host slot: for copies, or
	// without a device for you.
	WaitHostSlot time.Duration
	// WaitCopy is how long the compute stream stood still on the device because a
	// batch's copy wasn't done, CopyTime how long the copies took, both over
	// TimedUploads. They are measured with Options.Timing only. A Transform's own time
	// is in neither.
	WaitCopy, CopyTime time.Duration
	TimedUploads       int64
	// Uploads is the number of uploads, of Options.BatchesPerCopy batches at most.
	Uploads int64
	// Leases is the number of batches not released.
	Leases int
	// Free is the number of device slots that wait for the uploader.
	Free int
	// Pool is the host slots' own count.
	Pool pinnedpool.Stats
}

// Overlap is the share of copying that was hidden behind compute, from 0 to 1; 0
// where it wasn't measured.
func (s Stats) Overlap() float64 {
	if s.CopyTime <= 0 {
		return 0
	}
	return max(0, 1-float64(s.WaitCopy)/float64(s.CopyTime))
}

type counters struct {
	batches, samples, uploads, bytes, waitProducer, waitDevice, waitSlot atomic.Int64
}

func (c *counters) delivered(s *slot) {
	c.batches.Add(1)
	c.samples.Add(int64(s.batch.Valid))
	if s.pinned != nil {
		c.bytes.Add(int64(len(s.host)))
	}
}

// uploaded counts an upload of the batches in slots.
func (c *counters) uploaded(slots []*slot, l *loader.Layout) {
	c.uploads.Add(1)
	for _, s := range slots {
		n := l.Size()
		if s.rows != l.BatchSize() {
			n = 0
			for _, f := range l.Fields() {
				n += f.RowBytes * int64(s.rows)
			}
		}
		c.bytes.Add(n)
	}
}

// Stats returns what was counted so far.
func (p *Prefetcher) Stats() Stats {
	c := &p.counters
	s := Stats{
		Batches: c.batches.Load(), Samples: c.samples.Load(), Bytes: c.bytes.Load(),
		WaitProducer: time.Duration(c.waitProducer.Load()), WaitDevice: time.Duration(c.waitDevice.Load()), WaitSlot: time.Duration(c.waitSlot.Load()),
		Uploads: c.uploads.Load(), Leases: int(p.leases.Load()), Free: len(p.free), Pool: p.pool.Stats(),
	}
	s.WaitHostSlot = p.memory.waiting()
	s.TimedUploads, s.CopyTime, s.WaitCopy = p.timeline.measured()
	return s
}

// String is the table of who waited for whom.
func (s Stats) String() string {
	var b strings.Builder
	row := func(who, whom string, d time.Duration) {
		fmt.Fprintf(&b, "%-28s %-34s %12v\n", who, whom, d.Round(time.Microsecond))
	}
	fmt.Fprintf(&b, "%d batches, %d samples, %d bytes\n", s.Batches, s.Samples, s.Bytes)
	row("you waited for", "producers to fill a batch", s.WaitProducer)
	row("you waited for", "the device, with every slot full", s.WaitDevice)
	if s.TimedUploads > 0 {
		row("compute waited for", "a copy to end", s.WaitCopy)
		fmt.Fprintf(&b, "%-28s %-34s %11.1f%%\n", "of the copies' "+s.CopyTime.Round(time.Microsecond).String(), "compute hid", 100*s.Overlap())
	}
	row("producers waited for", "a free host slot", s.WaitHostSlot)
	row("the uploader waited for", "you to release a device slot", s.WaitSlot)
	return b.String()
}
