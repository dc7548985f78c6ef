package slotmodel_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/internal/slotmodel"
)

// Whatever goes wrong, and whenever: every order of things keeps every promise.
func TestEveryInterleavingKeepsThePromises(t *testing.T) {
	for f := slotmodel.NoFault; f <= slotmodel.Stuck; f++ {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			r := slotmodel.Explore(slotmodel.Options{Fault: f})
			require.Empty(t, r.Violation, r)
			require.Greater(t, r.States, 50_000, "nothing was left out by mistake")
			t.Log(r)
		})
	}
}

// Without any one edge there is an order that breaks a promise.
func TestEveryEdgeIsNeeded(t *testing.T) {
	for e := slotmodel.WaitConsumed; e <= slotmodel.RecordBeforeRelease; e++ {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			r := slotmodel.Explore(slotmodel.Options{Without: e})
			require.NotEmpty(t, r.Violation)
			require.NotEmpty(t, r.Trace)
			t.Log(r)
		})
	}
}
