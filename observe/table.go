package observe

import (
	"fmt"
	"strings"
	"time"

	"github.com/leat-go/leat/observe/journal"
)

// String is the table of a snapshot: how fast, who waited for whom, and how long things took.
func (s *Snapshot) String() string {
	t := &table{}
	t.line("%s", s.Title())
	t.line("%d steps, %d samples, %d bytes in %v: %.0f samples/s", s.Stats.Batches, s.Stats.Samples, s.Stats.Bytes, short(s.For), s.SamplesPerSecond())
	t.line("ready %s of the time", percent(s.Readiness()))
	if rate := s.CopyBytesPerSecond(); rate > 0 {
		t.line("copies at %s%s, %s of them hidden behind compute", rateText(rate), newView(s).peakText(), percent(s.Overlap()))
	}
	if s.onDevice() {
		t.line("")
		t.parts(fmt.Sprintf("the device, %d steps", s.Device.Batches), s.Device.Parts, s.Device.Batches, deviceRows)
	}
	if s.Host.Steps > 0 {
		t.line("")
		t.parts(fmt.Sprintf("the loop, %d steps", s.Host.Steps), s.Host.Parts, s.Host.Steps, hostRows)
		t.line("")
		t.line("%-34s %10s %10s %10s", "how long", "p50", "p90", "p99")
		t.quantiles("a step", &s.Host.Step)
		t.quantiles("a wait in Next", &s.Host.Wait)
		t.quantiles("a body", &s.Host.Body)
		t.quantiles("reading a sample", &s.Reads.Sample)
		t.quantiles("a copy", &s.Device.Copy)
		t.quantiles("a step on the device", &s.Device.Step)
		t.quantiles("a result's way back", &s.Host.Downloads)
		t.line("")
		t.stages(s)
	}
	t.slowest(s)
	l := s.Stats.Loader
	if l.Substituted+l.Skipped > 0 {
		t.line("%d samples substituted, %d left out", l.Substituted, l.Skipped)
	}
	return t.String()
}

type table struct{ strings.Builder }

func (t *table) line(format string, args ...any) {
	fmt.Fprintf(t, format, args...)
	t.WriteByte('\n')
}

// row is a part of an account.
type row struct {
	cause journal.Cause
	name  string
}

var deviceRows = []row{
	{journal.Device, "worked"},
	{journal.Producers, "waited for producers"},
	{journal.Order, "waited for a slow sample"},
	{journal.HostSlot, "waited for a free host slot"},
	{journal.Leases, "waited for a slot that you held"},
	{journal.Copy, "waited for the copy"},
	{journal.Transform, "waited for the transform"},
	{journal.Body, "waited for the loop's body"},
}

var hostRows = []row{
	{journal.Body, "was in its body"},
	{journal.Producers, "waited for producers"},
	{journal.Order, "waited for a slow sample"},
	{journal.HostSlot, "waited for a free host slot"},
	{journal.Leases, "waited for a slot that you held"},
	{journal.Copy, "waited for the copy's call"},
	{journal.Transform, "waited for the transform"},
	{journal.Device, "waited for the device"},
}

// parts are the parts of an account that are not 0.
func (t *table) parts(title string, p journal.Parts, steps int64, rows []row) {
	t.line("%-34s %10s %10s", title, "a step", "share")
	for _, r := range rows {
		if d := *p.Of(r.cause); d > 0 {
			t.line("  %-32s %10v %10s", r.name, short(d/time.Duration(steps)), fmt.Sprintf("%.1f%%", 100*float64(d)/float64(p.Sum())))
		}
	}
}

func (t *table) quantiles(name string, h *Histogram) {
	if h.Count() > 0 {
		t.line("  %-32s %10v %10v %10v", name, short(h.Quantile(0.5)), short(h.Quantile(0.9)), short(h.Quantile(0.99)))
	}
}

// stages are how full the pipeline was.
func (t *table) stages(s *Snapshot) {
	busy := 0.0
	if n := len(s.Stats.Loader.Busy); n > 0 && s.For > 0 {
		busy = float64(s.Reads.Busy) / float64(s.For) / float64(n)
	}
	stay := s.Host.Stay
	t.line("on average %.1f batches were being filled (%d workers, busy %s), %.1f filled, %.1f submitted, %.1f in the body",
		s.Occupancy(stay.Filling), len(s.Stats.Loader.Busy), percent(busy), s.Occupancy(stay.Filled), s.Occupancy(stay.Waiting), s.Occupancy(stay.Consumed))
}

// slowest are the slowest samples, if they stand out.
func (t *table) slowest(s *Snapshot) {
	usual := s.Reads.Sample.Quantile(0.5)
	for i, slow := range s.Reads.Slowest {
		if i == 3 || slow.Took <= 2*usual {
			break
		}
		what := fmt.Sprintf("sample %d", slow.Sample)
		if slow.Neighbours > 1 {
			what = fmt.Sprintf("%d samples from %d on", slow.Neighbours, slow.Sample)
		}
		t.line("slow: %s took %v in epoch %d", what, short(slow.Took), slow.Epoch)
	}
}
