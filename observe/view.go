package observe

import (
	"math"
	"time"

	"github.com/leat-go/leat/observe/journal"
)

// A view is a Snapshot with the account that Explain goes by: the device's where it is there,
// since only that tells what was really waited for, or the host's.
type view struct {
	*Snapshot
	device bool
	parts  journal.Parts
	steps  int64
}

func newView(s *Snapshot) *view {
	v := &view{Snapshot: s, parts: s.Host.Parts, steps: s.Host.Steps}
	if s.onDevice() {
		v.device, v.parts, v.steps = true, s.Device.Parts, s.Device.Batches
	}
	return v
}

func (v *view) share(d time.Duration) float64 {
	if all := v.parts.Sum(); all > 0 {
		return float64(d) / float64(all)
	}
	return 0
}

func (v *view) perStep(d time.Duration) time.Duration { return d / time.Duration(max(v.steps, 1)) }

// A loss is what kept the device, or the loop, from working, and what there is to say of it.
type loss struct {
	took    time.Duration
	explain func(v *view, share float64) Explanation
}

// work is the time in which all was well, and the losses are all other time.
func (v *view) work() (work time.Duration, lost []loss) {
	p := v.parts
	lost = []loss{
		{p.Producers + p.Order, (*view).producers},
		{p.Copy, (*view).copies},
		{p.Transform, (*view).transform},
		{p.Leases, (*view).leases},
	}
	switch {
	case v.device:
		return p.Device, append(lost, loss{p.Body, (*view).body}, loss{p.HostSlot, (*view).copies})
	case v.Stats.Device != "":
		// The loop runs ahead of a device, and waits for it: for what that does is not known.
		return p.Body + p.HostSlot + p.Device, lost
	}
	return p.Body, append(lost, loss{p.HostSlot, (*view).transform}, loss{p.Device, (*view).transform})
}

// pace is how long a step would take with data for free.
func (v *view) pace() time.Duration {
	if v.device {
		return v.perStep(v.parts.Device + v.parts.Body)
	}
	return v.perStep(v.parts.Body)
}

// workers is how many read samples: under loader.Auto at this moment.
func (v *view) workers() int {
	if n := v.Stats.Loader.Workers; n > 0 {
		return n
	}
	return max(v.Plan.Workers, 1)
}

// reading is how long workers took for a sample and for a batch, all of them at work.
func (v *view) reading() (sample, batch time.Duration) {
	if v.Reads.Samples == 0 || v.Host.Steps == 0 {
		return 0, 0
	}
	sample = v.Reads.Busy / time.Duration(v.Reads.Samples)
	return sample, time.Duration(float64(sample) * float64(v.Host.Rows) / float64(v.Host.Steps) / float64(v.workers()))
}

// wanted is how many workers would read as fast as steps go without waiting.
func (v *view) wanted() int {
	_, batch := v.reading()
	return int(math.Ceil(float64(batch) * float64(v.workers()) / float64(max(v.pace(), 1))))
}

// engaged is the share of the loop's time for which a worker read, on average.
func (v *view) engaged() float64 {
	if all := v.Host.Parts.Sum(); all > 0 {
		return float64(v.Reads.Busy) / float64(all) / float64(v.workers())
	}
	return 0
}

// copying is the share of the compute stream's time for which the bus was busy, by the uploads
// that were timed, and how long a copy and the time from one to the next were.
func (v *view) copying() (share float64, copy, every time.Duration) {
	d := &v.Device
	if d.Uploads == 0 || v.Stats.Uploads == 0 {
		return 0, 0, 0
	}
	copy = d.Copying / time.Duration(d.Uploads)
	batches := float64(max(v.Stats.Batches, 1)) / float64(v.Stats.Uploads)
	step := v.perStep(v.parts.Sum())
	every = time.Duration(batches * float64(step))
	if every <= 0 {
		return 0, copy, 0
	}
	return float64(copy) / float64(every), copy, every
}
