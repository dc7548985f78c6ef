//go:build invariants

package prefetch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/pinnedpool"
	"github.com/leat-go/leat/prefetch"
)

// hoarder is a dataset that keeps the slice that it was lent for sample 3.
type hoarder struct{ kept *[]uint8 }

func (hoarder) Len() int { return 8 }

func (hoarder) Fields() []loader.Field {
	return []loader.Field{{Name: "label", DType: dtype.Uint8}, {Name: "image", DType: dtype.Uint8, Shape: []int{5}}}
}

func (h hoarder) Read(_ context.Context, index int, row *loader.Row) error {
	row.Bytes("label")[0] = uint8(index)
	image := row.Bytes("image")
	clear(image)
	if index == 3 {
		*h.kept = image
	}
	return nil
}

// A producer that goes on writing after its sample is submitted is found, and the
// field and the row are named, whether the slot was copied or read by the host.
func TestAProducerThatKeepsItsSliceIsFound(t *testing.T) {
	for _, host := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, canary{n: 4, width: 1}, adversarial(time.Millisecond), 2, plain, prefetch.Options{})
			var kept []uint8
			ld, err := loader.New(hoarder{&kept}, 4, loader.Options{Workers: 1})
			require.NoError(t, err)
			po := prefetch.Options{BatchesPerCopy: 1, Memory: prefetch.Memory{HostSlots: 2}}
			pf, err := prefetch.New(r.compute, ld, po)
			if host {
				require.NoError(t, pf.Close())
				pf, err = prefetch.NewHost(ld, po)
			}
			require.NoError(t, err)
			for _, err := range pf.Batches(t.Context()) {
				require.NoError(t, err)
			}
			require.NoError(t, r.dev.Synchronize(t.Context()))
			synctest.Wait()
			require.Equal(t, 2, pf.Stats().Pool.Free)
			kept[2] = 9
			var failed error
			for _, err := range pf.Batches(t.Context()) {
				failed = err
			}
			var found *pinnedpool.OverwriteError
			require.ErrorAs(t, failed, &found)
			require.ErrorContains(t, failed, `field "image", row 3`)
			require.Equal(t, 1, pf.Stats().Pool.Quarantined)
			require.ErrorContains(t, pf.Close(), "not back", "whoever wrote may do so again")
			if host {
				r.close()
			}
		})
	}
}
