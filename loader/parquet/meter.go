package parquet

import (
	"fmt"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// meter is Arrow's memory with a limit. The reader has no errors for memory, so what goes beyond
// panics, and the panic is caught where reading was begun.
type meter struct {
	limit int64
	held  atomic.Int64
	memory.Allocator
}

// limitError is what a meter panics with.
type limitError struct{ limit int64 }

func (e *limitError) Error() string { return fmt.Sprintf("more than %d bytes", e.limit) }

func newMeter(limit int64) *meter {
	return &meter{limit: limit, Allocator: memory.NewGoAllocator()}
}

func (m *meter) take(n int) {
	if n < 0 || m.held.Add(int64(n)) > m.limit {
		panic(&limitError{m.limit})
	}
}

// Allocate implements memory.Allocator.
func (m *meter) Allocate(size int) []byte {
	m.take(size)
	return m.Allocator.Allocate(size)
}

// Reallocate implements memory.Allocator.
func (m *meter) Reallocate(size int, b []byte) []byte {
	if size > len(b) {
		m.take(size - len(b))
	} else {
		m.held.Add(int64(size - len(b)))
	}
	return m.Allocator.Reallocate(size, b)
}

// Free implements memory.Allocator.
func (m *meter) Free(b []byte) {
	m.held.Add(-int64(len(b)))
	m.Allocator.Free(b)
}
