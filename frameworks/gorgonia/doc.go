// Package gorgonia gives the batches of a pipeline to the graphs of gorgonia.org/gorgonia,
// without a copy.
//
//	vm := G.NewTapeMachine(g, G.BindDualValues(weights...))
//	pf, err := prefetch.NewHost(ld, prefetch.Options{})
//	feed, err := gorgonia.New(vm, pf, map[string]*G.Node{"image": x, "label": y}, mask)
//	for batch, err := range feed.Let(pf.Batches(ctx)) {
//		if err != nil {
//			return err
//		}
//		if err := vm.RunAll(); err != nil {
//			return err
//		}
//		if err := solver.Step(model); err != nil {
//			return err
//		}
//	}
//
// # No copy
//
// In a body the input nodes have tensors over the batch's own memory. A node may have any
// shape that has the batch's rows first and as many elements as the field: [rows, 784] for
// images of [28, 28].
//
// A graph has one shape for good. A batch that is short is copied to memory of the Feed, as
// large as a full one, with zeros for the rows that are missing; the mask tells them from
// the others.
//
// # What the graph refers to
//
// The memory of a batch holds another one after its body. So a body ends with a Reset of the
// machine, whose registers would refer to it and be written to by the next run; the input
// nodes get memory of the Feed; and the values of other nodes that lie in the batch, as that
// of a Reshape of an input does, are replaced by zeros. What remains is a graph that can be
// looked at and run. Values that nodes have in memory of their own, the cost and the
// predictions among them, stay.
//
// Gorgonia's CUDA machine makes a CUDA context of its own, in which device memory of others
// is unknown: a pipeline for it is one of [prefetch.NewHost] too.
package gorgonia
