package prefetch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A batch tells of its own substitutes, also when its host slot holds a later one.
func TestABatchTellsItsOwnSubstitutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := canary{n: 12, width: 8, read: func(_ context.Context, i int) error {
			if i%2 == 0 {
				return errors.New("bad")
			}
			return nil
		}}
		r := newRig(t, data, cpu.Options{}, 2, loader.Options{Workers: 1, Epochs: 1, OnError: loader.Substitute},
			prefetch.Options{Depth: 4, Memory: prefetch.Memory{HostSlots: 1}})
		rd, err := r.pf.Open(t.Context())
		require.NoError(t, err)
		var held []prefetch.Batch
		for range 4 {
			b, err := rd.Next(t.Context())
			require.NoError(t, err)
			held = append(held, b)
			synctest.Wait()
			for _, b := range held {
				all := b.Substituted()
				require.Len(t, all, 1)
				require.EqualValues(t, b.Position().First, all[0].Position)
			}
		}
		for _, b := range held {
			b.Release()
		}
		require.NoError(t, rd.Close())
		r.close()
	})
}
