// Package serve answers requests of many goroutines in batches, over a Leat pipeline: what
// comes together is uploaded, computed and brought back together.
//
//	q, err := serve.New(compute, 32, model, step, serve.Options{MaxWait: 2 * time.Millisecond})
//	defer q.Close()
//	…
//	answer, err := q.Do(ctx, request) // in any goroutine
//
// # A request's way
//
//	Do ──▶ a place ──▶ Encode ──▶ the line ──▶ a batch ──▶ Step ──▶ Decode ──▶ Do returns
//
// A request is encoded before it stands in the line, into a row of its own. So one that is
// malformed, too large, or slow to encode fails or waits alone, and nothing that is in a
// batch can spoil the batch. It costs a copy of the row, and a row of memory for each
// request that is open.
//
// Who travels is decided at the last moment: when a batch can begin, and MaxBatch requests
// are ready or one of them has waited for Options.MaxWait. Until then a request can leave
// the line at no cost, and does when its context ends. Then all rows of the batch are handed
// to the pipeline at once, with a loader.Flush behind them. At most Options.InFlight batches
// are under way, one being uploaded, one computed and one brought back, so that none waits
// inside the pipeline where nobody could leave.
//
// # Who goes first
//
// Tenants take turns, one row each, so that nobody waits behind another's backlog, and a
// tenant alone has all rows. Among the requests of one tenant the first is the one that
// came first, where each step of Caller.Priority counts as having come
// Options.PriorityStep earlier. So a request is overtaken by more important ones only
// if they come soon after it: however many there are, it is at last the oldest of all.
//
// A request whose deadline comes before its answer could is left out, because its row would
// be lost: the time that batches took, by the number of those that were under way, says which
// ones that are. Under more load than can be carried, first come, first served would have
// every request computed just too late. A request that is left out stays in the line until
// its own deadline, and is computed after all if there is nothing else to do.
//
// # What may be relied on
//
// Each call of Do returns once, with its own answer or its own error, and an error says
// nothing of other requests: only one of the step, which is the whole batch's, is the same
// for all of them. After Do has returned nothing reads the request, and nothing changes the
// answer. Panics and runtime.Goexit in Size, Encode, Decode and a step are errors of
// the requests that they were called for, and the Queue goes on.
//
// A failure of the pipeline, such as a fault of the device, ends the Queue: every request
// gets it as a *Error of StagePipeline, and so does Shutdown.
//
// # Goroutines
//
// Nothing runs before the first Do. Then there are the pipeline's goroutines, one that takes
// its results, and those that run the user's code, as many as calls of Encode are under way
// at once. Shutdown and Close join all of them.
//
// # Reading this package
//
//	queue.go      Do, and the life of a Queue
//	visit.go      one request with its types
//	line.go       entering, leaving, being answered: who has a place
//	form.go       which requests make up the next batch, and when
//	tenant.go     turns and quotas
//	forecast.go   how long a batch will take
//	group.go      a batch under way
//	pipeline.go   the rows' way through package prefetch
//	crew.go       the goroutines that user code runs on
package serve
