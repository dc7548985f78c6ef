package chain

import (
	"errors"
	"fmt"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// New makes a Transform of operations, done in their order. fields are those that
// the loader fills; a field that no Op names is passed on as it is. prefetch.New
// refuses the Transform for a loader of other fields. The error names every mistake: each
// is an *OpError or, if it is in fields, a *loader.OptionError.
func New(fields []loader.Field, ops ...Op) (*prefetch.Transform, error) {
	if _, err := loader.NewLayout(fields, 1); err != nil {
		return nil, fmt.Errorf("chain: %w", err)
	}
	t := &prefetch.Transform{In: make([]loader.Field, len(fields)), Out: make([]loader.Field, len(fields))}
	number := make(map[string]int, len(fields))
	for i, f := range fields {
		t.In[i], t.Out[i], number[f.Name] = f.Clone(), f.Clone(), i
	}
	changed := make([]bool, len(fields))
	steps := make([]step, 0, len(ops))
	var errs []error
	for i, op := range ops {
		at, ok := number[op.Field]
		if !ok {
			errs = append(errs, &OpError{i, op.Name, loader.Field{Name: op.Field}, &OptionError{Option: "Field", Value: op.Field, Want: "a field of the loader's"}})
			continue
		}
		in := t.Out[at]
		out, err := op.output(in)
		if err != nil {
			for _, err := range mistakes(err) {
				errs = append(errs, &OpError{i, op.Name, in, err})
			}
			continue
		}
		t.Out[at], changed[at] = out, true
		steps = append(steps, step{Op: op, index: i, in: in, out: out})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	t.Scratch = connect(steps)
	kept := unchanged(changed)
	t.Apply = func(s *device.Stream, out, in prefetch.Fields) error { return apply(s, out, in, kept, steps) }
	return t, nil
}

// A step is an operation in its chain.
type step struct {
	Op
	index    int
	in, out  loader.Field
	from, to string // names of scratch fields; empty for the first and the last of a field
}

// connect gives each field's operations scratch fields between them.
func connect(steps []step) (scratch []loader.Field) {
	last := map[string]*step{} // by field
	for i := range steps {
		next := &steps[i]
		if before := last[next.Field]; before != nil {
			f := before.out
			f.Name = fmt.Sprintf("%s after operation %d", f.Name, before.index)
			f.Ragged = between(f.Ragged, f.Name, next.Field)
			before.to, next.from = f.Name, f.Name
			scratch = append(scratch, f)
		}
		last[next.Field] = next
	}
	return scratch
}

// between is what a scratch field has of the Ragged of a field: its lengths, and no fields
// that tell of them. Nobody looks at the offsets that say that it is packed.
func between(r *loader.Ragged, name, field string) *loader.Ragged {
	if r == nil {
		return nil
	}
	like := &loader.Ragged{Multiple: r.Multiple, Like: field}
	if r.Offsets != "" {
		like.Offsets = name + ": offsets"
	}
	return like
}

// A span is n neighbouring fields, from number first on.
type span struct{ first, n int }

// unchanged are the spans between the fields that operations change.
func unchanged(changed []bool) (spans []span) {
	for i, c := range changed {
		switch {
		case c:
		case i > 0 && !changed[i-1]:
			spans[len(spans)-1].n++
		default:
			spans = append(spans, span{i, 1})
		}
	}
	return spans
}

func apply(s *device.Stream, out, in prefetch.Fields, kept []span, steps []step) error {
	for _, k := range kept {
		if err := out.Copy(s, k.first, in, k.first, k.n); err != nil {
			return err
		}
	}
	for i := range steps {
		if err := steps[i].apply(s, out, in); err != nil {
			return &OpError{steps[i].index, steps[i].Name, steps[i].in, err}
		}
	}
	return nil
}

func (st *step) apply(s *device.Stream, out, in prefetch.Fields) error {
	var source, target prefetch.Field
	if st.from == "" {
		source = in.Field(st.Field)
	} else {
		source = out.Scratch(st.from)
	}
	if st.to == "" {
		target = out.Field(st.Field)
	} else {
		target = out.Scratch(st.to)
	}
	return st.Apply(s, target, source, in)
}
