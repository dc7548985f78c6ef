//go:build !race

// Under the race detector a sync.Pool forgets what it has now and then.

package serve_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/internal/invariants"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/serve"
)

func TestARequestAllocatesNothing(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the checks of -tags invariants allocate")
	}
	m := squares(nil)
	m.Decode = func(a serve.Answer) (int64, error) { return serve.Value[int64](a, "x") }
	m.Encode = func(_ context.Context, a ask, row *loader.Row) error {
		clear(loader.Column[uint8](row, "bytes"))
		return loader.Write(row, "x", a.number)
	}
	_, s := gpu(t, cpu.Options{})
	onGPU, err := serve.New(s, 8, m, onDevice(always(0)), serve.Options{})
	require.NoError(t, err)
	host, err := serve.NewHost(8, m, onHost(0), serve.Options{})
	require.NoError(t, err)
	for name, q := range map[string]*serve.Queue[ask, int64]{"device": onGPU, "host": host} {
		do := func() {
			if _, err := q.DoAs(t.Context(), serve.Caller{Tenant: "a"}, ask{number: 1}); err != nil {
				t.Fatal(err)
			}
		}
		for range 100 {
			do()
		}
		require.Zero(t, testing.AllocsPerRun(2000, do), name)
		require.NoError(t, q.Close())
	}
}
