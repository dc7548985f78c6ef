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

// DevicesOptions are the cards and the batches of the lesson on unequal devices. The zero
// value is the lesson as it is usually given.
type DevicesOptions struct {
	// H2D is how long a batch takes to copy in, and Compute how long each card computes it.
	// nil means 5 ms, and 20 and 40 ms.
	H2D     time.Duration
	Compute []time.Duration
	// Batches is how many there are. 0 means 12.
	Batches int
}

// mostCards keeps the rows of a drawing on a screen.
const mostCards = 8

// Validate reports every mistake at once.
func (o DevicesOptions) Validate() error {
	var errs []error
	if o.H2D < 0 || o.H2D > maxTime {
		errs = append(errs, fmt.Errorf("H2D is %v, want 0 to %v", o.H2D, maxTime))
	}
	for i, d := range o.Compute {
		if d <= 0 || d > maxTime {
			errs = append(errs, fmt.Errorf("Compute[%d] is %v, want more than 0, to %v", i, d, maxTime))
		}
	}
	if len(o.Compute) > mostCards {
		errs = append(errs, fmt.Errorf("Compute has %d cards, want 1 to %d", len(o.Compute), mostCards))
	}
	if o.Batches < 0 || o.Batches > maxBatches {
		errs = append(errs, fmt.Errorf("Batches is %d, want 1 to %d", o.Batches, maxBatches))
	}
	return errors.Join(errs...)
}

func (o DevicesOptions) withDefaults() DevicesOptions {
	if o.Compute == nil {
		o.Compute = []time.Duration{20 * time.Millisecond, 40 * time.Millisecond}
		if o.H2D == 0 {
			o.H2D = 5 * time.Millisecond
		}
	}
	if o.Batches == 0 {
		o.Batches = 12
	}
	return o
}

// A DevicesLesson is the same batches, as many for every card and by speed.
type DevicesLesson struct {
	Options         DevicesOptions // those in force
	InTurn, BySpeed Schedule
}

// GiveDevices runs the lesson, as Give does its own.
func GiveDevices(ctx context.Context, o DevicesOptions) (l DevicesLesson, err error) {
	if err := o.Validate(); err != nil {
		return l, fmt.Errorf("lesson: %w", err)
	}
	l.Options = o.withDefaults()
	if l.InTurn, err = l.Options.run(ctx, l.Options.inTurn()); err == nil {
		l.BySpeed, err = l.Options.run(ctx, l.Options.bySpeed())
	}
	if err != nil {
		return l, fmt.Errorf("lesson: %w", err)
	}
	return l, nil
}

// inTurn are the batches of each card, as many for every one.
func (o DevicesOptions) inTurn() [][]int {
	dealt := make([][]int, len(o.Compute))
	for batch := range o.Batches {
		card := batch % len(dealt)
		dealt[card] = append(dealt[card], batch)
	}
	return dealt
}

// bySpeed gives each batch to the card that will have computed it first.
func (o DevicesOptions) bySpeed() [][]int {
	dealt := make([][]int, len(o.Compute))
	done := make([]time.Duration, len(o.Compute))
	for batch := range o.Batches {
		card := 0
		for i := range done {
			if done[i]+o.Compute[i] < done[card]+o.Compute[card] {
				card = i
			}
		}
		done[card] += o.Compute[card]
		dealt[card] = append(dealt[card], batch)
	}
	return dealt
}

// run runs the batches on cards of their own.
func (o DevicesOptions) run(ctx context.Context, dealt [][]int) (s Schedule, err error) {
	p := newPace(time.Duration(o.Batches)*slices.Max(o.Compute), append([]time.Duration{o.H2D}, o.Compute...)...)
	s = Schedule{Batches: o.Batches}
	var cards []*worker
	defer func() {
		for _, c := range cards {
			err = errors.Join(err, c.Close(), c.Device().Close())
		}
	}()
	submitted := make(chan struct{})
	for i := range o.Compute {
		c, failed := newWorker(o, p, i)
		if c != nil {
			cards = append(cards, c)
			failed = errors.Join(failed, c.submit(dealt[i], submitted))
		}
		err = errors.Join(err, failed)
	}
	close(submitted)
	for _, c := range cards {
		err = errors.Join(err, c.Device().Synchronize(ctx))
	}
	if err != nil {
		return s, err
	}
	for _, c := range cards {
		s.Spans = append(s.Spans, c.drawn(p)...)
	}
	slices.SortStableFunc(s.Spans, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	return s, nil
}

// A worker is a card of the lesson: one batch is computed while the next is copied in.
type worker struct {
	*rig.Rig
	number  int
	compute time.Duration
	lanes   [2]struct {
		stream *device.Stream
		memory device.View
		in     []byte
	}
	batches []int // in the order of their submission

	mu    sync.Mutex
	spans []cpu.Span // finished, in no certain order
}

// newWorker opens a card. It is to be closed even if there is an error; nil needs not.
func newWorker(o DevicesOptions, p pace, number int) (*worker, error) {
	c := &worker{number: number, compute: p.model(o.Compute[number])}
	dev, err := cpu.Open(cpu.Options{Index: number, Model: &cpu.Model{H2D: cpu.Link{Latency: p.model(o.H2D)}}, Trace: c.trace})
	if err != nil {
		return nil, err
	}
	c.Rig = rig.New(dev)
	for i := range c.lanes {
		l := &c.lanes[i]
		l.stream, l.memory, l.in = c.Stream(streamName(i)), c.Alloc(batchBytes), c.AllocHost(batchBytes, device.HostOptions{})
	}
	return c, c.Err()
}

func (c *worker) trace(s cpu.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spans = append(c.spans, s)
}

// submit submits batches, to two streams in turn, of which the first begins when all cards'
// are submitted.
func (c *worker) submit(batches []int, submitted <-chan struct{}) error {
	c.batches = batches
	gate, begin := c.Stream("gate"), c.Event("begin")
	if c.Err() != nil {
		return c.Err()
	}
	err := errors.Join(gate.HostFunc(func() { <-submitted }), gate.Record(begin))
	for _, l := range c.lanes {
		err = errors.Join(err, l.stream.Wait(begin))
	}
	for i := range batches {
		l := &c.lanes[i%len(c.lanes)]
		err = errors.Join(err, l.stream.CopyH2D(l.memory, l.in), l.stream.Launch(cpu.Busy(c.compute)))
	}
	return err
}

// drawn are the spans in the card's own time, which begins with its first batch. Copies are
// done in the order of the batches, and so are kernels.
func (c *worker) drawn(p pace) (spans []Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortFunc(c.spans, func(a, b cpu.Span) int { return cmp.Compare(a.Start, b.Start) })
	first, seen := time.Duration(-1), make(map[string]int)
	for _, s := range c.spans {
		if s.Engine == "host" {
			continue // the gate's
		}
		if first < 0 {
			first = s.Start
		}
		spans = append(spans, Span{c.batches[seen[s.Op]], row(c.number, s.Engine), p.card(s.Start - first), p.card(s.End - first)})
		seen[s.Op]++
	}
	return spans
}

// row is the engine's name in the drawing.
func row(card int, engine string) string { return fmt.Sprintf("card %d %s", card, engine) }

// rows are the names of all engines.
func (o DevicesOptions) rows() (rows []string) {
	for i := range o.Compute {
		rows = append(rows, row(i, "H2D"), row(i, computing))
	}
	return rows
}

// String is the lesson for a terminal of 90 columns.
func (l DevicesLesson) String() string {
	var b strings.Builder
	o := l.Options
	fmt.Fprintf(&b, "%s: a batch takes %v to copy in (H2D), and to compute", count(len(o.Compute), "modelled card", "modelled cards"), o.H2D)
	for i, d := range o.Compute {
		fmt.Fprintf(&b, "%s %v on card %d", map[bool]string{true: ",", false: ""}[i > 0], d, i)
	}
	b.WriteString(".\nEach copies its next batch in while it computes one.\n")
	b.WriteString("Digits are batches, the last digit of their numbers; a dot is a bubble: an idle engine.\n")
	column := timeline.Column(max(l.InTurn.Total(), l.BySpeed.Total()), columns)
	fmt.Fprintf(&b, "\n%s, one column is %v\n", count(o.Batches, "batch", "batches"), column)
	ways := []struct {
		name, how string
		Schedule
	}{{"in turn", "every card gets as many batches", l.InTurn}, {"by speed", "a batch goes to the card that will have done it first", l.BySpeed}}
	for _, w := range ways {
		fmt.Fprintf(&b, "\n  %s: %s\n", w.name, w.how)
		w.draw(&b, o.rows(), column)
	}
	fmt.Fprintf(&b, "\n  %-12s %8s %9s  batches, bubble:", "", "total", "speed-up")
	for i := range o.Compute {
		fmt.Fprintf(&b, " %12s", fmt.Sprintf("card %d", i))
	}
	b.WriteString("\n")
	for _, w := range ways {
		fmt.Fprintf(&b, "  %-12s %8v %9s                  ", w.name, w.Total(), times(l.InTurn.Total(), w.Total()))
		for i := range o.Compute {
			fmt.Fprintf(&b, " %12s", fmt.Sprintf("%d, %.1f%%", w.did(row(i, computing)), 100*w.Bubble(row(i, computing))))
		}
		b.WriteString("\n")
	}
	return b.String() + "\n" + l.Verdict() + "\n"
}

// did is how many batches an engine worked on.
func (s Schedule) did(engine string) (n int) {
	for _, span := range s.Spans {
		if span.Engine == engine {
			n++
		}
	}
	return n
}

// Verdict says what it brings to deal by speed, and the best that there could be.
func (l DevicesLesson) Verdict() string {
	rate := 0.0 // batches a nanosecond
	for _, d := range l.Options.Compute {
		rate += 1 / float64(d)
	}
	best := time.Duration(float64(l.Options.Batches) / rate).Round(time.Microsecond)
	before, after := l.InTurn.Total(), l.BySpeed.Total()
	if float64(before) < worth*float64(after) {
		return fmt.Sprintf("The cards are nearly equal: %v instead of %v. All of them together could not be done before %v.", after, before, best)
	}
	return fmt.Sprintf("Dealing by speed is worth it: %v instead of %v, %s as fast, since the slowest\ncard no longer has as much to do as the others. All of them together could not be done before %v.",
		after, before, times(before, after), best)
}
