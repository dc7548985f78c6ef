package observe

import (
	"runtime"
	"time"

	"github.com/leat-go/leat/prefetch"
)

// A Snapshot is all that is known of a pipeline since it was made, or of an interval, where
// two are subtracted.
type Snapshot struct {
	// Taken is when it was taken, and For the time that it is of.
	Taken time.Time
	For   time.Duration
	// Cores is how many processors the program may use at a time.
	Cores int
	// PeakBytesPerSecond is Options.PeakBytesPerSecond.
	PeakBytesPerSecond float64

	Plan   prefetch.Plan
	Stats  prefetch.Stats
	Host   Host
	Device Device
	Reads  Reads
	// Scheduling is how long goroutines of this program waited for a processor, in the
	// runtime's own buckets.
	Scheduling Histogram
}

// Take takes a Snapshot of a pipeline. Without a *Recorder in its Options there are Plan and
// Stats alone. Any goroutine may call it at any time.
func Take(pf *prefetch.Prefetcher) *Snapshot { return take(pf.Plan(), pf.Stats()) }

func take(plan prefetch.Plan, stats prefetch.Stats) *Snapshot {
	s := &Snapshot{Taken: time.Now(), Cores: runtime.GOMAXPROCS(0), Plan: plan, Stats: stats}
	if r, ok := s.Plan.Options.Recorder.(*Recorder); ok {
		r.fill(s)
	}
	return s
}

// fill adds what was recorded.
func (r *Recorder) fill(s *Snapshot) {
	s.For = s.Taken.Sub(r.began)
	s.PeakBytesPerSecond = r.options.PeakBytesPerSecond
	s.Reads = r.reads()
	s.Scheduling = r.latencies()
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Host, s.Device = r.host, r.device.Device
}

// Sub is the interval from before, a Snapshot of the same pipeline, to s.
func (s *Snapshot) Sub(before *Snapshot) *Snapshot {
	d := *s
	d.For = s.Taken.Sub(before.Taken)
	d.Stats = s.Stats.Sub(before.Stats)
	d.Host = s.Host.Sub(&before.Host)
	d.Device = s.Device.Sub(&before.Device)
	d.Reads = s.Reads.Sub(&before.Reads)
	d.Scheduling = s.Scheduling.Sub(before.Scheduling)
	return &d
}

// onDevice reports whether the device's account tells enough to go by.
func (s *Snapshot) onDevice() bool { return s.Device.Batches > 0 && s.Device.Parts.Sum() > 0 }

// SamplesPerSecond is how many samples were delivered a second, padding not counted.
func (s *Snapshot) SamplesPerSecond() float64 { return perSecond(float64(s.Stats.Samples), s.For) }

// Readiness is the share of time, from 0 to 1, at which the next batch was there for whoever
// was to work on it: for the compute stream where the device's account is there, else for
// the loop. It is 1 where nothing waited for data.
func (s *Snapshot) Readiness() float64 {
	p, all := s.Host.Parts, s.Host.Parts.Sum()
	lacked := p.Producers + p.Order
	switch {
	case s.onDevice():
		p, all = s.Device.Parts, s.Device.Parts.Sum()
		lacked = p.Producers + p.Order + p.HostSlot + p.Leases + p.Copy + p.Transform
	case s.Stats.Device == "":
		lacked += p.Transform
	}
	if all <= 0 {
		return 1
	}
	return 1 - float64(lacked)/float64(all)
}

// Utilization is the share of time for which the compute stream worked; known is false
// without the device's account.
func (s *Snapshot) Utilization() (share float64, known bool) {
	if !s.onDevice() {
		return 0, false
	}
	return float64(s.Device.Parts.Device) / float64(s.Device.Parts.Sum()), true
}

// CopyBytesPerSecond is the rate of copies while they ran, 0 if none was timed.
func (s *Snapshot) CopyBytesPerSecond() float64 {
	return perSecond(float64(s.Device.Bytes), s.Device.Copying)
}

// Overlap is the share of copying during which the compute stream worked, from 0 to 1; 0 where
// it was not measured.
func (s *Snapshot) Overlap() float64 {
	if s.Device.Compared <= 0 {
		return 0
	}
	return max(0, 1-float64(s.Device.Waiting)/float64(s.Device.Compared))
}

// Occupancy is how many batches were in a stage on average, for a time of Host.Stay.
func (s *Snapshot) Occupancy(stay time.Duration) float64 {
	if s.For <= 0 {
		return 0
	}
	return float64(stay) / float64(s.For)
}

func perSecond(n float64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return n / d.Seconds()
}
