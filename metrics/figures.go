package metrics

import (
	"time"

	"github.com/leat-go/leat/observe"
	"github.com/leat-go/leat/observe/journal"
)

// A Figure is what is collected of a pipeline under one name.
type Figure struct {
	// Name is in words with underscores, without Unit.
	Name string
	// Unit is "seconds", "bytes", or empty for numbers of things.
	Unit string
	// Help says what it is, as a phrase.
	Help string
	// Counter says that it only grows.
	Counter bool
	// Label is what its values are told apart by, empty if there is one.
	Label  string
	Values []Value
}

// A Value is one number.
type Value struct {
	// Label is empty where Figure.Label is.
	Label  string
	Number float64
}

// A Duration is how long something took, each time.
type Duration struct {
	Name, Help string
	Histogram  *observe.Histogram
}

// Of are a pipeline's figures, the same ones in the same order for all pipelines.
func Of(s *observe.Snapshot) []Figure {
	st, plan := &s.Stats, &s.Plan
	var busy time.Duration
	for _, b := range st.Loader.Busy {
		busy += b
	}
	workers := st.Loader.Workers
	if workers == 0 {
		workers = plan.Workers
	}
	return []Figure{
		counter("batches", "", "Batches delivered.", float64(st.Batches)),
		counter("samples", "", "Samples delivered, padding not counted.", float64(st.Samples)),
		counter("transferred", "bytes", "Bytes uploaded, or without a device delivered.", float64(st.Bytes)),
		counter("uploads", "", "Uploads, each of one or several batches.", float64(st.Uploads)),
		counter("substituted_samples", "", "Samples that stand in for others, which could not be read.", float64(st.Loader.Substituted)),
		counter("skipped_samples", "", "Samples that were left out.", float64(st.Loader.Skipped)),
		counter("read", "seconds", "Time that all workers together spent in reading samples.", busy.Seconds()),
		parts("loop", "Where the time of the loop that takes batches went; body is its own work, the rest are waits.", hostParts(s)),
		parts("device", "Where the time of the compute stream went, of uploads that were timed; device is its work, the rest are waits.", s.Device.Parts),
		counter("copy", "seconds", "Time that copies to the device took, of those that were timed.", s.Device.Copying.Seconds()),
		counter("copy_compared", "seconds", "The part of it of which it is known whether the compute stream worked meanwhile.", s.Device.Compared.Seconds()),
		counter("copy_waits", "seconds", "The part of that during which the compute stream stood still.", s.Device.Waiting.Seconds()),
		counter("copied", "bytes", "Bytes of the copies that were timed.", float64(s.Device.Bytes)),
		gauge("workers", "", "Goroutines that may read samples now.", float64(workers)),
		gauge("leases", "", "Batches that are not released.", float64(st.Leases)),
		gauge("host_slots", "", "Batches that have room in host memory.", float64(plan.HostSlots)),
		gauge("host_slots_free", "", "Of these, the free ones.", float64(st.Pool.Free)),
		gauge("device_slots", "", "Slots in device memory.", float64(plan.Depth)),
		gauge("device_slots_free", "", "Of these, those that wait for an upload.", float64(st.Free)),
		gauge("host_memory", "bytes", "Memory of the host slots.", float64(plan.HostBytes)),
		gauge("device_memory", "bytes", "Memory of the device slots.", float64(plan.DeviceBytes)),
	}
}

// Durations are a pipeline's histograms, likewise. They are empty without an
// observe.Recorder.
func Durations(s *observe.Snapshot) []Duration {
	return []Duration{
		{"step_duration", "How long each step took, in Next and in the loop's body.", &s.Host.Step},
		{"wait_duration", "How long each call of Next waited.", &s.Host.Wait},
		{"sample_duration", "How long samples took to read.", &s.Reads.Sample},
		{"copy_duration", "How long copies to the device took, of those that were timed.", &s.Device.Copy},
	}
}

func counter(name, unit, help string, v float64) Figure {
	return Figure{Name: name, Unit: unit, Help: help, Counter: true, Values: []Value{{Number: v}}}
}

func gauge(name, unit, help string, v float64) Figure {
	return Figure{Name: name, Unit: unit, Help: help, Values: []Value{{Number: v}}}
}

func parts(name, help string, p journal.Parts) Figure {
	f := Figure{Name: name, Unit: "seconds", Help: help, Counter: true, Label: "part"}
	for _, c := range journal.Causes {
		f.Values = append(f.Values, Value{string(c), p.Of(c).Seconds()})
	}
	return f
}

// hostParts are the parts of the loop's time, from prefetch.Stats where nothing is recorded.
func hostParts(s *observe.Snapshot) journal.Parts {
	if _, ok := s.Plan.Options.Recorder.(*observe.Recorder); ok {
		return s.Host.Parts
	}
	st := &s.Stats
	p := journal.Parts{Producers: st.WaitProducer, Order: st.WaitOrder, Device: st.WaitDevice, Leases: st.WaitRelease, Body: st.Body}
	if st.Device == "" { // it is a Transform's time then
		p.Transform, p.Device = p.Device, 0
	}
	return p
}
