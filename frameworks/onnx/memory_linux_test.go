package onnx_test

import (
	"fmt"
	"os"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/frameworks/onnx"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// Runs leave nothing behind, neither in Go's memory nor in C's: the
// tensors of 20,000 runs alone would be some 10 MB.
func TestMemoryStaysFlat(t *testing.T) {
	needRuntime(t)
	if race {
		t.Skip("the race detector's own memory grows")
	}
	pf := open(t, pictures(8), 4, loader.Options{}, prefetch.Options{})
	m := load(t, classify, pf, onnx.Options{})
	rd, err := pf.Open(t.Context())
	require.NoError(t, err)
	b, err := rd.Next(t.Context())
	require.NoError(t, err)
	run := func(times int) int64 {
		for range times {
			r, err := m.Run(t.Context(), b)
			require.NoError(t, err)
			r.Release()
		}
		debug.FreeOSMemory()
		return resident(t)
	}
	before := run(2000)
	require.Less(t, run(20_000)-before, int64(4<<20))
	b.Release()
	require.NoError(t, rd.Close())
}

// resident is how many bytes of the process are in memory.
func resident(t *testing.T) int64 {
	text, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	var size, pages int64
	_, err = fmt.Sscan(string(text), &size, &pages)
	require.NoError(t, err)
	return pages * int64(os.Getpagesize())
}
