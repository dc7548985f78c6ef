package fuzz

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/leat-go/leat/loader"
)

// A loaderProgram is a life of a loader's Runs.
type loaderProgram struct {
	Data     data
	Options  options
	Slots    int
	GetsFail int // the number of the call of Memory.Get that fails, 0 for none
	Start    int64
	StartAt  int // epoch
	Steps    []loaderStep
}

func (p loaderProgram) String() string {
	return lines([]string{
		p.Data.String(),
		fmt.Sprintf("%+v", p.Options),
		fmt.Sprintf("%d slots, Get %d fails, from sample %d of epoch %d", p.Slots, p.GetsFail, p.Start, p.StartAt),
	}, p.Steps)
}

// A loaderStep is one thing that the consumer does, or has done by somebody else.
type loaderStep struct {
	Do      string
	Times   int           // batches, for "take"
	For     time.Duration // a limit of each, or a delay; 0 is none
	Lazily  bool          // by a context that takes its time
	Options options       // for "restart": another machine
	Slots   int
}

func (s loaderStep) String() string {
	switch s.Do {
	case "take":
		return fmt.Sprintf("take %d, each within %v, lazily: %v", s.Times, s.For, s.Lazily)
	case "restart":
		return fmt.Sprintf("restart with batch size %d, %+v, %d workers, %d slots", s.Options.BatchSize, s.Options.Shard, s.Options.Workers, s.Slots)
	}
	return fmt.Sprintf("%s (%v)", s.Do, s.For)
}

// loaderSteps are weighted by how often they are named.
var loaderSteps = []string{
	"take", "take", "take", "take", "hold", "give", "sleep", "state", "stats beside",
	"restart", "restart", "cancel", "close", "close beside", "cancel beside", "take nothing",
}

func drawLoaderProgram(t *rapid.T) loaderProgram {
	p := loaderProgram{
		Data: drawData(t,
			[]kind{fails, fails, panics, goexits, forgets, sleeps, ignores},
			[]kind{fails, panics, goexits, yieldsNil, yieldsOn, panicsLate, goexitsLate, failsEarly, yieldsTwice, sleeps, ignores}),
		Slots: rapid.IntRange(1, 6).Draw(t, "slots"),
	}
	p.Options = drawOptions(t, p.Data)
	if rapid.IntRange(0, 9).Draw(t, "memory") == 9 {
		p.GetsFail = rapid.IntRange(1, 30).Draw(t, "getsFail")
	}
	if rapid.Bool().Draw(t, "midway") {
		p.Start = int64(rapid.IntRange(0, p.Data.Samples).Draw(t, "start"))
		p.StartAt = rapid.IntRange(0, 2).Draw(t, "startAt")
	}
	delays := rapid.Map(rapid.SampledFrom([]int{0, 0, 1, 5, 50, 500, 5000}), func(ms int) time.Duration { return time.Duration(ms) * time.Millisecond })
	p.Steps = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) loaderStep {
		s := loaderStep{Do: rapid.SampledFrom(loaderSteps).Draw(t, "do"), For: delays.Draw(t, "for")}
		s.Lazily = rapid.Bool().Draw(t, "lazily")
		switch s.Do {
		case "take":
			s.Times = rapid.IntRange(1, 20).Draw(t, "times")
		case "restart":
			s.Options, s.Slots = p.Options, rapid.IntRange(1, 6).Draw(t, "slots")
			s.Options.Workers = rapid.IntRange(1, 5).Draw(t, "workers")
			if rapid.Bool().Draw(t, "resize") {
				s.Options.BatchSize = rapid.SampledFrom([]int{1, 2, 3, 5, 8, 13}).Draw(t, "batch")
				drawShard(t, &s.Options)
			}
		}
		return s
	}), 1, 14).Draw(t, "steps")
	return p
}

// options are all that a Loader is made of but its data.
type options struct {
	BatchSize int
	loader.Options
}

// global is how many samples a step of all ranks takes at most.
func (o options) global() int64 {
	size := o.BatchSize
	for _, s := range o.BatchSizes {
		size = max(size, s.BatchSize)
	}
	return int64(size * max(1, o.Shard.Count))
}

// drawOptions are options that a loader of d accepts, if it has enough samples.
func drawOptions(t *rapid.T, d data) options {
	o := options{BatchSize: rapid.SampledFrom([]int{1, 2, 3, 5, 8, 13}).Draw(t, "batch")}
	o.Options = loader.Options{
		Seed:        rapid.SampledFrom([]uint64{0, 1, 1 << 63}).Draw(t, "seed"),
		Epochs:      rapid.IntRange(0, 3).Draw(t, "epochs"),
		Workers:     rapid.IntRange(1, 5).Draw(t, "workers"),
		GracePeriod: rapid.SampledFrom([]time.Duration{0, 20 * time.Millisecond, time.Second}).Draw(t, "grace"),
	}
	if rapid.IntRange(0, 3).Draw(t, "stall") == 3 {
		o.StallTimeout = 50 * time.Millisecond
	}
	if d.Iterable {
		o.Last = rapid.SampledFrom([]loader.LastPolicy{loader.Keep, loader.Drop, loader.Exact}).Draw(t, "last")
	} else {
		o.Last = rapid.SampledFrom([]loader.LastPolicy{loader.Keep, loader.Drop, loader.Pad, loader.Exact}).Draw(t, "last")
		o.Shuffle = rapid.Bool().Draw(t, "shuffle")
		if rapid.Bool().Draw(t, "substitute") {
			o.OnError = loader.Substitute
			o.MaxSubstituted = rapid.IntRange(0, 3).Draw(t, "limit")
		}
		for at := int64(0); len(o.BatchSizes) < 4 && rapid.IntRange(0, 2).Draw(t, "schedule") == 0; {
			at += int64(rapid.IntRange(1, 60).Draw(t, "sample"))
			size := rapid.SampledFrom([]int{1, 2, 3, 5, 8, 13}).Draw(t, "size")
			o.BatchSizes = append(o.BatchSizes, loader.SizeFrom{Sample: at, BatchSize: size})
		}
		if o.Last != loader.Pad && d.Samples > 4 && rapid.IntRange(0, 2).Draw(t, "exclude") == 0 {
			samples := rapid.SliceOfN(rapid.IntRange(0, d.Samples-1), 1, 3).Draw(t, "excluded")
			o.Exclude = []loader.Exclusion{{Samples: samples}}
		}
		if rapid.IntRange(0, 3).Draw(t, "readTimeout") == 0 {
			o.ReadTimeout = time.Hour // longer than any trouble takes: nothing changes
		}
	}
	drawShard(t, &o)
	return o
}

func drawShard(t *rapid.T, o *options) {
	o.Shard = loader.Shard{}
	if o.Last != loader.Keep {
		o.Shard.Count = rapid.IntRange(1, 3).Draw(t, "ranks")
		o.Shard.Index = rapid.IntRange(0, o.Shard.Count-1).Draw(t, "rank")
	}
}

// GoString is how rapid prints what it has drawn.
func (p loaderProgram) GoString() string { return "\n" + p.String() }
