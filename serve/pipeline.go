package serve

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// all is the requests of all batches, each batch with a Flush behind it, until there will be
// no more.
func (l *line) all(yield func(*entry, error) bool) {
	timer := time.NewTimer(never)
	defer timer.Stop()
	for {
		g, alarm, more := l.form()
		switch {
		case !more:
			return
		case g != nil:
			if !l.hand(g, yield) {
				return
			}
		default:
			timer.Reset(alarm - l.now())
			select {
			case <-l.wake:
			case <-timer.C:
			}
		}
	}
}

// hand hands the rows of a batch to the loader.
func (l *line) hand(g *group, yield func(*entry, error) bool) bool {
	for _, e := range g.members {
		if !yield(e, nil) {
			return false
		}
	}
	return yield(nil, loader.Flush)
}

var _ iter.Seq2[*entry, error] = (*line)(nil).all

// onDevice is the way of batches over a device.
type onDevice struct {
	line *line
	crew *crew
	step prefetch.Step
	out  []loader.Field
}

// run is the pump of a Queue.
func (d onDevice) run(pf *prefetch.Prefetcher) func(context.Context) error {
	o := prefetch.Output{Fields: slices.Clone(d.out), Slots: d.line.options.InFlight, AsFinished: true}
	var b prefetch.Batch // of the step under way
	var out prefetch.Fields
	visit := newCall(func() error { return d.step(b, out) })
	step := func(batch prefetch.Batch, fields prefetch.Fields) error {
		b, out = batch, fields
		g, err := d.line.underWay(b.Position().First, b.Len())
		if err != nil {
			return err
		}
		g.err = visit.do(d.crew)
		if g.err != nil { // its results travel all the same, and nobody reads them
			for i := range d.out {
				out.Field(d.out[i].Name)
			}
		}
		return nil
	}
	fields := make([]prefetch.Field, len(d.out))
	return func(ctx context.Context) error {
		for res, err := range pf.Map(ctx, o, step) {
			if err != nil {
				return err
			}
			for i := range d.out {
				fields[i] = res.Field(d.out[i].Name)
			}
			if err := d.line.deliver(res.Position().First, Answers{fields: fields, rows: res.Len()}); err != nil {
				return err
			}
		}
		return nil
	}
}

// deliver answers the requests of a batch whose results are there.
func (l *line) deliver(first int64, a Answers) error {
	g, err := l.underWay(first, a.rows)
	if err != nil {
		return err
	}
	if g.err == nil {
		g.answers = a
		l.crew.start(g)
		<-g.decoded
	}
	l.finish(g, nil)
	return nil
}

// onHost is the way of batches on the host.
type onHost struct {
	line *line
	crew *crew
	step HostStep
}

// run is the pump of a Queue.
func (h onHost) run(pf *prefetch.Prefetcher, out []loader.Field, maxBatch int) (func(context.Context) error, error) {
	results, err := newResults(out, maxBatch)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		var b prefetch.Batch // of the step under way
		var a Answers
		visit := newCall(func() error { return h.step(ctx, b, a) })
		for batch, err := range pf.All(ctx) {
			if err != nil {
				return err
			}
			b, a = batch, results.of(batch.Len())
			g, err := h.line.underWay(b.Position().First, b.Len())
			if err != nil {
				return err
			}
			g.err = visit.do(h.crew)
			if g.err == nil {
				g.err = a.unwritten()
			}
			a.asked = nil
			if err := h.line.deliver(b.Position().First, a); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// results is the memory of a batch's results on the host. One batch is computed at a time.
type results struct {
	layout []loader.FieldLayout
	memory [][]byte
	fields []prefetch.Field
	asked  []bool
}

func newResults(out []loader.Field, maxBatch int) (*results, error) {
	l, err := loader.NewLayout(out, maxBatch)
	if err != nil {
		return nil, err
	}
	r := &results{layout: l.Fields(), asked: make([]bool, len(l.Fields()))}
	for _, f := range r.layout {
		words := make([]uint64, (f.Size+7)/8) // so that every type is aligned
		r.memory = append(r.memory, dtype.Bytes(words)[:f.Size])
		r.fields = append(r.fields, prefetch.Field{Name: f.Name, DType: f.DType, Shape: append([]int{0}, f.Shape...)})
	}
	return r, nil
}

// of is room for so many rows.
func (r *results) of(rows int) Answers {
	for i := range r.fields {
		r.fields[i].Shape[0] = rows
		r.fields[i].Bytes = r.memory[i][:r.layout[i].Bytes(rows, 0)]
	}
	clear(r.asked)
	return Answers{fields: r.fields, asked: r.asked, rows: rows}
}
