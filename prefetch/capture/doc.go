// Package capture submits a step of many short kernels as one item: it captures the step
// as a graph, once for each place where a batch can lie, and launches that graph at every
// later batch there.
//
//	step, err := capture.New[scalars](pf, model.Submit, capture.Options{})
//	defer step.Close()
//	for batch, err := range pf.All(ctx) {
//		if err != nil {
//			return err
//		}
//		if err := step.Run(batch, scalars{Rate: rate(n)}); err != nil {
//			return err
//		}
//	}
//
// What the pipeline does for a batch stays outside of the graph: the wait for its copy, and
// the mark that says that it was read.
//
// # What is baked in
//
// A graph repeats what it was captured with: the addresses, the grid, the scalars of every
// kernel. Addresses are right, since each place of a batch has a graph of its own, and so
// has each number of rows, valid rows and length of a ragged field. All else that changes
// from step to step is given to Run in a struct of numbers, which lies in device memory
// when the step begins: a learning rate, the number of the step, a seed. Kernels read it
// there.
//
// What changes and is not given to Run would silently stay what it was. So captures of
// different batches are compared, kernel by kernel and argument by argument:
//
//   - The step is captured at its first 16 uses, and at the first of each place. If two
//     captures differ before any graph was launched a second time, the step is not replayed:
//     it is submitted call by call, for good, and Report says why.
//   - It is captured again, and compared, whenever a sixteenth more uses have passed, or so
//     many that captures take a hundredth of the time, whichever comes first; at round uses:
//     2, 4, 8 and so on, 10, 20, 50, 100 and so on, and those behind them; of each shape of
//     batches at its uses 2, 4, 8 and so on. With LEAT_ORDER=1 in the environment it is
//     captured at every use. If a capture differs from those before, graphs may have been
//     launched that do something else than the step. Then Run returns a *ChangedError, which
//     names the kernel and both values, from there on.
//
// So a change that stays is found within the time of some hundred captures, a fraction of a
// second, or within a sixteenth of the steps before. What is done at a single step out of many
// and then undone is found when a capture happens to be at one of these: of every p-th step
// after p captures or so, wherever they lie. Until then steps have used the old value. Give it
// to Run and none does.
//
// These steps are submitted call by call as well, because nobody can compare what they do:
// those with a HostFunc, which is one closure now and another at the next step; those with
// copies from and to host memory, which may be somebody else's by the time of a replay; and
// those with work of other libraries whose parameters can't be read.
//
// # When the step's Go code runs
//
// The function given to New runs when the step is captured, also for a comparison, and when
// it is submitted call by call. It does not run when a graph is launched. So it must only
// submit work, and not count steps, draw random numbers or choose between buffers by a
// variable. It runs twice for one batch if the device has refused the capture. The numbers
// for Run are worked out by the caller, and so at every step.
//
// It must submit to the stream that it is given, which is not the batch's own during a
// capture, and to streams that wait for an event recorded in that one and are waited for in
// return. Work on any other stream, and any call that a capture forbids, makes the capture
// fail; see device.Stream.Capture. After a failed capture the step is submitted call by call,
// once. After three in a row it is so for good. One that another goroutine spoils, by
// synchronising the device for example, costs no more than that.
//
// # Randomness of the library's own
//
// What kernels.Crop draws depends on the position of the batch, which is a scalar of its
// launch: a step with it is not replayed. As an operation of a Transform it is outside of
// the step, and draws anew for every batch.
package capture
