package onnx

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/pinnedpool"
	"github.com/leat-go/leat/prefetch"
)

// Options tunes a Model. The zero value is ready to use.
type Options struct {
	// Fields says which field is which input: for names of inputs, names of fields. An
	// input that is not in it is the field of its own name.
	Fields map[string]string
	// Outputs are the outputs that are wanted, each with its element type and the shape of
	// one row, which a model does not always tell. Nil means all, as the model tells.
	Outputs []loader.Field
	// Session are ONNX Runtime's own options: threads, execution providers. They are borrowed
	// for the call of New.
	Session *ort.SessionOptions
	// Slots is the number of results that there may be at once. 0 means 3: more are of use
	// only to who calls Run from several goroutines or keeps results.
	Slots int
	// Device has the results in memory that is pinned for it. It is borrowed until Close.
	// Nil means the CPU device.
	Device *device.Device
}

// A Model runs an ONNX model on batches. Run may be called by several goroutines at once.
type Model struct {
	rows    int // of a full batch
	inputs  []input
	results *loader.Layout
	full    bool           // the model takes full batches only
	dev     *device.Device // nil if it is the caller's
	pool    *pinnedpool.Pool
	slots   []slot // by the number of the buffer

	// running is held for reading while the session is in use, so that Close waits for that.
	running sync.RWMutex
	session *ort.DynamicAdvancedSession // nil once closed
}

// New loads a model, twice: once to see its inputs and outputs. The caller goes on to own pf,
// and owns the Model until Close.
//
// The error joins every mistake: a [ValueError] for each input and output, [ErrDeviceMemory];
// or it is [ErrNotInitialized], an error of ONNX Runtime, or a *pinnedpool.MemoryError.
func New(path string, pf *prefetch.Prefetcher, o Options) (*Model, error) {
	if !ort.IsInitialized() {
		return nil, ErrNotInitialized
	}
	if pf == nil {
		return nil, errors.New("onnx: no pipeline")
	}
	ins, outs, err := ort.GetInputOutputInfoWithOptions(path, o.Session)
	if err != nil {
		return nil, err
	}
	plan := pf.Plan()
	m := &Model{rows: plan.BatchSize}
	fields, err := m.fit(plan, ins, outs, o)
	if err != nil {
		return nil, err
	}
	if m.results, err = loader.NewLayout(fields, m.rows); err != nil {
		return nil, err
	}
	if err := m.open(path, o); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// fit finds the fields of the inputs, and returns those of the results.
func (m *Model) fit(plan prefetch.Plan, ins, outs []ort.InputOutputInfo, o Options) (results []loader.Field, err error) {
	fields := plan.Fields
	if plan.Delivered != nil {
		fields = plan.Delivered
	}
	var errs []error
	if plan.Device != "" {
		errs = append(errs, ErrDeviceMemory)
	}
	if o.Slots < 0 {
		errs = append(errs, fmt.Errorf("onnx: Options.Slots is %d, want 0 or more", o.Slots))
	}
	for _, name := range slices.Sorted(maps.Keys(o.Fields)) {
		if !slices.ContainsFunc(ins, func(i ort.InputOutputInfo) bool { return i.Name == name }) {
			errs = append(errs, &ValueError{name, false, ErrNoValue})
		}
	}
	for _, info := range ins {
		name, other := o.Fields[info.Name]
		if !other {
			name = info.Name
		}
		in, err := newInput(info, fields, name, m.rows)
		if err != nil {
			errs = append(errs, &ValueError{info.Name, false, err})
		}
		m.inputs, m.full = append(m.inputs, in), m.full || in.full
	}
	results, err = outputs(outs, o.Outputs, m.rows)
	return results, errors.Join(append(errs, err)...)
}

// outputs are the fields of results: those that are wanted, or all.
func outputs(infos []ort.InputOutputInfo, wanted []loader.Field, rows int) (fields []loader.Field, err error) {
	var errs []error
	if wanted == nil {
		for _, info := range infos {
			f, err := newOutput(info, rows)
			if err != nil {
				errs = append(errs, &ValueError{info.Name, true, err})
			}
			fields = append(fields, f)
		}
		return fields, errors.Join(errs...)
	}
	for _, f := range wanted {
		if err := checkOutput(infos, f, rows); err != nil {
			errs = append(errs, &ValueError{f.Name, true, err})
		}
	}
	return wanted, errors.Join(errs...)
}

// open makes the session, and the memory of the results.
func (m *Model) open(path string, o Options) (err error) {
	var ins, outs []string
	for _, in := range m.inputs {
		ins = append(ins, in.name)
	}
	for _, f := range m.results.Fields() {
		outs = append(outs, f.Name)
	}
	if m.session, err = ort.NewDynamicAdvancedSession(path, ins, outs, o.Session); err != nil {
		return err
	}
	dev := o.Device
	if dev == nil {
		// Who keeps a slice of a result beyond Close has its memory live as long.
		if m.dev, err = cpu.Open(cpu.Options{GoMemory: true}); err != nil {
			return err
		}
		dev = m.dev
	}
	n := o.Slots
	if n == 0 {
		n = 3
	}
	if m.pool, err = pinnedpool.New(dev, n, m.results.Size(), pinnedpool.Options{}); err != nil {
		return err
	}
	m.slots = make([]slot, n)
	for i := range m.slots {
		m.slots[i].open(m.pool.Buffer(i), m.results)
	}
	return nil
}

// Run runs the model on a batch, which it borrows until it returns. The caller owns the
// Result until its Release. While all results are held Run waits for one, until ctx ends or
// the Model is closed; a run of the model itself is not interrupted. A failure of ONNX
// Runtime is a [*RunError].
func (m *Model) Run(ctx context.Context, b prefetch.Batch) (Result, error) {
	buffer, err := m.pool.Get(ctx)
	if errors.Is(err, pinnedpool.ErrClosed) {
		err = ErrClosed
	}
	if err != nil {
		return Result{}, err
	}
	s := &m.slots[buffer.ID()]
	switch err := m.run(b, s); {
	case err == ErrClosed:
		m.pool.Put(buffer)
		return Result{}, err
	case err != nil:
		m.pool.Put(buffer)
		return Result{}, &RunError{b.Position(), err}
	}
	return Result{m, s, s.lap.Load()}, nil
}

// run fills a slot. Neither a tensor nor anything else of ONNX Runtime refers to the memory of
// the batch or the slot afterwards.
func (m *Model) run(b prefetch.Batch, s *slot) error {
	m.running.RLock()
	defer m.running.RUnlock()
	if m.session == nil {
		return ErrClosed
	}
	s.take(b)
	if b.Len() == 0 {
		return nil
	}
	c := &s.call
	defer c.end()
	for i := range m.inputs {
		in := &m.inputs[i]
		shape, memory := in.rows(b, m.rows)
		if err := c.tensor(in.dtype, shape[0], shape[1:], memory); err != nil {
			return &ValueError{in.name, false, err}
		}
	}
	rows := b.Len()
	if m.full {
		rows = m.rows // also of a short batch
	}
	for _, f := range m.results.Fields() {
		if err := c.tensor(f.DType, rows, f.Shape, s.buffer.Bytes()[f.Offset:][:f.Size]); err != nil {
			return &ValueError{f.Name, true, err}
		}
	}
	return m.session.Run(c.values[:len(m.inputs)], c.values[len(m.inputs):])
}

// Map runs the model on batches of the Model's pipeline, pf.Batches(ctx) or another of its
// ranges, and yields the results in order. A batch is released before the body begins, and
// the result at its end, in whatever way it ends. An error is yielded once, last.
func (m *Model) Map(ctx context.Context, batches iter.Seq2[prefetch.Batch, error]) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		for b, err := range batches {
			if err != nil {
				yield(Result{}, err)
				return
			}
			r, err := m.Run(ctx, b)
			if err != nil {
				yield(Result{}, err)
				return
			}
			b.Release() // workers may refill the memory during the body
			if !r.lend(yield) {
				return
			}
		}
	}
}

// Close waits for models that run, and frees the session and the results' memory. Results
// that are not released stay valid, and their memory is kept: the error says so, and Close
// may be called again after their Release. Run returns [ErrClosed] from the first call on.
func (m *Model) Close() error {
	m.running.Lock()
	defer m.running.Unlock()
	if m.session != nil {
		_ = m.session.Destroy() // never fails
		m.session = nil
	}
	if m.pool != nil { // its Close also ends calls that wait for a result
		if err := m.pool.Close(context.Background()); err != nil {
			return err
		}
	}
	if m.dev == nil {
		return nil
	}
	dev := m.dev
	m.dev = nil
	return dev.Close()
}
