package fuzz

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/loader"
)

// A pipelineProgram is the life of one or two Prefetchers on one device.
type pipelineProgram struct {
	Data    data
	Options options
	Device  machine
	Shape   shape
	Bad     []trouble // of the transform, At is the batch
	Steps   []pipelineStep
	// Twin is a second pipeline of the same Loader and Transform on the same device,
	// and runs beside the first. It has no steps if there is none.
	Twin      shape
	TwinSteps []pipelineStep
}

func (p pipelineProgram) String() string {
	head := []string{p.Data.String(), fmt.Sprintf("%+v", p.Options), p.Device.String(), p.Shape.String()}
	for _, t := range p.Bad {
		head = append(head, "transform of batch "+t.String())
	}
	text := lines(head, p.Steps)
	if len(p.TwinSteps) > 0 {
		text += "\n" + lines([]string{"beside it " + p.Twin.String()}, p.TwinSteps)
	}
	return text
}

// GoString is how rapid prints what it has drawn.
func (p pipelineProgram) GoString() string { return "\n" + p.String() }

// A machine is the device that a program runs on.
type machine struct {
	Seed           uint64
	Delay          time.Duration
	Model          bool
	ComputeEngines int
	CopyEngines    int
	Latency        time.Duration
}

func (m machine) String() string {
	if !m.Model {
		return fmt.Sprintf("device of seed %d, delays to %v", m.Seed, m.Delay)
	}
	return fmt.Sprintf("device of seed %d, delays to %v, %d compute and %d copy engines, latency %v", m.Seed, m.Delay, m.ComputeEngines, m.CopyEngines, m.Latency)
}

// A shape is what a Prefetcher is made like.
type shape struct {
	Host, Pageable                                   bool
	Depth, HostSlots, BatchesPerCopy, ComputeStreams int
	RoundRobin, Timing, Impatient                    bool   // Close waits for 3 ms alone
	Transform                                        string // "", "passes on", "goes by way of scratch", "is a chain"
}

func (s shape) String() string {
	var words []string
	word := func(is bool, w string) {
		if is {
			words = append(words, w)
		}
	}
	word(s.Host, "for the host")
	word(s.Pageable, "pageable")
	word(s.RoundRobin, "round robin")
	word(s.Timing, "timed")
	word(s.Impatient, "impatient to close")
	word(s.Transform != "", "a transform that "+s.Transform)
	return fmt.Sprintf("pipeline of depth %d, %d host slots, %d batches a copy, %d compute streams; %s",
		s.Depth, s.HostSlots, s.BatchesPerCopy, s.ComputeStreams, strings.Join(words, ", "))
}

// A pipelineStep is one thing that the consumer does.
type pipelineStep struct {
	Do     string
	Times  int           // batches, until it is left
	Skip   int           // for "epochs": after so many batches the rest is left out; -1 leaves out the first
	Leave  string        // how
	Each   []string      // what is done with the batches, in turn
	For    time.Duration // a limit, a delay
	Lazily bool          // by a context that takes its time
	Rest   bool          // the device comes to rest behind it
	Fault  *fault
	Shape  shape // for "move"
	Work   int   // workers, for "move"
	Slots  int   // results, for "map"
	AsDone bool  // for "map"
	Bad    []trouble
	Epoch  int // for "seek"
	Sample int64
}

func (s pipelineStep) String() string {
	text := s.Do
	switch s.Do {
	case "range", "all", "epochs", "pass", "read", "map":
		text += fmt.Sprintf(" %d, each %s, then %s", s.Times, strings.Join(s.Each, "/"), s.Leave)
		if s.Do == "map" {
			text += fmt.Sprintf(", %d results", s.Slots)
		}
		if s.Skip != 0 {
			text += fmt.Sprintf(", of an epoch %d", s.Skip)
		}
		if s.Do == "map" && s.AsDone {
			text += " as they are finished"
		}
		for _, t := range s.Bad {
			text += ", step of batch " + t.String()
		}
		if s.Fault != nil {
			text += ", " + s.Fault.String()
		}
	case "seek":
		text += fmt.Sprintf(" to %d of epoch %d", s.Sample, s.Epoch)
	case "move":
		text += fmt.Sprintf(" to %d workers and a %v", s.Work, s.Shape)
	}
	if s.For > 0 {
		text += fmt.Sprintf(" (%v)", s.For)
	}
	if s.Lazily {
		text += ", lazily"
	}
	if s.Rest {
		text += "; rest"
	}
	return text
}

// A fault is a call of the driver that fails.
type fault struct {
	Op     devicetest.Op
	Event  string
	Stream string
	Nth    int64
}

func (f fault) String() string {
	return fmt.Sprintf("%v %s%s fails the %d. time", f.Op, f.Event, f.Stream, f.Nth)
}

var faults = []fault{
	{Op: devicetest.CopyH2D}, {Op: devicetest.Record, Event: "copied"}, {Op: devicetest.Record, Event: "ready"},
	{Op: devicetest.Record, Event: "consumed"}, {Op: devicetest.Wait, Event: "ready"}, {Op: devicetest.Wait, Event: "consumed"},
	{Op: devicetest.SynchronizeEvent, Event: "copied"}, {Op: devicetest.EventDone, Event: "copied"},
	{Op: devicetest.Record, Event: "filled"}, {Op: devicetest.Wait, Event: "filled"}, {Op: devicetest.Record, Event: "read "},
	{Op: devicetest.Wait, Event: "read "}, {Op: devicetest.Launch}, {Op: devicetest.CopyD2D},
	{Op: devicetest.Record, Event: "written"}, {Op: devicetest.Wait, Event: "written"}, {Op: devicetest.CopyD2H},
	{Op: devicetest.Record, Event: "fetched"}, {Op: devicetest.SynchronizeEvent, Event: "fetched"},
	{Op: devicetest.Record}, {Op: devicetest.Wait}, {Op: devicetest.EventDone}, {Op: devicetest.SynchronizeEvent},
	{Op: devicetest.NewEvent}, {Op: devicetest.NewStream}, {Op: devicetest.Alloc}, {Op: devicetest.AllocHost},
	{Op: devicetest.SynchronizeStream}, {Op: devicetest.StreamDone},
}

// What is done with a batch; "hold" and what follows only where a Reader is open.
var (
	bodies = []string{"look", "look", "look", "busy", "use elsewhere", "use on a stream of its own", "use on a peer", "clone",
		"meter", "quiesce", "release early", "be refused", "nothing"}
	readerBodies = append([]string{"hold", "hold", "release beside", "release beside"}, bodies...)
)

func drawPipelineProgram(t *rapid.T) pipelineProgram {
	p := pipelineProgram{Data: drawData(t,
		[]kind{fails, panics, goexits, forgets, sleeps, ignores},
		[]kind{fails, panics, goexits, yieldsNil, yieldsOn, panicsLate, goexitsLate, failsEarly, yieldsTwice, sleeps, ignores})}
	p.Options = drawOptions(t, p.Data)
	if len(left([]kind{"substitute"})) == 0 {
		p.Options.OnError = loader.Fail
	}
	p.Options.StallTimeout = 0
	if p.Options.OnError != loader.Substitute {
		p.Options.MaxSubstituted = 0
	}
	if p.Data.Iterable && p.Options.Shard.Count <= 1 && rapid.IntRange(0, 2).Draw(t, "onePass") == 2 {
		// What goes wrong with it is reported once, of which the reference knows nothing.
		p.Data.Form, p.Data.Iterator, p.Data.Odd, p.Options.Epochs = "FromSeq", nil, 0, 1
		p.Data.Troubles = slices.DeleteFunc(p.Data.Troubles, func(t trouble) bool { return t.Kind != sleeps })
	}
	p.Device = machine{
		Seed: rapid.Uint64Range(0, 1000).Draw(t, "device"), Delay: time.Duration(rapid.IntRange(0, 200).Draw(t, "delay")) * time.Microsecond,
		Model: rapid.Bool().Draw(t, "model"), ComputeEngines: rapid.IntRange(1, 3).Draw(t, "computeEngines"),
		CopyEngines: rapid.IntRange(1, 2).Draw(t, "copyEngines"), Latency: time.Duration(rapid.IntRange(0, 300).Draw(t, "latency")) * time.Microsecond,
	}
	p.Shape = drawShape(t)
	if p.Shape.Transform != "" && enabled("bad transform") && rapid.IntRange(0, 2).Draw(t, "badTransform") == 2 {
		p.Bad = drawTroubles(t, "bad", 8, 2, left([]kind{fails, panics, goexits, ignores})...)
	}
	besides := rapid.IntRange(0, 30).Draw(t, "besides") == 30
	if besides {
		p.Data.Troubles, p.Data.Iterator = quick(p.Data.Troubles), quick(p.Data.Iterator)
		p.Bad = quick(p.Bad)
	}
	twin := p.Data.Form != "FromSeq" && rapid.IntRange(0, 4).Draw(t, "twin") == 4
	p.Steps = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) pipelineStep { return drawPipelineStep(t, p, !twin, besides) }), 1, 10).Draw(t, "steps")
	if twin {
		p.Twin = drawShape(t)
		p.TwinSteps = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) pipelineStep { return drawPipelineStep(t, p, false, besides) }), 1, 6).Draw(t, "twinSteps")
	}
	return p
}

func drawShape(t *rapid.T) shape {
	return shape{
		Host: rapid.IntRange(0, 4).Draw(t, "host") == 4, Pageable: rapid.IntRange(0, 9).Draw(t, "pageable") == 9,
		Depth: rapid.IntRange(1, 4).Draw(t, "depth"), HostSlots: rapid.IntRange(1, 5).Draw(t, "hostSlots"),
		BatchesPerCopy: rapid.IntRange(1, 4).Draw(t, "batchesPerCopy"), ComputeStreams: rapid.IntRange(1, 3).Draw(t, "computeStreams"),
		RoundRobin: rapid.Bool().Draw(t, "roundRobin"), Timing: rapid.IntRange(0, 3).Draw(t, "timing") == 3,
		Impatient: rapid.IntRange(0, 3).Draw(t, "impatient") == 3,
		Transform: rapid.SampledFrom([]string{"", "", "passes on", "goes by way of scratch", "is a chain"}).Draw(t, "transform"),
	}
}

// pipelineSteps are weighted by how often they are named.
var pipelineSteps = []string{"range", "range", "range", "all", "all", "all", "epochs", "epochs", "pass", "start", "start", "read", "read", "read", "read", "read", "map", "map", "map", "map",
	"seek", "seek", "restore", "move", "quiesce", "release", "sleep", "stats beside", "stats beside", "close"}

func drawPipelineStep(t *rapid.T, p pipelineProgram, faulty, besides bool) pipelineStep {
	s := pipelineStep{
		Do:  rapid.SampledFrom(left(pipelineSteps)).Draw(t, "do"),
		For: time.Duration(rapid.SampledFrom([]int{0, 0, 1, 10, 300, 5000, 100_000}).Draw(t, "for")) * time.Microsecond,
	}
	s.Lazily = rapid.IntRange(0, 3).Draw(t, "lazily") == 3
	s.Rest = rapid.Bool().Draw(t, "rest")
	if p.Options.MaxSubstituted > 0 && slices.Contains([]string{"seek", "restore", "move"}, s.Do) {
		s.Do = "sleep" // the number of substitutes at another place is not the reference's to know
	}
	if s.Do == "close" && besides {
		s.Do = "close beside"
	}
	if p.Data.Form == "FromSeq" && slices.Contains([]string{"seek", "move", "pass"}, s.Do) {
		s.Do = "restore" // it stands where it stands
	}
	switch s.Do {
	case "range", "all", "epochs", "pass", "read", "map":
		s.Times = rapid.IntRange(1, 30).Draw(t, "times")
		s.Leave = rapid.SampledFrom(left([]string{"break", "break", "cancel", "panic", "goexit"})).Draw(t, "leave")
		each := bodies
		if s.Do == "read" {
			each = readerBodies
		}
		s.Each = rapid.SliceOfN(rapid.SampledFrom(left(each)), 1, 4).Draw(t, "each")
		if faulty && rapid.IntRange(0, 4).Draw(t, "faulty") == 4 {
			f := rapid.SampledFrom(faults).Draw(t, "fault")
			f.Nth = int64(rapid.IntRange(1, 20).Draw(t, "nth"))
			s.Fault = &f
		}
	case "seek":
		s.Epoch = rapid.IntRange(0, 2).Draw(t, "epoch")
		s.Sample = int64(rapid.IntRange(0, p.Data.Samples).Draw(t, "sample"))
	case "move":
		s.Shape = drawShape(t)
		s.Work = rapid.IntRange(1, 5).Draw(t, "workers")
	}
	if s.Do == "epochs" && p.Data.Form != "FromSeq" {
		s.Skip = rapid.SampledFrom([]int{0, 0, 1, 3, -1}).Draw(t, "skip")
	}
	if s.Do == "map" {
		s.Slots = rapid.IntRange(0, 4).Draw(t, "slots")
		s.AsDone = rapid.Bool().Draw(t, "asDone")
		if rapid.IntRange(0, 5).Draw(t, "badStep") == 5 {
			s.Bad = drawTroubles(t, "bad", 8, 1, left([]kind{fails, panics, goexits, ignores})...)
		}
		if besides {
			s.Bad = quick(s.Bad)
		}
	}
	return s
}

// once reports whether it can be told what is read ahead and given up: not where a call
// fails at any time, where others are read in a sample's place, and of two pipelines that
// read the same.
func (p pipelineProgram) once() bool {
	ignores := slices.ContainsFunc(append(append(slices.Clone(p.Data.Troubles), p.Data.Iterator...), p.Bad...), func(t trouble) bool { return t.Kind == ignores })
	faulty := slices.ContainsFunc(p.Steps, func(s pipelineStep) bool { return s.Fault != nil })
	return !ignores && !faulty && p.Options.OnError == loader.Fail && len(p.TwinSteps) == 0 && !p.real()
}

// quick are those that take no time.
func quick(all []trouble) []trouble {
	return slices.DeleteFunc(slices.Clone(all), func(t trouble) bool { return !t.breaks() })
}
