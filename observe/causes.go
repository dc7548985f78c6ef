package observe

import (
	"fmt"
	"math"
	"time"

	"github.com/leat-go/leat/prefetch"
)

// What there is to say of each loss.

// full is the share from which on workers, or a bus, count as busy all the time.
const full = 0.9

// producers explains time that was lost to reading.
func (v *view) producers(share float64) Explanation {
	if slow, sum, n := v.outliers(); n > 0 && 2*sum >= v.parts.Producers+v.parts.Order {
		return v.slowSample(share, slow, n)
	}
	switch {
	case v.engaged() >= full && v.wanted() > v.workers():
		return v.slowProducers(share)
	case v.Plan.HostSlots <= 2*max(v.Plan.BatchesPerCopy, 1) && v.idleProducers() > 0:
		return v.fewHostSlots(share)
	}
	return v.unevenProducers(share)
}

// idleProducers is for how long producers had no host slot.
func (v *view) idleProducers() time.Duration { return v.Stats.WaitHostSlot }

// outlying is how many times as long as others a sample takes that is an exception.
const outlying = 4

// outliers are the slowest samples, as far as they take so much longer than others: the
// slowest, how long they took beyond the others, and how many there are.
func (v *view) outliers() (slowest Slow, sum time.Duration, n int) {
	usual := v.Reads.Sample.Quantile(0.9)
	if v.Reads.Samples < 20 {
		usual = v.Reads.Sample.Quantile(0.5)
	}
	for _, s := range v.Reads.Slowest {
		if s.Neighbours == 1 && s.Took > outlying*usual {
			sum += s.Took - usual
			n++
		}
	}
	if n > 0 {
		slowest = v.Reads.Slowest[0]
	}
	return slowest, sum, n
}

func (v *view) slowSample(share float64, slow Slow, n int) Explanation {
	e := Explanation{Bottleneck: SlowSample, Share: share, What: v.waited(share, "single slow samples")}
	e.Why = fmt.Sprintf("Sample %d took %v, half of all take %v or less", slow.Sample, short(slow.Took), short(v.Reads.Sample.Quantile(0.5)))
	if n > 1 {
		e.Why += fmt.Sprintf("; %d of the %d slowest are like that", n, len(v.Reads.Slowest))
	}
	e.Why += ". Batches come in order, so what is read behind it waits."
	ahead := int(math.Ceil(float64(slow.Took) / float64(max(v.pace(), 1))))
	e.Change = fmt.Sprintf("Make it cheaper to read, or say what it costs (loader.Coster), so that it is begun earlier, and set prefetch.Memory.HostSlots to %d: as many batches last while it is read.", ahead+v.Plan.HostSlots)
	return e
}

func (v *view) slowProducers(share float64) Explanation {
	sample, batch := v.reading()
	need := v.wanted()
	e := Explanation{Bottleneck: SlowProducers, Share: share, What: v.waited(share, "producers")}
	e.Why = fmt.Sprintf("Reading takes %v a sample, %v a batch on %s, which read %s of the time; without waiting a step takes %v.",
		short(sample), short(batch), several(v.workers(), "worker"), percent(min(v.engaged(), 1)), short(v.pace()))
	e.Change = fmt.Sprintf("%s (loader.Options.Workers) would hide it; no depth can.", several(need, "worker"))
	if most := v.Plan.Workers; v.workers() < most {
		e.Change += fmt.Sprintf(" The loader adds workers as they pay, up to %d.", most)
	}
	if need > v.Cores {
		e.Change += fmt.Sprintf(" If they compute rather than wait, that takes as many processors, and there are %d: make reading cheaper.", v.Cores)
	}
	return e
}

func (v *view) fewHostSlots(share float64) Explanation {
	e := Explanation{Bottleneck: FewHostSlots, Share: share, What: v.waited(share, "producers")}
	e.Why = fmt.Sprintf("These waited for memory: with %s they had nothing to do for %s of the time, because no slot was free, and then were late; they read only %s of it.",
		several(v.Plan.HostSlots, "host slot"), percent(float64(v.idleProducers())/float64(max(v.Host.Parts.Sum(), 1))), percent(v.engaged()))
	e.Change = fmt.Sprintf("Set prefetch.Memory.HostSlots to %d, which takes %d bytes more of pinned memory.", more(v.Plan), int64(more(v.Plan)-v.Plan.HostSlots)*v.Plan.BatchBytes)
	if asked := v.Plan.Options.Memory.HostSlots; asked > v.Plan.HostSlots {
		e.Change = fmt.Sprintf("There was no memory for the %d that were asked for: raise prefetch.Memory.PinnedBytes, or the limit for locked memory (ulimit -l).", asked)
	}
	return e
}

// more is a number of host slots that lets one batch be filled while others are copied.
func more(p prefetch.Plan) int { return max(4*max(p.BatchesPerCopy, 1), p.HostSlots+2) }

func (v *view) unevenProducers(share float64) Explanation {
	e := Explanation{Bottleneck: UnevenProducers, Share: share, What: v.waited(share, "producers")}
	e.Why = fmt.Sprintf("They are fast enough on average, reading %s of the time, but not evenly: half of the samples take %v or less, one in a hundred %v or more, and the longest wait was %v.",
		percent(v.engaged()), short(v.Reads.Sample.Quantile(0.5)), short(v.Reads.Sample.Quantile(0.99)), short(v.Host.Wait.Quantile(1)))
	behind := int(math.Ceil(float64(v.longestDrought()) / float64(max(v.pace(), 1))))
	e.Change = fmt.Sprintf("Set prefetch.Memory.HostSlots to %d, so that what is read in good times lasts for the bad ones.", v.Plan.HostSlots+max(behind, 2))
	return e
}

// longestDrought is about how long the loop ever lacked batches: all its waits in a row, if
// they came in a row.
func (v *view) longestDrought() time.Duration {
	return max(v.Host.Wait.Quantile(1), min(v.Host.Parts.Producers+v.Host.Parts.Order, 16*v.Host.Wait.Quantile(0.99)))
}

// copies explains time that was lost to the bus.
func (v *view) copies(share float64) Explanation {
	busy, copy, _ := v.copying()
	e := Explanation{Share: share, What: v.waited(share, "copies")}
	bytes := v.Device.Bytes / max(v.Device.Uploads, 1)
	rate := v.CopyBytesPerSecond()
	switch {
	case v.Plan.HostMemory == "pageable":
		e.Bottleneck = Pageable
		e.Why = fmt.Sprintf("Host memory is pageable: the device refused to lock it. Copies from it block the uploader, and reach %s.", rateText(rate))
		e.Change = "Have pinned memory: raise the limit for locked memory (ulimit -l) or lower prefetch.Memory.PinnedBytes."
	case v.Plan.Depth == 1:
		e.Bottleneck = NoOverlap
		e.Why = fmt.Sprintf("With one device slot a copy, of %v, begins only when compute is done with the batch before.", short(copy))
		e.Change = "Set prefetch.Options.Depth to 3."
	case busy < full && v.Plan.HostSlots <= 2*max(v.Plan.BatchesPerCopy, 1) && v.idleProducers() > 0:
		return v.fewHostSlots(share)
	case v.smallCopies(bytes, rate):
		e.Bottleneck = SmallCopies
		e.Why = fmt.Sprintf("Copies of %d bytes take %v each, %s%s: each costs some microseconds, whatever its size.", bytes, short(copy), rateText(rate), v.peakText())
		e.Change = fmt.Sprintf("Let more batches travel together: prefetch.Options.BatchesPerCopy is %d, 0 leaves it to New; or use larger batches.", v.Plan.BatchesPerCopy)
	case float64(v.Host.Padding) >= 0.15*float64(v.Host.Bytes):
		padding := float64(v.Host.Padding) / float64(v.Host.Bytes)
		e.Bottleneck = Padding
		e.Why = fmt.Sprintf("%s of what crosses the bus is padding of ragged fields; copies keep the bus busy %s of the time.", percent(padding), percent(busy))
		e.Change = "Put samples of like length into a batch (compose.ByLength, stream.ByLength), or pack them (loader.Ragged.Offsets)."
	default:
		e.Bottleneck = Bus
		e.Why = fmt.Sprintf("A copy of %d bytes takes %v, %s%s, and the bus is busy %s of the time.", bytes, short(copy), rateText(rate), v.peakText(), percent(busy))
		e.Change = "Let fewer bytes cross it: samples as uint8 or float16, made ready on the device by a prefetch.Transform."
	}
	return e
}

// wellFilled is the size of a copy from which on a bus is near its peak.
const wellFilled = 1 << 20

// smallCopies reports whether copies are slow because they are small.
func (v *view) smallCopies(bytes int64, rate float64) bool {
	if bytes >= wellFilled || bytes == 0 {
		return false
	}
	return v.PeakBytesPerSecond <= 0 || rate < 0.8*v.PeakBytesPerSecond
}

// rateText is a rate in the unit of buses, or smaller ones.
func rateText(rate float64) string {
	switch {
	case rate >= 1e9:
		return fmt.Sprintf("%.1f GB/s", rate/1e9)
	case rate >= 1e6:
		return fmt.Sprintf("%.1f MB/s", rate/1e6)
	}
	return fmt.Sprintf("%.1f kB/s", rate/1e3)
}

// several is a number of things.
func several(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// peakText says what the bus can do, if that is known.
func (v *view) peakText() string {
	if v.PeakBytesPerSecond <= 0 {
		return ""
	}
	return fmt.Sprintf(" of %s", rateText(v.PeakBytesPerSecond))
}

// transform explains time that was lost to a Transform.
func (v *view) transform(share float64) Explanation {
	return Explanation{
		Bottleneck: Transforming, Share: share, What: v.waited(share, "the transform"),
		Why:    fmt.Sprintf("It takes longer than the rest of a step: %v a step were waited for it.", short(v.perStep(v.parts.Transform+v.parts.HostSlot))),
		Change: "Make prefetch.Transform.Apply submit its work and return, do less in it, or do a part of it where samples are read.",
	}
}

// leases explains time for which the user held all slots.
func (v *view) leases(share float64) Explanation {
	return Explanation{
		Bottleneck: HeldSlots, Share: share, What: v.waited(share, "slots that the program held"),
		Why:    fmt.Sprintf("All %d slots held batches that were not released.", max(v.Plan.Depth, 1)*max(v.Plan.BatchesPerCopy, 1)),
		Change: "Release batches sooner, or set prefetch.Options.Depth (without a device Memory.HostSlots) to more than are held at a time.",
	}
}

// late is from where on goroutines wait for a processor long enough to be felt.
const late = time.Millisecond

// body explains time in which the device had nothing to do because the loop was busy.
func (v *view) body(share float64) Explanation {
	p99 := v.Scheduling.Quantile(0.99)
	e := Explanation{Share: share}
	switch {
	case 2*v.Host.SynchronizedSteps >= v.Host.Steps:
		e.Bottleneck = Synchronizing
		e.What = fmt.Sprintf("The device had nothing to do in %s of the time of %s, because the loop waits for it in each step and only then submits the next one.", percent(share), v.stepsText())
		e.Why = fmt.Sprintf("%d of %d bodies waited for their stream, %v each, and then took %v more.", v.Host.SynchronizedSteps, v.Host.Steps,
			short(v.Host.Synchronized/time.Duration(max(v.Host.SynchronizedSteps, 1))), short((v.Host.Parts.Body-v.Host.Synchronized)/time.Duration(max(v.Host.Steps, 1))))
		e.Change = "Don't call Synchronize in the loop: read losses by device/meter, which gives them some steps later without waiting."
	case p99 >= late && v.workers() >= v.Cores-1:
		e.Bottleneck = Starved
		e.What = fmt.Sprintf("The loop's body makes the pace, in %s of the time of %s, and its goroutine waits for a processor.", percent(share), v.stepsText())
		e.Why = fmt.Sprintf("One goroutine in a hundred waited %v or more for one, with %d workers that read %s of the time on %d processors.", short(p99), v.workers(), percent(min(v.engaged(), 1)), v.Cores)
		e.Change = fmt.Sprintf("Use %s (loader.Options.Workers), which leaves a processor for the loop and one for the device's driver.", several(max(1, v.Cores-2), "worker"))
		e.Gain = 1 // nobody knows how long the body would take
	default:
		e.Bottleneck = BodyBound
		e.What = fmt.Sprintf("The loop's body makes the pace, in %s of the time of %s.", percent(share), v.stepsText())
		e.Why = fmt.Sprintf("It takes %v on the host, and when it ends the device has done all that it submitted.", short(v.Host.Parts.Body/time.Duration(max(v.Host.Steps, 1))))
		e.Change = "Submit less often: capture the step as a graph (prefetch/capture), or move work on the host out of the loop."
		e.Gain = 1 // nobody knows how long the device worked meanwhile
	}
	return e
}
