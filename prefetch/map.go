package prefetch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/life"
	"github.com/leat-go/leat/loader"
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
			if !m.lend(r, yield) {
				return
			}
		}
	}
}

// results are the results of a Map, and the streams that bring them back.
type results struct {
	output  Output
	layout  *loader.Layout
	like    likes            // what it has of the batches'
	streams []*device.Stream // one, or with AsFinished one for each compute stream
	all     []*result
	free    chan *result
	witness *device.Witness // the waiters: what they have seen the end of is the results' own
}

// newResults makes what o asks for, on the device of g. What it could make before an error
// is in it, for release.
func newResults(g *stages, o Output) (*results, error) {
	d := &results{output: o, witness: g.dev.NewWitness(), free: make(chan *result, o.Slots)}
	var err error
	if d.layout, err = loader.NewLayout(o.Fields, g.sizes.out.BatchSize()); err != nil {
		return d, err
	}
	if d.like, err = liken("Output.Fields", d.layout, g.sizes.out); err != nil {
		return d, err
	}
	if err := g.fitsResults(d.layout, o.Slots); err != nil {
		return d, err
	}
	streams := 1
	if o.AsFinished {
		streams = len(g.computes.streams)
	}
	for range streams {
		s, err := g.dev.NewStream(device.StreamOptions{Name: "download"})
		if err != nil {
			return d, err
		}
		d.streams = append(d.streams, s)
	}
	for i := range o.Slots {
		r, err := newResult(g.dev, d.layout, d.like, i, d.witness)
		d.all = append(d.all, r)
		if err != nil {
			return d, err
		}
		d.free <- r
	}
	return d, nil
}

// fitsResults holds results against what the slots leave of the budgets.
func (g *stages) fitsResults(l *loader.Layout, slots int) error {
	bytes := product(int64(slots), l.Size())
	if left := g.sizes.pinned - g.pinned.pool.Stats().Bytes; bytes > left {
		return &MemoryError{What: fmt.Sprintf("%d results of Map in pinned memory beside the host slots", slots), Bytes: bytes, Budget: max(left, 0),
			Hint: "raise Memory.PinnedBytes, or use fewer Memory.HostSlots or Output.Slots"}
	}
	z := g.sizes
	if z.options.Memory.DeviceBytes > 0 {
		bytes = sum(bytes, z.slots)
	} else {
		free, _, err := g.dev.Memory()
		if err != nil {
			return err
		}
		z.device = free
	}
	return z.onDevice("results of Map", bytes)
}

func (d *results) release() error {
	var errs []error
	for _, r := range d.all {
		errs = append(errs, r.release())
	}
	for _, s := range d.streams {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
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
	visit   visit          // the stepper's
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
		o.Slots = len(g.computes.streams) + 3
	}
	o.Fields = cloneFields(o.Fields) // the results are kept, and the caller may change theirs
	reader, err := p.Open(ctx)
	if err != nil {
		return nil, err
	}
	reader.ahead = true
	if err := p.beginMap(o); err != nil {
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
func (p *Prefetcher) beginMap(o Output) error {
	p.turn.Lock()
	defer p.turn.Unlock()
	if _, err := p.life.step(life.MapOver); err != nil { // Close was faster
		return err
	}
	if err := useResults(p, o); err != nil {
		return errors.Join(err, p.unuse())
	}
	return nil
}

// useResults makes the results, unless the last Map's serve.
func useResults(p *Prefetcher, o Output) error {
	if d := p.results; d != nil {
		if d.output.equal(o) {
			return nil
		}
		p.results = nil
		if err := d.release(); err != nil {
			return err
		}
	}
	d, err := newResults(p.stages, o)
	if err != nil {
		return errors.Join(err, d.release())
	}
	p.results = d
	return nil
}

// steps is the stepper: it joins each batch with a free result and runs the step.
func (m *mapping) steps(ctx context.Context) {
	defer close(m.stepped)
	defer func() {
		for _, q := range m.queues {
			close(q)
		}
	}()
	defer func() {
		if m.err == nil { // the step has ended this goroutine
			at, err := m.visit.exited()
			m.err = &StageError{Stage: inStep, Position: at, Err: err}
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
			b.window.history.takeInStep()
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
	r.hold(b, number)
	compute := b.Stream()
	i := 0
	if len(m.results.streams) > 1 {
		i = m.p.stages.computes.index(compute)
	}
	if err := poisonMemory(compute, r.slot.memory); err != nil {
		return err
	}
	out := r.fields(m.p.stages.seed)
	if err := out.copyAdded(compute, func(field int) device.View { return b.window.field(field).View }, r.like); err != nil {
		return err
	}
	err := m.visit.of(r.at, func() error { return m.step(b, out) })
	if err == nil {
		err = out.unwritten()
	}
	if err != nil {
		return &StageError{Stage: inStep, Position: r.at, Err: err}
	}
	if err := r.fetch(compute, m.results.streams[i]); err != nil {
		return err
	}
	m.queues[i] <- r // it holds every result: this never blocks
	return nil
}

// wait is a waiter: results of one stream are done in the order of its queue.
func (m *mapping) wait(q chan *result) {
	for r := range q {
		m.arrived <- arrival{r, r.arrived(m.results.witness)} // it holds every result: this never blocks
	}
	if m.waiting.Add(-1) == 0 {
		close(m.arrived)
	}
}

// next waits for the next result.
func (m *mapping) next(ctx context.Context) (*result, error) {
	if err := m.p.mayRead(ctx); err != nil {
		return nil, err
	}
	select {
	case a, ok := <-m.arrived:
		switch {
		case !ok:
			m.end()
			m.p.place.claim.Reported(m.err)
			return nil, m.err
		case a.err != nil:
			return nil, m.p.notes.news(a.err)
		}
		m.deliver(a.r)
		return a.r, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-m.p.closed:
		return nil, ErrClosed
	}
}

// deliver leases a result and moves the cursor behind it and all before it (P5).
func (m *mapping) deliver(r *result) {
	r.generation++
	r.leased = true
	if after, ok := m.prefix.add(r.number, r.after); ok {
		m.p.place.move(after)
	}
}

// end is the natural end, if it is one.
func (m *mapping) end() {
	if m.err == errEpochOver && m.reader.over {
		m.p.place.move(m.reader.end)
	}
}

// lend is one turn of the loop.
func (m *mapping) lend(r *result, yield func(Result, error) bool) bool {
	defer func() {
		r.leased = false
		m.results.free <- r
	}()
	return yield(Result{r: r, generation: r.generation}, nil)
}

// stop joins the stepper and takes back what is under way. What was submitted goes
// on; its results are discarded.
func (m *mapping) stop() {
	m.cancel()
	grace := m.p.grace()
	ticker := time.NewTicker(grace)
	defer ticker.Stop()
	for {
		select {
		case <-m.stepped:
			m.finish()
			return
		case <-ticker.C:
		}
		if err := m.visit.stuck("the step", grace); err != nil {
			m.p.notes.keep(err)
			go func() { // ends when the step does
				<-m.stepped
				m.finish()
			}()
			return
		}
	}
}

// finish takes back what is under way, when the stepper has ended. Nobody else gets in
// before the ring is whole, or gone.
func (m *mapping) finish() {
	p := m.p
	p.notes.keep(m.reader.stop(m.failed))
	ctx, cancel := context.WithTimeout(context.Background(), p.closeTimeout())
	defer cancel()
	err := m.collect(ctx)
	if len(m.results.free) < len(m.results.all) || err != nil {
		m.drop(ctx)
	}
	p.life.must(life.EndRead)
	p.notes.keep(p.unuse())
}

// collect takes back the results whose downloads end, until the waiters have ended.
func (m *mapping) collect(ctx context.Context) error {
	for {
		select {
		case a, ok := <-m.arrived:
			if !ok {
				return nil
			}
			if a.err == nil { // else the results are given up
				m.results.free <- a.r
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// drop gives up a ring that doesn't come back whole: a step failed half-way, or the
// device still works on it.
func (m *mapping) drop(ctx context.Context) {
	p, d := m.p, m.results
	p.results = nil
	free := func(ctx context.Context) error {
		if err := m.collect(ctx); err != nil { // the waiters use it yet
			return err
		}
		for _, s := range append(append([]*device.Stream(nil), p.stages.computes.streams...), d.streams...) {
			if err := rest(ctx, s); err != nil {
				return err
			}
		}
		return d.release()
	}
	if err := free(ctx); err != nil {
		p.life.must(life.Use)
		done := make(chan struct{})
		p.mu.Lock()
		p.reapers = append(p.reapers, done)
		p.mu.Unlock()
		go func() { // the reaper: it ends when the device's work does
			err := free(context.Background())
			if err != nil { // Close tries again
				p.mu.Lock()
				p.unfreed = append(p.unfreed, d)
				p.mu.Unlock()
			}
			p.mu.Lock()
			p.reapers = slices.DeleteFunc(p.reapers, func(c chan struct{}) bool { return c == done })
			p.mu.Unlock()
			close(done)
			p.notes.keep(errors.Join(err, p.unuse()))
		}()
	}
}

// prefix finds how far all results are delivered where some come out of order.
type prefix struct {
	next  int64
	ahead map[int64]loader.Cursor // behind each of those that are
}

// add notes a result, and returns the cursor behind the last of all that are
// delivered without a gap, if that has moved.
func (f *prefix) add(number int64, after loader.Cursor) (moved loader.Cursor, ok bool) {
	if number != f.next {
		if f.ahead == nil {
			f.ahead = make(map[int64]loader.Cursor)
		}
		f.ahead[number] = after
		return moved, false
	}
	for ok = true; ok; after, ok = f.ahead[f.next] {
		delete(f.ahead, f.next)
		moved = after
		f.next++
	}
	return moved, true
}

// cloneFields is a copy that shares no shape: the caller may go on to change its own.
func cloneFields(fields []loader.Field) []loader.Field {
	fields = slices.Clone(fields)
	for i, f := range fields {
		fields[i] = f.Clone()
	}
	return fields
}
