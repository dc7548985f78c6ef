//go:build invariants

package prefetch_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/internal/invariants"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A Prefetcher that is forgotten is reported with the place that made it, one that
// was closed is not, and nothing of either is freed by the garbage collector.
func TestAForgottenPrefetcherIsReported(t *testing.T) {
	reports := make(chan string, 10)
	defer invariants.OnLeak(func(report string) {
		if strings.Contains(report, "leak_test.go") { // and not what another test has left
			reports <- report
		}
	})()
	dev, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	compute, err := dev.NewStream(device.StreamOptions{})
	require.NoError(t, err)
	ld, err := loader.New(canary{n: 10, width: 4}, 2, loader.Options{Workers: 1})
	require.NoError(t, err)

	nextLine := func() string {
		_, _, line, _ := runtime.Caller(1)
		return fmt.Sprint("leak_test.go:", line+1)
	}
	var ofClosed, ofIdle, ofLeaves, ofLease string
	func() {
		ofClosed = nextLine()
		closed, err := prefetch.New(compute, ld, prefetch.Options{})
		require.NoError(t, err)
		require.NoError(t, closed.Close())
		ofIdle = nextLine()
		idle, err := prefetch.New(compute, ld, prefetch.Options{})
		require.NoError(t, err)
		require.Zero(t, idle.Epoch())
		ofLeaves = nextLine()
		leaves, err := prefetch.New(compute, ld, prefetch.Options{})
		require.NoError(t, err)
		rd, err := leaves.Open(t.Context())
		require.NoError(t, err)
		ofLease = nextLine()
		_, err = rd.Next(t.Context())
		require.NoError(t, err)
		require.NoError(t, rd.Close())
	}()
	var all string
	for range 2 {
		all += collect(reports) + "\n"
	}
	require.NotContains(t, all, ofClosed)
	require.Contains(t, all, ofIdle+" was never closed\n")
	require.Contains(t, all, ofLeaves+" was never closed, with batches not released: epoch 0, batch 0, taken at ")
	require.Contains(t, all, ofLease+"\n")
	require.EqualValues(t, 2*3, dev.Usage().Buffers)
}

// collect runs the garbage collector until it has taken something.
func collect(reports <-chan string) string {
	for {
		select {
		case report := <-reports:
			return report
		default:
			runtime.GC()
		}
	}
}
