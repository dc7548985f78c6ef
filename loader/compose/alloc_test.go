//go:build !race

package compose_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
)

// The race detector makes pools forget at random, which allocates.
func TestASampleAllocatesNothing(t *testing.T) {
	for name, make := range combinations() {
		ds := must(make())
		s, err := loader.NewScratch(ds.Fields())
		require.NoError(t, err)
		row, i := s.Begin(new(loader.Row)), 0
		read := func() {
			require.NoError(t, ds.Read(t.Context(), i, row))
			i = (i + 1) % 1000
		}
		for range 1000 {
			read()
		}
		require.Zero(t, testing.AllocsPerRun(1000, read), name)
	}
}
