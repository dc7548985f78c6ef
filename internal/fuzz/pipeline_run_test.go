package fuzz

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/tensors"
)

// TestPipeline runs random programs of Prefetchers.
func TestPipeline(t *testing.T) { drive(t, drawPipelineProgram, runPipeline) }

// settle is more than any reaper or timeout takes.
const settle = 10 * time.Second

// impatience is less than a kernel takes that does.
const impatience = 3 * time.Millisecond

// comeToRest is how long it takes until the last goroutine is gone.
func (p pipelineProgram) comeToRest() time.Duration {
	if p.real() {
		return settle // at most
	}
	return settle + p.Data.longest() + time.Minute
}

// busy is how long a kernel takes that does.
func (p pipelineProgram) busy() time.Duration {
	if p.real() {
		return 200 * time.Microsecond
	}
	return 10 * time.Millisecond
}

// real is whether the program runs by the wall's clock: who closes beside others may
// wait for a lock, and that stops a bubble's clock.
func (p pipelineProgram) real() bool {
	return slices.ContainsFunc(append(slices.Clone(p.Steps), p.TwinSteps...), func(s pipelineStep) bool { return s.Do == "close beside" })
}

func runPipeline(p pipelineProgram) error {
	src := &source{data: p.Data}
	ld, err := src.loader(p.Options)
	if errors.Is(err, loader.ErrTooFewSamples) && int64(p.Data.Samples) < p.Options.global() {
		return nil // as it should be
	}
	if err != nil {
		return err
	}
	b, err := newBench(p.Data, p.Device, p.Bad)
	if err != nil {
		return err
	}
	src.forget(p.once())
	words := new(words)
	shapes, steps := []shape{p.Shape}, [][]pipelineStep{p.Steps}
	if len(p.TwinSteps) > 0 {
		shapes, steps = append(shapes, p.Twin), append(steps, p.TwinSteps)
	}
	var pipes []*pipe
	for _, sh := range shapes {
		q := &pipe{program: p, bench: b, src: src, words: words, standIn: make(map[[2]int64]int)}
		if err := q.open(ld, sh, loader.Cursor{}); err != nil {
			return err
		}
		pipes = append(pipes, q)
	}
	failed := make([]error, len(pipes))
	var running sync.WaitGroup
	for i, q := range pipes {
		running.Go(func() { failed[i] = q.live(steps[i]) })
	}
	running.Wait()
	if !p.real() {
		time.Sleep(p.comeToRest())
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	if err := errors.Join(src.accusation(), b.account(p.comeToRest())); err != nil || b.stuck.Load() {
		return err
	}
	return src.left()
}

// pipe is one Prefetcher's life under way.
type pipe struct {
	program pipelineProgram
	bench   *bench
	src     *source
	words   *words
	standIn map[[2]int64]int

	ld    *loader.Loader
	shape shape
	pf    *prefetch.Prefetcher
	dense tensors.Cache // of pf's batches
	// landing is on the peer device, for one field of a batch.
	landing *device.Buffer
	ref     *reference
	meter   *metered

	held     []lease
	most     int // that were held
	readings []*reading
	frees    []func() error // once the device has come to rest
	beside   sync.WaitGroup
	releases atomic.Int32  // batches that others will release
	released atomic.Bool   // others have released some
	asides   atomic.Int32  // goroutines that ask for figures
	closing  atomic.Bool   // Close was called
	closed   chan struct{} // it has returned
	closeErr error
	excuse   int  // errors that one fault may still be told by
	stuck    bool // a call that did not heed its context was left behind
	counted  prefetch.Stats
	mapped   bool // there was a Map
	hangs    bool // a step of a Map may not have returned: it reads, and holds a batch
	lost     bool // the step under way has given up what was read ahead, or may have
}

// open makes a Prefetcher of a shape.
func (q *pipe) open(ld *loader.Loader, sh shape, at loader.Cursor) (err error) {
	o := prefetch.Options{Depth: sh.Depth, BatchesPerCopy: sh.BatchesPerCopy, Timing: sh.Timing, Transform: q.bench.transform(sh.Transform), CloseTimeout: settle, Streams: prefetch.Streams{Compute: sh.ComputeStreams, RoundRobin: sh.RoundRobin}, Memory: prefetch.Memory{HostSlots: sh.HostSlots, Pageable: sh.Pageable}}
	if sh.Impatient {
		o.CloseTimeout = impatience
	}
	if sh.Host {
		q.pf, err = prefetch.NewHost(ld, o)
	} else {
		q.pf, err = prefetch.New(q.bench.compute, ld, o)
	}
	if err != nil {
		return err
	}
	q.ld, q.shape, q.counted, q.mapped, q.hangs = ld, sh, prefetch.Stats{}, false, false
	q.ref = newReference(q.program.Data, ld, q.program.Options.BatchSize, at, q.words)
	q.ref.standIn = q.standIn
	q.closing.Store(false)
	q.closed, q.closeErr, q.stuck = make(chan struct{}), nil, false
	if !sh.Host {
		q.meter, err = newMetered(q.bench.dev)
	}
	if err == nil && q.landing == nil {
		q.landing, err = q.bench.peer.Alloc(max(1, ld.Layout().Size()))
	}
	return err
}

// live runs the steps and ends the pipeline.
func (q *pipe) live(steps []pipelineStep) error {
	for i, s := range steps {
		q.bench.arm(s.Fault)
		q.lost = s.Do == "map" || s.Do == "pass" || s.Do == "move" || s.Skip != 0
		if q.lost {
			q.src.forget(false)
		}
		err := q.step(s)
		if q.lost { // its goroutines have ended
			q.src.forget(q.program.once())
		}
		q.bench.disarm()
		if err == nil {
			err = q.place()
		}
		if err == nil && s.Rest { // else the next step meets the device at work
			err = q.check()
		}
		if err != nil {
			_ = q.pf.Close()
			return fmt.Errorf("step %d, %v: %w", i+1, s, err)
		}
	}
	if err := q.end(); err != nil {
		return fmt.Errorf("the end: %w", err)
	}
	return q.landing.Close()
}

func (q *pipe) step(s pipelineStep) error {
	ctx := context.Background()
	switch s.Do {
	case "range", "all", "epochs", "pass":
		return q.rangeOver(s)
	case "start":
		err := q.pf.Start(ctx)
		q.lost = err != nil
		return q.allowed(err)
	case "read":
		return q.read(s)
	case "map":
		return q.mapOver(s)
	case "seek":
		return q.seek(loader.Cursor{Epoch: s.Epoch, Position: s.Sample}, func() error { return q.pf.Seek(s.Epoch, s.Sample) })
	case "restore":
		st, err := saved(q.pf.State())
		if err != nil {
			return err
		}
		return q.seek(st.Cursor(), func() error { return q.pf.Restore(st) })
	case "move":
		return q.move(s)
	case "quiesce":
		err := q.pf.Quiesce(ctx)
		return q.allowed(err)
	case "release":
		return q.releaseAll()
	case "sleep":
		time.Sleep(s.For)
	case "stats beside":
		q.asides.Add(1)
		q.beside.Go(func() {
			defer q.asides.Add(-1)
			for range 5 {
				time.Sleep(s.For / 4)
				_, _, _, _ = q.pf.Stats(), q.pf.Plan(), q.pf.State(), q.pf.Epoch()
			}
		})
	case "close beside":
		q.beside.Go(func() {
			time.Sleep(s.For)
			q.close()
		})
	case "close":
		q.close()
	}
	return nil
}

// seek moves the cursor.
func (q *pipe) seek(to loader.Cursor, f func() error) error {
	if to.Position > q.program.Data.length(0) {
		return nil
	}
	q.lost = q.lost || !q.pf.State().Equal(q.ld.StateAt(to))
	err := f()
	q.lost = q.lost || err != nil
	if pastTheEnd(q.program.Options, to) && !(q.closing.Load() && errors.Is(err, prefetch.ErrClosed)) {
		return nowhere(err, to)
	}
	if err != nil {
		return q.allowed(err) // and nothing has changed
	}
	q.ref.at = normalized(q.ld, to)
	return nil
}

// saved is a state as a file keeps it.
func saved(st loader.State) (back loader.State, err error) {
	text, err := json.Marshal(st)
	if err == nil {
		err = json.Unmarshal(text, &back)
	}
	return back, err
}

// move goes on in another pipeline, as another process would.
func (q *pipe) move(s pipelineStep) error {
	st, err := saved(q.pf.State())
	if err != nil {
		return err
	}
	at := q.ref.at
	if err := q.end(); err != nil {
		return err
	}
	o := q.program.Options
	o.Workers = s.Work
	ld, err := q.src.loader(o)
	if err != nil {
		return err
	}
	if err := q.open(ld, s.Shape, at); err != nil {
		return err
	}
	return q.pf.Restore(st)
}

// check brings the device to rest and looks at all that was read.
func (q *pipe) check() error {
	if err := q.bench.rest(); err != nil {
		return err
	}
	for _, g := range q.readings {
		if err := q.program.Data.compare(g.contents, g.want, q.words); err != nil {
			return fmt.Errorf("batch %d of epoch %d, %s: %w", g.want.batch, g.want.epoch, g.where, err)
		}
	}
	q.readings = nil
	var errs []error
	for _, free := range q.frees {
		errs = append(errs, free())
	}
	q.frees = nil
	if q.meter != nil {
		errs = append(errs, q.mine(q.meter.check()))
	}
	errs = append(errs, q.bench.checker.Err(), q.src.accusation(), q.place())
	return errors.Join(errs...)
}

// place requires that the cursor is behind what was delivered.
func (q *pipe) place() error {
	is, want := q.pf.State(), q.ld.StateAt(q.ref.at)
	if is.Equal(want) {
		return nil
	}
	before := *q.ref
	for range 2 { // an iterable's epoch that has turned out to be over, or is to
		if q.atEnd() {
			q.ref.advance(q.ref.next())
			if is.Equal(q.ld.StateAt(q.ref.at)) {
				return nil
			}
		}
		*q.ref = before
		if at := is.Cursor(); q.program.Data.Iterable && at.Epoch == q.ref.at.Epoch-1 {
			q.ref.at = at
			if q.atEnd() {
				return nil
			}
			*q.ref = before
		}
	}
	return fmt.Errorf("the state is %+v, want %+v", is, want)
}

// atEnd is whether an iterable has been delivered to its last sample, which nobody
// knows before it was asked for more.
func (q *pipe) atEnd() bool {
	return q.program.Data.Iterable && q.ref.next().epochEnd
}
