package serve

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A Queue answers requests in batches. All its methods may be called by any number of
// goroutines at once.
type Queue[Req, Resp any] struct {
	model  Model[Req, Resp]
	line   *line
	crew   *crew
	pf     *prefetch.Prefetcher
	pump   func(ctx context.Context) error // takes results until there are no more
	visits sync.Pool

	begin  func() // starts serve, once
	cancel context.CancelFunc
	ended  chan struct{} // closed when serve has ended
	err    error         // why it has; guarded by ended

	told atomic.Bool // err was returned
}

// New makes a Queue whose batches of at most maxBatch requests are uploaded to compute's
// device, computed by step on compute, which stays the caller's, and brought back. step is
// called as by prefetch.Prefetcher.Map, one batch after the other: it submits work and waits
// for nothing. If it returns an error, panics or calls runtime.Goexit, the requests of that
// batch, and no others, fail with that. One that returns nil without having asked for every
// field of model.Out ends the Queue.
//
// The memory of all batches is allocated here; nothing runs before the first Do. The caller
// owns the Queue until Close, and closes compute and the device after it. The error joins
// every mistake in the arguments, each an *OptionError or the loader's own.
func New[Req, Resp any](compute *device.Stream, maxBatch int, model Model[Req, Resp], step prefetch.Step, o Options) (*Queue[Req, Resp], error) {
	var c checks
	c.that(compute != nil, "compute", "nil", "a stream")
	c.that(step != nil, "step", "nil", "a function")
	q, ld, err := newQueue(c, maxBatch, model, o, defaultInFlight)
	if err != nil {
		return nil, err
	}
	if q.pf, err = prefetch.New(compute, ld, q.line.options.Prefetch); err != nil {
		return nil, err
	}
	q.pump = onDevice{line: q.line, crew: q.crew, step: step, out: model.Out}.run(q.pf)
	return q, nil
}

// NewHost makes a Queue that computes on the host: step reads the pinned memory that requests
// are written to, and nothing is copied.
func NewHost[Req, Resp any](maxBatch int, model Model[Req, Resp], step HostStep, o Options) (*Queue[Req, Resp], error) {
	var c checks
	c.that(step != nil, "step", "nil", "a function")
	q, ld, err := newQueue(c, maxBatch, model, o, defaultHostInFlight)
	if err != nil {
		return nil, err
	}
	if q.pf, err = prefetch.NewHost(ld, q.line.options.Prefetch); err != nil {
		return nil, err
	}
	q.pump, err = onHost{line: q.line, crew: q.crew, step: step}.run(q.pf, model.Out, maxBatch)
	if err != nil {
		return nil, errors.Join(err, q.pf.Close())
	}
	return q, nil
}

// newQueue is all but the pipeline.
func newQueue[Req, Resp any](c checks, maxBatch int, m Model[Req, Resp], o Options, inFlight int) (*Queue[Req, Resp], *loader.Loader, error) {
	c.that(maxBatch > 0, "maxBatch", maxBatch, "1 or more")
	m.validate(&c)
	o.validate(&c, m.Size != nil)
	if err := c.err(m.In, m.Out, maxBatch); err != nil {
		return nil, nil, err
	}
	q := &Queue[Req, Resp]{model: m, crew: newCrew(2 * runtime.GOMAXPROCS(0)), ended: make(chan struct{})}
	q.line = newLine(maxBatch, o.withDefaults(maxBatch, inFlight), q.crew)
	ctx, cancel := context.WithCancel(context.Background())
	q.cancel = cancel
	q.begin = sync.OnceFunc(func() { go q.serve(ctx) }) // ends by Shutdown, Close, or an error
	data := loader.FromSeq(m.In, q.line.all, func(_ context.Context, e *entry, row *loader.Row) error {
		row.CopyFrom(e.row)
		return nil
	})
	ld, err := loader.NewIterable(data, maxBatch, loader.Options{
		Epochs: 1, GracePeriod: q.grace(),
		Workers: max(2, runtime.GOMAXPROCS(0)/4), // all that they do is to copy rows
	})
	return q, ld, err
}

// Do answers a request. It returns once there is an answer, or an *Error: at once if there is
// no place for it, and when ctx ends, but not before Encode has returned. Then the request
// has left the line, or its row is computed for nobody.
func (q *Queue[Req, Resp]) Do(ctx context.Context, req Req) (Resp, error) {
	return q.DoAs(ctx, Caller{}, req)
}

// DoAs is Do for a caller among others.
func (q *Queue[Req, Resp]) DoAs(ctx context.Context, who Caller, req Req) (Resp, error) {
	var none Resp
	if ctx.Err() != nil {
		return none, &Error{Stage: StagePlace, Err: context.Cause(ctx)}
	}
	v, err := q.visit(ctx, req)
	if err != nil {
		return none, &Error{Stage: StagePlace, Err: err}
	}
	q.begin()
	if err := q.line.enter(&v.entry, who); err != nil {
		err = v.over(StagePlace, q.line.now(), err)
		v.recycle()
		return none, err
	}
	return v.await()
}

// Stats is what was counted so far.
func (q *Queue[Req, Resp]) Stats() Stats { return q.line.stats() }

// Err is nil while requests are let in. After Shutdown or Close it is ErrClosed, and after a
// failure of the pipeline an *Error of StagePipeline: then a server should say that it is not
// well, and be started again.
func (q *Queue[Req, Resp]) Err() error { return q.line.ended() }

// Plan says what the pipeline is made of.
func (q *Queue[Req, Resp]) Plan() prefetch.Plan { return q.pf.Plan() }

// serve takes results until the Queue ends.
func (q *Queue[Req, Resp]) serve(ctx context.Context) {
	defer close(q.ended)
	defer q.cancel()
	over := error(ErrClosed)
	if err := q.pump(ctx); err != nil && ctx.Err() == nil && !q.line.unused() {
		over, q.err = err, &Error{Stage: StagePipeline, Err: err}
	}
	q.line.abort(over)
	closed := q.pf.Close()
	q.line.lose(over) // nothing of them is in use any more
	if q.err == nil { // else what else fails is of that
		q.err = closed
	}
	q.err = errors.Join(q.err, q.crew.close(q.grace()))
}

// Shutdown lets no more requests in, has those that are open answered, waits for that and
// closes the Queue. Nobody waits for others to fill a batch meanwhile. If ctx ends before it
// is done it does what Close does, and returns the cause of ctx too. A failure of the
// pipeline is returned. Calls of Shutdown and Close at the same time wait for the same end,
// whose error one of them returns; a call after it returns nil.
func (q *Queue[Req, Resp]) Shutdown(ctx context.Context) error {
	q.line.drain()
	q.begin() // it may end at once
	select {
	case <-q.ended:
		return q.end()
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), q.Close())
	}
}

// Close lets no more requests in, answers those that are open with ErrClosed, also those of
// batches under way, which it ends, and frees all that the Queue has. It waits for the user's
// code and for the device, no longer than three times Options.Prefetch.CloseTimeout and a
// second in all; what still is in use then is freed later, and the error says so.
func (q *Queue[Req, Resp]) Close() error {
	q.line.abort(ErrClosed)
	q.begin() // it ends at once
	q.cancel()
	limit := 3*q.grace() + time.Second // beyond the pipeline's and the crew's own
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-q.ended:
		return q.end()
	case <-timer.C:
		return &StuckError{Calls: q.crew.calls(), Grace: limit}
	}
}

func (q *Queue[Req, Resp]) grace() time.Duration { return q.line.options.Prefetch.CloseTimeout }

// end is the error of the end, which is told once.
func (q *Queue[Req, Resp]) end() error {
	if q.told.Swap(true) {
		return nil
	}
	return q.err
}
