package observe

import (
	"fmt"
	"strings"
	"time"
)

// A Bottleneck is what a pipeline's pace is made by.
type Bottleneck string

// The bottlenecks that Explain tells apart. What each is, what shows it and what helps is in
// docs/tuning.md.
const (
	// Unknown: nothing was delivered yet.
	Unknown Bottleneck = "unknown"
	// DeviceBound: the device worked nearly all the time, as it should.
	DeviceBound Bottleneck = "device"
	// BodyBound: the loop's body takes its time on the host, and waits for no stream.
	BodyBound Bottleneck = "body"
	// Synchronizing: the body waits for its stream in each step.
	Synchronizing Bottleneck = "synchronizing"
	// Starved: the goroutine that submits work waits for a processor.
	Starved Bottleneck = "starved"
	// SlowProducers: reading is slower than what takes the batches. No depth helps.
	SlowProducers Bottleneck = "slow producers"
	// UnevenProducers: reading is fast enough, but not evenly. More slots help.
	UnevenProducers Bottleneck = "uneven producers"
	// SlowSample: a few samples take so long that all wait for them.
	SlowSample Bottleneck = "slow sample"
	// FewHostSlots: with so few host slots reading and copying can't go on side by side.
	FewHostSlots Bottleneck = "few host slots"
	// NoOverlap: with one device slot copying and computing can't.
	NoOverlap Bottleneck = "no overlap"
	// Pageable: host memory is not pinned.
	Pageable Bottleneck = "pageable"
	// SmallCopies: copies are too small to fill the bus.
	SmallCopies Bottleneck = "small copies"
	// Padding: much of what crosses the bus pads ragged fields.
	Padding Bottleneck = "padding"
	// Bus: copies take longer than steps, and are what the bus can do.
	Bus Bottleneck = "bus"
	// Transforming: the Transform takes longer than steps.
	Transforming Bottleneck = "transform"
	// HeldSlots: the user holds all slots.
	HeldSlots Bottleneck = "held slots"
)

// An Explanation says in plain sentences what a pipeline's pace is made by.
type Explanation struct {
	Bottleneck Bottleneck
	// Share is the share of time, from 0 to 1, that is lost to it: for which the device, or
	// without its account the loop, waited.
	Share float64
	// What says what was waited for, Why gives the evidence, and Change the one change that
	// helps most, empty where there is none. Notes are other things to know.
	What, Why, Change string
	Notes             []string
	// Gain is how many times as fast the loop may be at best, if nothing is lost to the
	// bottleneck any more: 1 where there is nothing to gain.
	Gain float64
}

// String is the sentences, as a paragraph and a line for each note.
func (e Explanation) String() string {
	parts := []string{e.What, e.Why, e.Change}
	if e.Gain > 1.005 {
		parts = append(parts, fmt.Sprintf("At best that makes it %.2f times as fast.", e.Gain))
	}
	var b strings.Builder
	for _, p := range parts {
		if p == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(p)
	}
	b.WriteByte('\n')
	for _, n := range e.Notes {
		b.WriteString(n)
		b.WriteByte('\n')
	}
	return b.String()
}

// Explain says what made the pace in the time that s is of. It is right about time in which
// one thing did: where that changed, take shorter intervals.
func (s *Snapshot) Explain() Explanation {
	v := newView(s)
	if v.steps == 0 {
		return Explanation{Bottleneck: Unknown, What: "No batch was delivered yet.", Gain: 1}
	}
	e := v.explain()
	if e.Gain == 0 {
		e.Gain = v.gain(e)
	}
	return v.noted(e)
}

// gain is how many times as fast the steps would be if nothing waited any more: as fast as the
// slowest of what else they pass.
func (v *view) gain(e Explanation) float64 {
	step := v.perStep(v.parts.Sum())
	_, batch := v.reading()
	_, copy, every := v.copying()
	copy = time.Duration(float64(copy) * float64(step) / float64(max(every, 1)))
	left := v.pace()
	switch e.Bottleneck {
	case SlowProducers:
		batch = 0 // of which there would be less
	case SmallCopies, Pageable, Padding, Bus:
		copy = 0
	case Synchronizing:
		steps := time.Duration(max(v.Host.Steps, 1))
		left = max(v.perStep(v.parts.Device), (v.Host.Parts.Body-v.Host.Synchronized)/steps)
	}
	return float64(step) / float64(max(left, batch, copy, 1))
}

// noted adds what else is to be known.
func (v *view) noted(e Explanation) Explanation {
	note := func(ok bool, format string, args ...any) {
		if ok {
			e.Notes = append(e.Notes, fmt.Sprintf(format, args...))
		}
	}
	l := v.Stats.Loader
	note(l.Substituted > 0, "%d samples could not be read, and others stand in for them.", l.Substituted)
	note(l.Skipped > 0, "%d samples were left out.", l.Skipped)
	note(v.device && 2*v.steps < v.Host.Steps, "The device's account is of %s of %d: those that were timed.", v.stepsText(), v.Host.Steps)
	note(!v.device && v.Stats.Device != "", "The device's own account is not there: all is as the host saw it, which waits for the device where that is behind.")
	return e
}

// almost is the share from which on something is all that matters.
const almost = 0.95

// explain finds the largest loss.
func (v *view) explain() Explanation {
	work, lost := v.work()
	if share := v.share(work); share >= almost {
		return v.busy(share)
	}
	most := lost[0]
	for _, l := range lost[1:] {
		if l.took > most.took {
			most = l
		}
	}
	e := most.explain(v, v.share(most.took))
	if e.Share == 0 {
		e.Share = v.share(most.took)
	}
	return e
}

// busy is the explanation of a pipeline that keeps who works on its batches at work.
func (v *view) busy(share float64) Explanation {
	e := Explanation{Bottleneck: DeviceBound, Gain: 1}
	if !v.device && v.Stats.Device == "" {
		e.Bottleneck = BodyBound
		e.What = fmt.Sprintf("The loop's body took %s of the time of %s, %v a step: the pipeline kept up with it.",
			percent(share), v.stepsText(), short(v.perStep(v.parts.Body)))
		return e
	}
	e.What = fmt.Sprintf("The device worked %s of the time of %s: it makes the pace, and no change of the pipeline makes a step faster.", percent(share), v.stepsText())
	if v.device {
		e.Why = fmt.Sprintf("A step takes it %v.", short(v.perStep(v.parts.Device)))
	} else {
		e.Why = fmt.Sprintf("Next waited %v a step for slots that the device was not done with.", short(v.perStep(v.parts.HostSlot+v.parts.Device)))
	}
	return e
}

// waited is the first sentence about a loss.
func (v *view) waited(share float64, what string) string {
	return fmt.Sprintf("%s waited for %s in %s of the time of %s.", v.who(), what, percent(share), v.stepsText())
}

// who worked on batches, by the account at hand.
func (v *view) who() string {
	if v.device {
		return "The device"
	}
	return "The loop"
}

func (v *view) stepsText() string { return several(int(v.steps), "step") }

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

// short is a duration with three digits or so.
func short(d time.Duration) time.Duration {
	for unit := time.Duration(1); unit < d/1000; unit *= 10 {
		d = d.Round(unit * 10)
	}
	return d
}
