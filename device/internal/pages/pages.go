// Package pages gets page-aligned memory for the CPU device.
//
// On unix the memory is mapped outside the Go heap: gigabytes of slots are then
// nothing to the garbage collector, and a pointer kept after Free faults instead
// of reading somebody else's data. Elsewhere it comes from the Go heap, and under
// the race detector too, which watches nothing else.
package pages

import (
	"errors"
	"os"
)

var (
	// ErrNoMemory: the system refused the memory.
	ErrNoMemory = errors.New("the system has no memory left to give")
	// ErrLockLimit: the system refused to lock pages in memory.
	ErrLockLimit = errors.New("the system refused to lock the pages")
)

// Size is the size of a page in bytes.
var Size = os.Getpagesize()
