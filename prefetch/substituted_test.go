package prefetch_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// An epoch that is left and gone on with, in whatever way, has the limit of an epoch
// that is not: it ends at the same sample, or not at all.
func TestTheLimitOfSubstitutesIsTheEpochsHoweverItIsRead(t *testing.T) {
	read := func(t *testing.T, form, pause string, every int, shard loader.Shard, bad ...int) (failed error) {
		synctest.Test(t, func(t *testing.T) {
			data := canary{n: 32, width: 5, read: failing(bad...)}
			lo := loader.Options{Workers: 2, Epochs: 2, OnError: loader.Substitute, MaxSubstituted: 3, Last: loader.Drop, Shard: shard}
			batchSize := 4 / max(shard.Count, 1)
			r := newRig(t, data, adversarial(0), batchSize, lo, prefetch.Options{})
			begin := func() {
				require.NoError(t, r.pf.Close())
				ld, err := loader.New(data, batchSize, lo)
				require.NoError(t, err)
				r.pf, err = pipelines[form](r, ld)
				require.NoError(t, err)
			}
			begin()
			batches, back := 0, false
			for failed == nil && r.pf.Epoch() < 2 {
				for _, err := range r.pf.Batches(t.Context()) {
					if failed = err; err != nil {
						break
					}
					batches++
					if pause == "none" || batches%every > 0 {
						continue
					}
					if pause != "quiesce" {
						break
					}
					require.NoError(t, r.pf.Quiesce(t.Context()))
				}
				at := r.pf.State()
				switch pause {
				case "seek":
					require.NoError(t, r.pf.Seek(at.Epoch, at.Position))
				case "seek back":
					if batches >= 5 && !back {
						back = true
						require.NoError(t, r.pf.Seek(0, 8))
					}
				case "seek there and back":
					require.NoError(t, r.pf.Seek(at.Epoch, 0))
					require.NoError(t, r.pf.Seek(at.Epoch, at.Position))
				case "restore":
					require.NoError(t, r.pf.Restore(at))
				case "process":
					text, err := json.Marshal(at)
					require.NoError(t, err)
					begin()
					require.NoError(t, json.Unmarshal(text, &at))
					require.NoError(t, r.pf.Restore(at))
				}
			}
			r.close()
		})
		return failed
	}
	for form := range pipelines {
		// The second rank of two has the third and the fourth of every four samples.
		for _, shard := range []loader.Shard{{}, {Index: 1, Count: 2}} {
			for _, pause := range []string{"none", "break", "quiesce", "seek", "seek back", "seek there and back", "restore", "process"} {
				if pause == "process" && shard.Count > 1 {
					continue // of which a state cannot tell: see loader.State
				}
				for every := 1; every <= 3; every++ {
					t.Run(fmt.Sprint(form, shard.Count, pause, every), func(t *testing.T) {
						require.NoError(t, read(t, form, pause, every, shard, 3, 11, 19), "the same three in each epoch")
						var where *loader.Error
						require.ErrorAs(t, read(t, form, pause, every, shard, 3, 11, 19, 27), &where)
						require.Equal(t, [2]int{0, 27}, [2]int{where.Epoch, where.Sample})
						var failed *loader.SubstituteError
						require.ErrorAs(t, where, &failed)
						require.NoError(t, failed.Last)
					})
				}
			}
		}
	}
}
