package gorgonia

import (
	"errors"
	"iter"
	"maps"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/tensors"
)

// A Feed makes the batches of a pipeline the values of a graph's input nodes. One goroutine
// uses it at a time, as the machine.
type Feed struct {
	vm      G.VM
	rows    int // of a full batch
	inputs  []*input
	mask    *mask // nil if there is none
	graph   *G.ExprGraph
	tensors tensors.Cache
	// blanks stand in for values of nodes that lay in a batch, once that is gone.
	blanks map[*G.Node]*tensor.Dense
}

// New makes a Feed of a pipeline's batches. inputs says which field is the value of which
// node; the nodes are inputs of the one graph that vm runs. mask, which may be nil, is an
// input of one element for each row, Float32 or Float64: 1 for samples, 0 for rows that are
// missing or padding. Without a mask every batch has to be full, and other ones are
// [ErrShort]. The caller goes on to own vm, the graph and pf.
//
// The nodes have values of zeros from now on. The error joins every mistake: a [NodeError]
// for each field and the mask, [ErrNoInputs], [ErrDeviceMemory].
func New(vm G.VM, pf *prefetch.Prefetcher, inputs map[string]*G.Node, mask *G.Node) (*Feed, error) {
	if vm == nil || pf == nil {
		return nil, errors.New("gorgonia: no machine or no pipeline")
	}
	plan := pf.Plan()
	fields := plan.Fields
	if plan.Delivered != nil {
		fields = plan.Delivered
	}
	f := &Feed{vm: vm, rows: plan.BatchSize, blanks: map[*G.Node]*tensor.Dense{}}
	var errs []error
	if plan.Device != "" {
		errs = append(errs, ErrDeviceMemory)
	}
	if len(inputs) == 0 {
		errs = append(errs, ErrNoInputs)
	}
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		in, err := newInput(fields, name, inputs[name], f.rows)
		if err == nil && f.graph != nil && f.graph != in.node.Graph() {
			err = ErrOtherGraph
		}
		if err != nil {
			errs = append(errs, &NodeError{name, err})
			continue
		}
		f.inputs, f.graph = append(f.inputs, in), in.node.Graph()
	}
	if mask != nil {
		m, err := newMask(mask, f.rows)
		if err == nil && f.graph != nil && f.graph != mask.Graph() {
			err = ErrOtherGraph
		}
		if err != nil {
			errs = append(errs, &NodeError{"", err})
		}
		f.mask = m
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return f, nil
}

// Let ranges over batches of the Feed's pipeline: pf.Batches(ctx), or another of its ranges.
// In a body the batch is the value of the input nodes. Behind each body the machine is
// Reset, and no node has a value in the batch's memory. Batches without rows are left out.
// An error is yielded once, last.
func (f *Feed) Let(batches iter.Seq2[prefetch.Batch, error]) iter.Seq2[prefetch.Batch, error] {
	return func(yield func(prefetch.Batch, error) bool) {
		for b, err := range batches {
			if err == nil && b.Len() == 0 {
				continue
			}
			if err != nil {
				yield(prefetch.Batch{}, err)
				return
			}
			if more := f.body(b, yield); !more {
				return
			}
		}
	}
}

// body is one turn of a loop. What it leaves is left before the batch is released, and
// after a panic too.
func (f *Feed) body(b prefetch.Batch, yield func(prefetch.Batch, error) bool) (more bool) {
	defer f.leave(b)
	if err := f.enter(b); err != nil {
		yield(prefetch.Batch{}, err)
		return false
	}
	return yield(b, nil)
}

// enter makes a batch the value of all nodes.
func (f *Feed) enter(b prefetch.Batch) error {
	if f.mask == nil && b.Valid() < f.rows {
		return ErrShort
	}
	for _, in := range f.inputs {
		if err := in.enter(b, f.rows, &f.tensors); err != nil {
			return &NodeError{in.name, err}
		}
	}
	if f.mask != nil {
		f.mask.tell(b.Valid())
	}
	return nil
}

// leave takes a batch's memory out of the graph and the machine.
func (f *Feed) leave(b prefetch.Batch) {
	f.vm.Reset()
	for _, in := range f.inputs {
		// Its type and shape are the node's, so there is no error.
		_ = G.Let(in.node, in.own)
		lent := b.Field(in.name).Bytes
		for _, n := range f.graph.AllNodes() {
			if v := n.Value(); v != nil && within(v, lent) {
				_ = G.UnsafeLet(n, f.blank(n, v))
			}
		}
	}
}

// blank is a value of zeros that stands in for v.
func (f *Feed) blank(n *G.Node, v G.Value) *tensor.Dense {
	d := f.blanks[n]
	if d == nil {
		d = tensor.New(tensor.Of(v.Dtype()), tensor.WithShape(v.Shape()...))
		f.blanks[n] = d
	}
	return d
}
