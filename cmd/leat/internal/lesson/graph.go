package lesson

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/rig"
	"github.com/leat-go/leat/cmd/leat/internal/timeline"
	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
)

// GraphOptions are the card and the step of the lesson on graphs. The zero value is the
// lesson as it is usually given.
type GraphOptions struct {
	// Kernels is how many a step has, 0 means 4; Steps how many there are, 0 means 2.
	Kernels, Steps int
	// Work is how long a kernel computes, Launch what the card takes to begin one that is
	// launched, Replay what it takes to begin a graph, and Node to begin a kernel in it. All
	// at zero mean 3, 5, 6 and 1 µs.
	Work, Launch, Replay, Node time.Duration
}

// Validate reports every mistake at once.
func (o GraphOptions) Validate() error {
	var errs []error
	for _, f := range []struct {
		name string
		time time.Duration
	}{{"Work", o.Work}, {"Launch", o.Launch}, {"Replay", o.Replay}, {"Node", o.Node}} {
		if f.time < 0 || f.time > maxTime {
			errs = append(errs, fmt.Errorf("%s is %v, want 0 to %v", f.name, f.time, maxTime))
		}
	}
	for _, f := range []struct {
		name  string
		count int
	}{{"Kernels", o.Kernels}, {"Steps", o.Steps}} {
		if f.count < 0 || f.count > maxBatches {
			errs = append(errs, fmt.Errorf("%s is %d, want 1 to %d", f.name, f.count, maxBatches))
		}
	}
	return errors.Join(errs...)
}

func (o GraphOptions) withDefaults() GraphOptions {
	if o.Kernels == 0 {
		o.Kernels = 4
	}
	if o.Steps == 0 {
		o.Steps = 2
	}
	if o.Work+o.Launch+o.Replay+o.Node == 0 {
		o.Work, o.Launch, o.Replay, o.Node = 3*time.Microsecond, 5*time.Microsecond, 6*time.Microsecond, time.Microsecond
	}
	return o
}

// A GraphLesson is the same steps, launched kernel by kernel and replayed.
type GraphLesson struct {
	Options            GraphOptions // those in force
	Launched, Replayed Schedule
}

// The rows of the drawing: what the card does for a kernel before it, and the kernel.
const (
	beginning = "begin"
	computing = "compute"
)

// GiveGraph runs the lesson, as Give does its own.
func GiveGraph(ctx context.Context, o GraphOptions) (l GraphLesson, err error) {
	if err := o.Validate(); err != nil {
		return l, fmt.Errorf("lesson: %w", err)
	}
	l.Options = o.withDefaults()
	for to, replayed := range map[*Schedule]bool{&l.Launched: false, &l.Replayed: true} {
		if *to, err = l.Options.run(ctx, replayed); err != nil {
			return l, fmt.Errorf("lesson: %w", err)
		}
	}
	return l, nil
}

// run runs the steps on a card of its own.
func (o GraphOptions) run(ctx context.Context, replayed bool) (s Schedule, err error) {
	p := newPace(time.Duration(o.Steps)*o.launched(), o.Work, o.Launch, o.Replay, o.Node)
	var mu sync.Mutex
	var spans []cpu.Span
	dev, err := cpu.Open(cpu.Options{
		Model: &cpu.Model{
			KernelLatency: p.model(o.Launch), GraphLatency: p.model(o.Replay), NodeLatency: p.model(o.Node),
			KernelTime: func(*device.Launch) time.Duration { return p.model(o.Work) },
		},
		Trace: func(s cpu.Span) {
			mu.Lock()
			defer mu.Unlock()
			spans = append(spans, s)
		},
	})
	if err != nil {
		return s, err
	}
	r := rig.New(dev)
	submit, err := o.step(r, replayed)
	if err == nil {
		err = ahead(ctx, r, r.Stream("steps"), o.Steps, submit)
	}
	err = errors.Join(err, r.Close(), dev.Close())
	if err != nil {
		return s, err
	}
	slices.SortFunc(spans, func(a, b cpu.Span) int { return cmp.Compare(a.Start, b.Start) })
	return o.schedule(spans, p), nil
}

// launched is the time of a step whose kernels are launched.
func (o GraphOptions) launched() time.Duration { return time.Duration(o.Kernels) * (o.Launch + o.Work) }

// replayed is the time of one that is replayed.
func (o GraphOptions) replayed() time.Duration {
	return o.Replay + time.Duration(o.Kernels)*(o.Node+o.Work)
}

var short = &device.Kernel{Name: "short", Go: func(*device.Args) {}}

// step is what submits a step.
func (o GraphOptions) step(r *rig.Rig, replayed bool) (submit func(*device.Stream) error, err error) {
	launches := func(s *device.Stream) error {
		for range o.Kernels {
			if err := s.Launch(&device.Launch{Kernel: short, Grid: [3]uint32{1}, Block: [3]uint32{1}}); err != nil {
				return err
			}
		}
		return nil
	}
	if !replayed {
		return launches, nil
	}
	s := r.Stream("captured")
	if r.Err() != nil {
		return nil, r.Err()
	}
	g, err := s.Capture(func() error { return launches(s) })
	if err != nil {
		return nil, err
	}
	r.Owns(g.Close)
	x, err := g.Instantiate()
	if err != nil {
		return nil, err
	}
	r.Owns(x.Close)
	return x.Launch, nil
}

// ahead submits n steps, of which the card begins the first when all are submitted.
func ahead(ctx context.Context, r *rig.Rig, s *device.Stream, n int, step func(*device.Stream) error) error {
	if r.Err() != nil {
		return r.Err()
	}
	submitted := make(chan struct{})
	err := s.HostFunc(func() { <-submitted })
	for range n {
		err = errors.Join(err, step(s))
	}
	close(submitted)
	return errors.Join(err, s.Synchronize(ctx))
}

// schedule tells what begins a kernel and the kernel itself apart: the last part of a
// kernel's span is its work.
func (o GraphOptions) schedule(spans []cpu.Span, p pace) Schedule {
	s := Schedule{Batches: o.Steps, Waits: 1}
	kernels, from := 0, time.Duration(-1)
	for _, span := range spans {
		if span.Engine == "host" {
			continue
		}
		if from < 0 {
			from = span.Start
		}
		start, end := p.card(span.Start-from), p.card(span.End-from)
		step := kernels / o.Kernels
		if span.Op != "Launch" {
			s.Spans = append(s.Spans, Span{step, beginning, start, end})
			continue
		}
		kernels++
		if work := end - o.Work; work > start {
			s.Spans = append(s.Spans, Span{step, beginning, start, work})
		}
		s.Spans = append(s.Spans, Span{step, computing, end - o.Work, end})
	}
	return s
}

// String is the lesson for a terminal of 90 columns.
func (l GraphLesson) String() string {
	var b strings.Builder
	o := l.Options
	fmt.Fprintf(&b, "A modelled card: a step has %s of %v. To begin a kernel that is launched takes the card %v,\nto begin a graph %v, and a kernel in it %v.\n",
		count(o.Kernels, "kernel", "kernels"), o.Work, o.Launch, o.Replay, o.Node)
	b.WriteString("Digits are steps, the last digit of their numbers; a dot is a bubble.\n")
	column := timeline.Column(max(l.Launched.Total(), l.Replayed.Total()), columns)
	fmt.Fprintf(&b, "\n%s, one column is %v\n", count(o.Steps, "step", "steps"), column)
	ways := []struct {
		name, how string
		Schedule
		expected time.Duration
	}{
		{"launched", "the host launches every kernel", l.Launched, o.launched()},
		{"replayed", "the host launches the step as one graph", l.Replayed, o.replayed()},
	}
	for _, w := range ways {
		fmt.Fprintf(&b, "\n  %s: %s\n", w.name, w.how)
		w.draw(&b, []string{beginning, computing}, column)
	}
	fmt.Fprintf(&b, "\n  %-12s %8s %9s %9s %8s  bubble: %7s\n", "", "total", "expected", "speed-up", "step", computing)
	for _, w := range ways {
		fmt.Fprintf(&b, "  %-12s %8v %9v %9s %8v          %6.1f%%\n", w.name, w.Total(), time.Duration(o.Steps)*w.expected,
			times(l.Launched.Total(), w.Total()), w.Cycle(), 100*w.Bubble(computing))
	}
	return b.String() + "\n" + l.Verdict() + "\n"
}

// Verdict says whether a graph is worth it, and for which kernels it would hardly be.
func (l GraphLesson) Verdict() string {
	o := l.Options
	before, after := l.Launched.Cycle(), l.Replayed.Cycle()
	if float64(before) < worth*float64(after) {
		return fmt.Sprintf("Replaying is hardly worth it: a step every %v instead of every %v. Its kernels are long enough to hide what it takes to launch them.", after, before)
	}
	words := fmt.Sprintf("Replaying is worth it: a step every %v instead of every %v, %s as fast.", after, before, times(before, after))
	// A step of kernels of w takes n(launch+w) or replay+n(node+w): the ratio is worth where w
	// is below this.
	n := float64(o.Kernels)
	saved := n*float64(o.Launch) - worth*(float64(o.Replay)+n*float64(o.Node))
	limit := time.Duration(saved / (n * (worth - 1)))
	return words + fmt.Sprintf("\nWith kernels longer than %v it would hardly be.", limit.Round(time.Microsecond))
}
