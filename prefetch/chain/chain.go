package chain

import (
	"errors"
	"fmt"
	"slices"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// An Op is one operation on one field: one of this package's, made of package
// kernels, or the user's own. It describes work and holds no state of its uses, so
// that one Op may be in several chains, of fields of other shapes.
type Op struct {
	// Field is the name of the field that it changes.
	Field string
	// Becomes says what the field is afterwards; its name is not looked at. An
	// error says why the field, as it comes in, won't do.
	Becomes func(field loader.Field) (loader.Field, error)
	// Apply submits the work to s: it overwrites out and reads in, of the shapes
	// that Becomes told with the rows in front. batch says which batch it is. What
	// depends on the shape is worked out from in, and not kept from Becomes, which
	// may have been called for another chain since.
	Apply func(s *device.Stream, out, in prefetch.Field, batch prefetch.Fields) error
}

// New makes a Transform of operations, done in their order. fields are those that
// the loader fills; a field that no Op names is passed on as it is. prefetch.New
// refuses the Transform for a loader of other fields. The error names every mistake.
func New(fields []loader.Field, ops ...Op) (*prefetch.Transform, error) {
	if _, err := loader.NewLayout(fields, 1); err != nil {
		return nil, fmt.Errorf("chain: %w", err)
	}
	t := &prefetch.Transform{In: cloneFields(fields), Out: cloneFields(fields)}
	number := make(map[string]int, len(fields))
	for i, f := range fields {
		number[f.Name] = i
	}
	changed := make([]bool, len(fields))
	var steps []link
	var errs []error
	for i, op := range ops {
		at, ok := number[op.Field]
		if !ok {
			errs = append(errs, fmt.Errorf("operation %d: no field %q", i, op.Field))
			continue
		}
		next, err := op.becomes(t.Out[at])
		if err != nil {
			errs = append(errs, fmt.Errorf("operation %d on %v: %w", i, t.Out[at], err))
			continue
		}
		t.Out[at], changed[at] = next, true
		steps = append(steps, link{op: op, becomes: next})
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("chain: %w", errors.Join(errs...))
	}
	t.Scratch = connect(steps)
	kept := unchanged(changed)
	t.Apply = func(s *device.Stream, out, in prefetch.Fields) error { return apply(s, out, in, kept, steps) }
	return t, nil
}

// becomes is what f is behind the operation, checked.
func (op *Op) becomes(f loader.Field) (loader.Field, error) {
	if op.Becomes == nil || op.Apply == nil {
		return f, errors.New("Becomes or Apply is nil")
	}
	next, err := op.Becomes(cloneFields([]loader.Field{f})[0])
	if err != nil {
		return f, err
	}
	next.Name = f.Name
	if _, err := loader.NewLayout([]loader.Field{next}, 1); err != nil {
		return f, fmt.Errorf("it would become %v: %w", next, err)
	}
	return cloneFields([]loader.Field{next})[0], nil
}

// cloneFields is a copy that shares no shape: the caller may go on to change its own.
func cloneFields(fields []loader.Field) []loader.Field {
	fields = slices.Clone(fields)
	for i := range fields {
		fields[i].Shape = slices.Clone(fields[i].Shape)
	}
	return fields
}

// A link is an operation in its chain.
type link struct {
	op       Op
	becomes  loader.Field
	from, to string // names of scratch fields; empty for the first and the last of a field
}

// connect gives each field's operations scratch fields between them.
func connect(steps []link) (scratch []loader.Field) {
	last := map[string]int{} // by field, the step before
	for i := range steps {
		if before, ok := last[steps[i].op.Field]; ok {
			f := steps[before].becomes
			f.Name = fmt.Sprintf("%s after operation %d", f.Name, before)
			steps[before].to, steps[i].from = f.Name, f.Name
			scratch = append(scratch, f)
		}
		last[steps[i].op.Field] = i
	}
	return scratch
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

func apply(s *device.Stream, out, in prefetch.Fields, kept []span, steps []link) error {
	for _, k := range kept {
		if err := out.Copy(s, k.first, in, k.first, k.n); err != nil {
			return err
		}
	}
	for i := range steps {
		l := &steps[i]
		from, to := in.Field, out.Field
		source, target := l.op.Field, l.op.Field
		if l.from != "" {
			from, source = out.Scratch, l.from
		}
		if l.to != "" {
			to, target = out.Scratch, l.to
		}
		if err := l.op.Apply(s, to(target), from(source), in); err != nil {
			return err
		}
	}
	return nil
}
