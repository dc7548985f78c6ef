// Package gomlx gives the batches of a pipeline to GoMLX's training loops.
//
//	pf, err := prefetch.NewHost(ld, prefetch.Options{})
//	ds, err := gomlx.Epochs(ctx, backend, pf, []string{"image"}, []string{"label"}, gomlx.Options{})
//	metrics, err := loop.RunEpochs(ds, 10)
//
// Workers read samples ahead into pinned memory, as always; a [Dataset] makes tensors of
// each batch when the loop asks for it.
//
// # One copy
//
// GoMLX takes a batch's tensors for good and frees them after the step, so they can't lie in
// a pipeline's memory, which is used again. Each field is copied once, into a new buffer of
// the backend, and the batch is released before the step begins. With the Go backend the
// copy is all there is: its buffers are where computations read. With an accelerator behind
// PJRT it is the transfer to the device itself. GoMLX has no way to view device memory that
// others own, so a pipeline for it is one of [prefetch.NewHost] there too.
//
// The copy runs on the goroutine that ranges, and not ahead of it, so that the pipeline's
// State is that of the step in hand.
//
// # Which range
//
// GoMLX calls Iter for each epoch, and for each run of steps. What that gives is chosen by
// the function that makes the Dataset:
//
//	Epochs   what is left of an epoch, the next one at the next call   for Loop.RunEpochs
//	Steps    all that is left, over the ends of epochs                 for Loop.RunSteps
//	Pass     the first epoch, whole, at each call                      for Trainer.Eval
//
// Epochs and Steps go on where the last call was left, so that a loop that is stopped, or
// restored in the middle of an epoch, misses nothing and gets nothing twice. With
// loader.Options.Epochs as many as the loop's, workers read ahead over the ends of epochs;
// with 0 the loop alone says how many there are.
//
// # Shapes
//
// A field of scalars gives a vector with one element for each row. As a label it has the
// shape [rows, 1], as GoMLX's losses want it.
//
// GoMLX compiles a graph again for each new shape. A last batch that is short is one more
// shape; [Options].Mask avoids it. A padded field of a ragged dataset has other lengths from
// batch to batch: loader.Ragged.Multiple keeps them few.
package gomlx
