package observe

import (
	"context"
	"fmt"
	"iter"
	"runtime/trace"

	"github.com/leat-go/leat/prefetch"
)

// Steps is batches, a range of pf, as tasks of an execution trace: while one is taken, each
// step is a task "leat: step" with the regions "leat: wait" and "leat: body", and the loop's
// own regions belong to it if they begin with the context that observe.Context returns. With
// no trace it is batches itself.
//
//	for batch, err := range observe.Steps(ctx, pf.All(ctx)) {
func Steps(ctx context.Context, batches iter.Seq2[prefetch.Batch, error]) iter.Seq2[prefetch.Batch, error] {
	return func(yield func(prefetch.Batch, error) bool) {
		step := newTask(ctx)
		defer func() { step.end() }()
		for batch, err := range batches {
			if err == nil {
				step.deliver(batch)
			}
			if !yield(batch, err) {
				return
			}
			step.end()
			step = newTask(ctx)
		}
	}
}

// task is a step in an execution trace; without one it does nothing.
type task struct {
	ctx    context.Context
	task   *trace.Task
	region *trace.Region
}

func newTask(ctx context.Context) (t task) {
	if trace.IsEnabled() {
		t.ctx, t.task = trace.NewTask(ctx, "leat: step")
		t.region = trace.StartRegion(t.ctx, "leat: wait")
	}
	return t
}

func (t *task) deliver(b prefetch.Batch) {
	if t.task == nil {
		return
	}
	t.region.End()
	at := b.Position()
	trace.Log(t.ctx, "batch", fmt.Sprintf("%d of epoch %d", at.Batch, at.Epoch))
	t.region = trace.StartRegion(t.ctx, "leat: body")
}

func (t *task) end() {
	if t.task != nil {
		t.region.End()
		t.task.End()
		t.task = nil
	}
}
