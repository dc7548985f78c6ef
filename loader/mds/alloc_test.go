//go:build !race

package mds_test

import (
	"context"
	"testing"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/mds"
	"github.com/stretchr/testify/require"
)

// Reading a sample takes no memory once there is some.
func TestNoAllocation(t *testing.T) {
	s, err := mds.Open(t.Context(), "testdata/plain", mds.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	few := []loader.Field{fields[0], fields[5], fields[6], fields[7]}
	ds := s.Dataset(few, nil)
	scratch, err := loader.NewScratch(few)
	require.NoError(t, err)
	outer, ctx := new(loader.Row), context.Background()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if err := ds.Read(ctx, 3, scratch.Begin(outer)); err != nil {
			t.Error(err)
		}
	}))
}
