//go:build !race

package tfrecord_test

import (
	"testing"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/tfrecord"
	"github.com/stretchr/testify/require"
)

// Reading an Example takes no memory once there is some.
func TestNoAllocation(t *testing.T) {
	r, err := tfrecord.Open(t.Context(), file("examples.tfrecord"), tfrecord.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	ds := r.Examples(fields)
	scratch, err := loader.NewScratch(fields)
	require.NoError(t, err)
	outer := new(loader.Row)
	ctx := t.Context()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if err := ds.Read(ctx, 3, scratch.Begin(outer)); err != nil {
			t.Error(err)
		}
	}))
}
