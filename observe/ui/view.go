package ui

import (
	"fmt"
	"strings"
	"time"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/observe"
	"github.com/leat-go/leat/observe/journal"
)

// A view is a pipeline as it is seen at one moment.
type view struct {
	now, last *observe.Snapshot // last is the interval
	state     loader.State
	recorded  bool
	parts     journal.Parts // of the account that is gone by
	steps     int64
	of        string
}

func (s *shown) report() Pipeline {
	now, last := s.window.look()
	v := &view{now: now, last: last, state: s.state()}
	_, v.recorded = now.Plan.Options.Recorder.(*observe.Recorder)
	if !v.recorded {
		unrecorded(last)
	}
	v.parts, v.steps, v.of = last.Host.Parts, last.Host.Steps, "loop"
	if _, known := last.Utilization(); known {
		v.parts, v.steps, v.of = last.Device.Parts, last.Device.Batches, "device"
	}
	p := Pipeline{
		Name: s.name, Device: now.Stats.Device, Rank: now.Plan.Shard.Index, Ranks: max(now.Plan.Shard.Count, 1),
		Recorded: v.recorded, Seconds: last.For.Seconds(), Pace: v.pace(), Account: v.account(),
		Explanation: v.explanation(), Stages: v.stages(), Decisions: v.decisions(),
		Total: Total{now.Stats.Batches, now.Stats.Samples, now.Stats.Bytes, now.Stats.Loader.Substituted, now.Stats.Loader.Skipped},
		Place: v.place(), Plan: now.Plan.String(),
	}
	if v.recorded {
		p.Times, p.Slowest = v.times(), v.slowest()
	}
	return p
}

// unrecorded gives an interval the host's account as prefetch.Stats has it, which counts what
// was waited for in fewer parts: all that is known without a Recorder.
func unrecorded(s *observe.Snapshot) {
	st := &s.Stats
	s.Host.Steps = st.Batches
	s.Host.Parts = journal.Parts{Producers: st.WaitProducer, Order: st.WaitOrder, Device: st.WaitDevice, Leases: st.WaitRelease, Body: st.Body}
	if st.Device == "" {
		s.Host.Parts.Transform, s.Host.Parts.Device = st.WaitDevice, 0
	}
}

func perSecond(n float64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return n / d.Seconds()
}

func ratio(a, b time.Duration) float64 {
	if b <= 0 {
		return 0
	}
	return float64(a) / float64(b)
}

func (v *view) pace() Pace {
	p := Pace{
		SamplesPerSecond: v.last.SamplesPerSecond(), BatchesPerSecond: perSecond(float64(v.last.Stats.Batches), v.last.For),
		BytesPerSecond: perSecond(float64(v.last.Stats.Bytes), v.last.For), Readiness: v.last.Readiness(),
	}
	if u, known := v.last.Utilization(); known {
		p.Utilization = &u
	}
	if v.last.Device.Copying > 0 {
		o := v.last.Overlap()
		p.Overlap = &o
	}
	return p
}

func (v *view) account() Account {
	a := Account{Of: v.of, Steps: v.steps}
	for _, c := range journal.Causes {
		a.Parts = append(a.Parts, Part{string(c), v.parts.Of(c).Seconds()})
	}
	return a
}

// The stages' names.
const (
	reading = "reading"
	host    = "host slots"
	copies  = "copies"
	ready   = "ready"
	loop    = "loop"
	device  = "device"
)

// stages are the way of batches.
func (v *view) stages() []Stage {
	s, plan := v.last, &v.now.Plan
	var busy time.Duration
	for _, d := range s.Stats.Loader.Busy {
		busy += d
	}
	read := Stage{Name: reading, Holds: ratio(busy, s.For), Room: float64(v.workers()), Unit: "workers"}
	slots := Stage{Name: host, Room: float64(plan.HostSlots), Unit: "batches"}
	waiting := Stage{Name: ready, Room: float64(plan.Depth * max(plan.BatchesPerCopy, 1)), Unit: "batches"}
	body := Stage{Name: loop, Holds: ratio(s.Host.Parts.Body, s.For), Room: 1, Unit: "busy"}
	if !v.recorded {
		pool := &v.now.Stats.Pool
		slots.Holds = float64(pool.Slots - pool.Free)
		waiting.Holds = float64(max(0, plan.Depth-v.now.Stats.Free) * max(plan.BatchesPerCopy, 1))
	} else {
		// Behind the host's account a slot is in flight until its copy is done.
		flying := v.now.Stats.Pool.InFlight
		slots.Holds = min(slots.Room, s.Occupancy(s.Host.Stay.Filling+s.Host.Stay.Filled)+float64(flying))
		if flying > 0 {
			slots.Note = fmt.Sprintf("%d wait for their copy, or are copied", flying)
		}
		waiting.Holds = s.Occupancy(s.Host.Stay.Waiting)
		if v.of == "device" && waiting.Holds < 0.5 && s.Readiness() >= 1-worth {
			waiting.Note = "the loop runs ahead of the device"
		}
		if s.Reads.Samples > 0 {
			read.Note = fmt.Sprintf("%v a sample", short(s.Reads.Sample.Mean()))
		}
	}
	all := []Stage{read, slots}
	if plan.Device != "" {
		all = append(all, v.copying(), waiting, body)
	} else if len(plan.Delivered) > 0 {
		all = append(all, waiting, body)
	} else {
		all = append(all, body)
	}
	if u, known := s.Utilization(); known {
		all = append(all, Stage{Name: device, Holds: u, Room: 1, Unit: "busy"})
	}
	return v.marked(all)
}

// copying is the bus. How busy it was follows from those copies that were timed.
func (v *view) copying() Stage {
	s := v.last
	c := Stage{Name: copies, Room: 1, Unit: "busy"}
	timed, took := s.Device.Uploads, s.Device.Copying
	if timed == 0 {
		timed, took = s.Stats.TimedUploads, s.Stats.CopyTime
	}
	if timed > 0 {
		c.Holds = min(1, ratio(took/time.Duration(timed)*time.Duration(s.Stats.Uploads), s.For))
	}
	if rate := s.CopyBytesPerSecond(); rate >= 1e9 {
		c.Note = fmt.Sprintf("%.1f GB/s", rate/1e9)
	} else if rate > 0 {
		c.Note = fmt.Sprintf("%.2f MB/s", rate/1e6)
	}
	return c
}

// worth is the share of time from which on a wait is worth to be marked.
const worth = 0.05

// marked marks the stage that most of the time was waited for.
func (v *view) marked(all []Stage) []Stage {
	p := v.parts
	lost := map[string]time.Duration{reading: p.Producers + p.Order, copies: p.Copy + p.Transform, loop: p.Leases}
	if v.of == "device" {
		lost[copies] += p.HostSlot
		lost[loop] += p.Body
	} else if v.now.Stats.Device == "" {
		lost[ready] = p.Transform
	}
	most := worth * p.Sum().Seconds()
	at := -1
	for i := range all {
		if took := lost[all[i].Name].Seconds(); took > most {
			at, most = i, took
		}
	}
	if at >= 0 {
		all[at].Slow = true
	}
	return all
}

func (v *view) times() (all []Times) {
	for _, h := range []struct {
		of string
		h  *observe.Histogram
	}{
		{"step", &v.last.Host.Step}, {"wait for the batch", &v.last.Host.Wait}, {"body", &v.last.Host.Body},
		{"read a sample", &v.last.Reads.Sample}, {"copy", &v.last.Device.Copy}, {"step on the device", &v.last.Device.Step},
		{"download", &v.last.Host.Downloads},
	} {
		if n := h.h.Count(); n > 0 {
			q := func(q float64) float64 { return h.h.Quantile(q).Seconds() }
			all = append(all, Times{h.of, n, h.h.Mean().Seconds(), q(0.5), q(0.9), q(0.99), q(1)})
		}
	}
	return all
}

func (v *view) slowest() (all []Slow) {
	for _, s := range v.now.Reads.Slowest {
		if s.Neighbours == 1 {
			all = append(all, Slow{s.Sample, s.Epoch, s.Position, s.Took.Seconds()})
		}
	}
	return all
}

func (v *view) place() Place {
	s := &v.state
	return Place{
		Epoch: s.Epoch, Epochs: v.now.Plan.Epochs, Position: s.Position, Samples: s.Samples,
		Seed: s.Seed, Shuffle: s.Shuffle, Fingerprint: s.Fingerprint, Shards: s.Shards,
	}
}

// short is a duration with three digits or so.
func short(d time.Duration) time.Duration {
	for unit := time.Duration(1); unit < d/1000; unit *= 10 {
		d = d.Round(unit * 10)
	}
	return d
}

// workers is how many there may be now.
func (v *view) workers() int {
	if n := v.now.Stats.Loader.Workers; n > 0 {
		return n
	}
	return v.now.Plan.Workers
}

func (v *view) decisions() (all []Decision) {
	for _, d := range v.now.Stats.Loader.Decisions {
		all = append(all, Decision{d.At, "workers", d.From, d.To, d.Reason})
	}
	return all
}

// explanation is what Explain says, or without a Recorder the little that is known.
func (v *view) explanation() Explanation {
	if v.recorded {
		e := v.last.Explain()
		return Explanation{string(e.Bottleneck), e.Share, e.Gain, strings.Split(strings.TrimSpace(e.String()), "\n")}
	}
	e := Explanation{Bottleneck: string(observe.Unknown), Share: 1 - v.last.Readiness(), Gain: 1}
	if v.steps == 0 {
		e.Sentences = append(e.Sentences, "No batch was delivered in this time.")
	} else {
		e.Sentences = append(e.Sentences, fmt.Sprintf("The loop waited for data in %.0f%% of the time of %d steps.", 100*e.Share, v.steps))
	}
	e.Sentences = append(e.Sentences, "With an observe.Recorder in prefetch.Options there is more to say.")
	return e
}
