package capture

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/hold"
	"github.com/leat-go/leat/prefetch"
)

// A Step is a step that is captured and replayed; see the package's comment. P is what
// changes from step to step: a struct of numbers of stated sizes, or struct{} if nothing
// does.
//
// One goroutine at a time calls Run; Report and Close may be called from any. A program
// that works on batches in several goroutines makes a Step for each, also on one
// Prefetcher.
type Step[P any] struct{ step *step }

// New makes a Step of body, for batches of pf. body submits the work of one step to s,
// which belongs to the batch's device, and waits for nothing. params is a P in device
// memory, which kernels read and nobody writes. body's contract, and when it runs, is in
// the package's comment. Its error is Run's, as it is.
//
// The caller owns the Step until Close, which comes before that of pf, of streams and of
// memory that body uses. If pf is closed first, it closes the Step.
func New[P any](pf *prefetch.Prefetcher, body func(s *device.Stream, b Batch, params device.View) error, o Options) (*Step[P], error) {
	t := reflect.TypeFor[P]()
	s, err := newStep(pf, body, int64(t.Size()), errors.Join(o.validate(), numbers(t)), o)
	if err != nil {
		return nil, fmt.Errorf("capture: New: %w", err)
	}
	return &Step[P]{s}, nil
}

// Run submits one step on b, a batch of New's pf, to the batch's stream, by a graph or call by call, with params
// in device memory as they are now. It waits for nothing, unless the device is further
// behind than the pipeline has batches. Nothing is allocated where a graph is replayed.
//
// After a *ChangedError, and where the device fails between two calls that belong together,
// every Run returns that error. If body panics or ends its goroutine nothing of the step
// was submitted that was to be captured, and the Step is as it was.
func (s *Step[P]) Run(b prefetch.Batch, params P) error {
	return s.step.run(b, unsafe.Slice((*byte)(unsafe.Pointer(&params)), unsafe.Sizeof(params)))
}

// Close waits until the device has done the steps, for five seconds at most, and frees
// the graphs. If that is not enough the error says so, and they are freed when the work
// ends; so they are after a Run that has not returned by then. A second Close does
// nothing; one during another waits for it and returns its error.
func (s *Step[P]) Close() error { return s.step.closeOnce.Do(s.step.close) }

// A step is a Step with params of so many bytes.
type step struct {
	pf     *prefetch.Prefetcher
	body   func(s *device.Stream, b Batch, params device.View) error
	bytes  int64
	blocks int // of params that can be under way
	room   int // for graphs
	tally  tally

	ctx    context.Context // ends with Close, which a wait in Run does too
	end    context.CancelCauseFunc
	detach func()        // of BeforeFree
	turn   chan struct{} // holds a token while a Run is under way, and when all is freed
	freed  chan struct{} // closed then

	closeOnce hold.Once

	// What follows is of who holds turn.
	lanes  []*lane
	fields []string // of the batches
	places []place  // of the batch in hand
	graphs int
	schedule
	failed int // captures in a row that failed
	// unsure is how many steps have been replayed since captures last agreed.
	unsure int64
	err    error // what Run returns from now on
}

func newStep(pf *prefetch.Prefetcher, body func(*device.Stream, Batch, device.View) error, bytes int64, mistakes error, o Options) (*step, error) {
	refuse := func(option string, value words, want string) {
		mistakes = errors.Join(mistakes, &device.OptionError{Option: option, Value: value, Want: want})
	}
	if body == nil {
		refuse("body", "nil", "a function")
	}
	if pf == nil {
		refuse("pf", "nil", "a Prefetcher")
	}
	if mistakes != nil {
		return nil, mistakes
	}
	plan := pf.Plan()
	if plan.Device == "" {
		return nil, &device.OptionError{Option: "pf", Value: words("a host pipeline"), Want: "a Prefetcher with a device: there are no graphs of host memory"}
	}
	s := &step{pf: pf, body: body, bytes: bytes, room: o.Graphs, turn: make(chan struct{}, 1), freed: make(chan struct{}),
		// A batch is not handed over before as many earlier ones are done.
		blocks: plan.HostSlots + plan.Depth*plan.BatchesPerCopy + 2}
	if s.room == 0 {
		s.room = defaultGraphs
	}
	if o.Launch {
		s.tally.forGood(errLaunch)
	}
	s.ctx, s.end = context.WithCancelCause(context.Background())
	var err error
	s.detach, err = pf.BeforeFree(s.free)
	return s, err
}

func (s *step) run(b prefetch.Batch, params []byte) error {
	select {
	case s.turn <- struct{}{}:
	default:
		if s.closed() {
			return ErrClosed
		}
		return ErrBusy
	}
	defer func() { <-s.turn }()
	switch {
	case s.closed():
		return ErrClosed
	case s.err != nil:
		return s.err
	}
	if b.Stream() == nil {
		return fmt.Errorf("capture: Run: %w", &device.OptionError{Option: "b", Value: words("a batch in host memory"), Want: "one of a Prefetcher with a device"})
	}
	if !b.Of(s.pf) { // the other one may free its memory while graphs have the addresses
		return fmt.Errorf("capture: Run: %w", &device.OptionError{Option: "b", Value: words("a batch of another Prefetcher"), Want: "one of the Prefetcher that New was given: make a Step for each"})
	}
	l, err := s.lane(b.Stream())
	if err != nil {
		return err
	}
	if err := l.fill(s.ctx, params); err != nil {
		return err
	}
	return s.submit(l, b)
}

// submit submits the step, with its params on the way.
func (s *step) submit(l *lane, b prefetch.Batch) error {
	if s.tally.launched.Load() {
		return s.launch(l, b)
	}
	g := s.graph(l, b)
	if g == nil {
		return s.launch(l, b)
	}
	due := s.schedule.due(g.class, g.exec == nil)
	if due || l.checked {
		return s.capture(l, g, b, due)
	}
	if err := g.exec.Launch(l.compute); err != nil {
		return err
	}
	s.replayed(g.class)
	return nil
}

// launch submits the step call by call.
func (s *step) launch(l *lane, b prefetch.Batch) error {
	l.worked = true
	if err := s.body(l.compute, Batch{b}, l.view()); err != nil {
		return err
	}
	s.tally.launches.Add(1)
	return nil
}

func (s *step) replayed(c *class) {
	s.unsure++
	c.unsure++
	s.tally.replays.Add(1)
}

// lane is the one of a compute stream.
func (s *step) lane(compute *device.Stream) (*lane, error) {
	for _, l := range s.lanes {
		if l.compute == compute {
			return l, nil
		}
	}
	l, err := newLane(compute, s.bytes, s.blocks)
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	if l.block.pageable() {
		s.tally.note("the device refused pinned memory: the copy of the parameters makes the host wait for the step before")
	}
	s.lanes = append(s.lanes, l)
	return l, nil
}
