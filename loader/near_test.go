package loader_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
)

// nearHeap counts the approaches of each worker.
type nearHeap struct {
	*loader.Heap
	mu    sync.Mutex
	count map[int]int
}

func (h *nearHeap) Approach(worker int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count[worker]++
}

// Memory that is near is approached before anything is written to it, by workers that it
// can tell apart.
func TestWorkersApproachMemory(t *testing.T) {
	var mem *nearHeap
	data := numbers{n: 64, before: func(context.Context, int, *loader.Row) error {
		mem.mu.Lock()
		defer mem.mu.Unlock()
		if len(mem.count) == 0 {
			t.Error("a sample is read before its worker has approached the memory")
		}
		return nil
	}}
	ld, err := loader.New(data, 4, loader.Options{Workers: 3, Epochs: 1})
	require.NoError(t, err)
	mem = &nearHeap{Heap: heap(t, ld, 4), count: map[int]int{}}
	run := ld.Start(t.Context(), loader.Cursor{}, mem)
	for range 16 {
		f, err := run.Next(t.Context())
		require.NoError(t, err)
		mem.Put(f.Slot)
	}
	require.NoError(t, run.Close())
	require.NotEmpty(t, mem.count)
	for worker := range mem.count {
		require.GreaterOrEqual(t, worker, 0)
		require.Less(t, worker, 3)
	}
}
