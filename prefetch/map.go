package prefetch

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/life"
	"github.com/leat-go/leat/internal/usercode"
	"github.com/leat-go/leat/observe/journal"
)

// A Step submits to b's Stream the work that reads b and writes out, of b.Len rows,
// whose memory was used by an earlier step and whose contents are undefined: every
// field is written, and one that is never asked for is a *loader.UnwrittenError. It
// waits for nothing; b is released and out downloaded behind what it has submitted.
type Step func(b Batch, out Fields) error

// Map runs step on what is left of the current epoch and yields the results, in
// host memory, in order: upload, compute and download run side by side, and step
// runs ahead of the loop's body by o.Slots results.
//
// step is called on a goroutine of its own, one batch after the other. Leaving the
// loop, whatever the way, stops and joins it; the position is then behind the last
// result yielded, so that another range goes on with the next. Errors come behind
// the results before them: a step's as a *StageError. Map needs a device. The first
// Map allocates the results' memory, on the device and pinned, from what the slots
// leave of the budgets; later ones of the same Output use it again.
func (p *Prefetcher) Map(ctx context.Context, o Output, step Step) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		m, err := startMap(ctx, p, o, step)
		if err != nil {
			yield(Result{}, err)
			return
		}
		defer m.stop()
		for {
			r, err := m.next(ctx)
			if err == errEpochOver {
				return
			}
			if err != nil {
				m.failed = true
				yield(Result{}, err)
				return
			}
			if !m.runBody(r, yield) {
				return
			}
		}
	}
}

// A mapping is one Map under way. Its goroutines are the stepper, which stop joins,
// and a waiter for each download stream, which ends when the stepper and the
// device's work on its stream have.
type mapping struct {
	p       *Prefetcher
	reader  *Reader
	results *results
	step    Step
	cancel  context.CancelFunc

	queues  []chan *result // to the waiters, by download stream
	arrived chan arrival   // closed by the last waiter
	waiting atomic.Int32   // waiters
	stepped chan struct{}  // closed by the stepper
	visit   usercode.Visit // the stepper's
	err     error          // why there are no more steps; set before the queues are closed

	// The loop's own.
	failed bool // it has yielded an error
	prefix prefix
}

// An arrival is a result whose download is done, or failed.
type arrival struct {
	r   *result
	err error
}

func startMap(ctx context.Context, p *Prefetcher, o Output, step Step) (*mapping, error) {
	g := p.stages
	if g.dev == nil {
		return nil, errors.New("prefetch: Map needs a device")
	}
	if err := o.validate(step, g.sizes.out.BatchSize()); err != nil {
		return nil, err
	}
	if o.Slots == 0 {
		o.Slots = len(g.computes.Streams) + 3
	}
	o.Fields = cloneFields(o.Fields) // the results are kept, and the caller may change theirs
	reader, err := p.Open(ctx)
	if err != nil {
		return nil, err
	}
	reader.forMap = true
	if err := beginMap(p, o); err != nil {
		return nil, errors.Join(err, reader.close(false))
	}
	m := &mapping{p: p, reader: reader, results: p.results, step: step,
		arrived: make(chan arrival, o.Slots), stepped: make(chan struct{})}
	ctx, m.cancel = context.WithCancel(ctx)
	for range m.results.streams {
		q := make(chan *result, o.Slots)
		m.queues = append(m.queues, q)
		m.waiting.Add(1)
		go m.wait(q)
	}
	go m.steps(ctx)
	return m, nil
}

// beginMap makes the reading a Map's, and its results. It holds p.turn, so that nothing is
// allocated on a device that Quiesce has brought to rest.
func beginMap(p *Prefetcher, o Output) error {
	p.ahead.turn.Lock()
	defer p.ahead.turn.Unlock()
	if _, err := p.ahead.life.step(life.MapOver); err != nil { // Close was faster
		return err
	}
	if err := useResults(p, o); err != nil {
		return errors.Join(err, p.unuse())
	}
	return nil
}

// steps is the stepper: it joins each batch with a free result and runs the step.
func (m *mapping) steps(ctx context.Context) {
	m.p.stages.timeline.begins(journal.Stepper)
	defer close(m.stepped)
	defer func() {
		for _, q := range m.queues {
			close(q)
		}
	}()
	defer func() {
		if m.err == nil { // the step has ended this goroutine
			at, err := m.visit.Exited()
			m.err = &StageError{Stage: inStep, Position: Position(at), Err: err}
		}
	}()
	for number := int64(0); ; number++ {
		var r *result
		select {
		case r = <-m.results.free:
		case <-ctx.Done():
			m.err = context.Cause(ctx)
			return
		}
		b, err := m.reader.next(ctx, false)
		if err == nil {
			b.window.history.TakeInStep()
			err = m.one(b, r, number)
		} else {
			m.results.free <- r
		}
		if err != nil {
			m.err = err
			return
		}
	}
}

// one runs the step of one batch. A result whose step failed stays out of the ring
// until stop has seen the streams come to rest.
func (m *mapping) one(b Batch, r *result, number int64) error {
	defer b.end()
	r.set(b, number)
	compute := b.Stream()
	i := 0
	if len(m.results.streams) > 1 {
		i = m.p.stages.computes.Index(compute)
	}
	if err := poisonMemory(compute, r.slot.Memory); err != nil {
		return err
	}
	out := r.fields(m.p.stages.seed)
	if err := out.copyAdded(compute, func(field int) device.View { return b.window.field(field).View }, r.like); err != nil {
		return err
	}
	err := m.visit.Of(usercode.Place(r.at), func() error { return m.step(b, out) })
	if err == nil {
		err = out.unwritten()
	}
	if err != nil {
		return &StageError{Stage: inStep, Position: r.at, Err: err}
	}
	if err := r.fetch(compute, m.results.streams[i]); err != nil {
		return err
	}
	r.sent = m.p.stages.timeline.now()
	m.queues[i] <- r // it holds every result: this never blocks
	return nil
}

// wait is a waiter: results of one stream are done in the order of its queue.
func (m *mapping) wait(q chan *result) {
	for r := range q {
		a := arrival{r, r.arrived(m.results.witness)}
		if a.err == nil {
			m.p.stages.timeline.fetched(r)
		}
		m.arrived <- a // it holds every result: this never blocks
	}
	if m.waiting.Add(-1) == 0 {
		close(m.arrived)
	}
}

// next waits for the next result.
func (m *mapping) next(ctx context.Context) (*result, error) {
	if err := m.p.ahead.mayRead(ctx); err != nil {
		return nil, err
	}
	select {
	case a, ok := <-m.arrived:
		switch {
		case !ok:
			m.end()
			m.p.ahead.place.claim.Reported(m.err)
			return nil, m.err
		case a.err != nil:
			return nil, m.p.ahead.notes.news(a.err)
		}
		m.deliver(a.r)
		return a.r, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-m.p.ahead.closed:
		return nil, ErrClosed
	}
}

// deliver leases a result and moves the cursor behind it and all before it (P5).
func (m *mapping) deliver(r *result) {
	r.generation++
	r.leased = true
	if after, ok := m.prefix.add(r.number, r.after); ok {
		m.p.ahead.place.move(after)
	}
}

// end is the natural end, if it is one.
func (m *mapping) end() {
	if m.err == errEpochOver && m.reader.epochEnded {
		m.p.ahead.place.move(m.reader.epochEnd)
	}
}

// runBody is one turn of the loop.
func (m *mapping) runBody(r *result, yield func(Result, error) bool) bool {
	defer func() {
		r.leased = false
		m.results.free <- r
	}()
	return yield(Result{r: r, generation: r.generation}, nil)
}
