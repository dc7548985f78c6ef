package prefetch_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// What a Replay delivers to a device is whole batches of the data, each of them right,
// for ever: also ragged ones, several to a copy, and behind a Transform.
func TestReplayThroughAPipeline(t *testing.T) {
	const k, size, steps = 3, 4, 60
	s := newText(40, raggedFields(30, 4), 7, 0.2)
	for name, po := range map[string]prefetch.Options{
		"plain":     {},
		"together":  {Depth: 4, BatchesPerCopy: 3},
		"few slots": {Depth: 1, Memory: prefetch.Memory{HostSlots: 1}},
		"transform": {Transform: copied(s)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ld, err := loader.New(s, size, loader.Options{Shuffle: true, Workers: 2})
				require.NoError(t, err)
				replay, err := loader.Replay(t.Context(), ld, k)
				require.NoError(t, err)
				r := newTextRig(t, cpu.Options{Model: modelled(time.Millisecond)})
				pf, err := prefetch.New(r.compute, replay, po)
				require.NoError(t, err)
				seen := map[string]int{}
				for b, err := range pf.All(t.Context()) {
					require.NoError(t, err)
					got := r.read(b)
					require.NoError(t, r.compute.Synchronize(t.Context()))
					if r.used = 0; po.Transform != nil {
						s.checkCopied(t, got)
					} else {
						s.check(t, got)
					}
					if seen[fmt.Sprint(dtype.As[int64](got["index"].bytes))]++; b.Position().Batch == steps-1 {
						break
					}
				}
				require.LessOrEqual(t, len(seen), k)
				require.NoError(t, pf.Close())
				r.close()
			})
		})
	}
}
