package loader_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/loader"
)

// delivered is a batch, where batch is its size.
type delivered = batch

// Whatever samples cost, and whatever they are said to cost, what is delivered is the same:
// samples, order, substitutes, and the failure that ends it.
func TestCostsChangeNothingButWhenSamplesAreRead(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(r, "samples")
		times := rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 1, 1, 2, 10, 60}), n, n).Draw(r, "milliseconds")
		told := rapid.SliceOfN(rapid.SampledFrom([]float64{0, 1, 1, 2, 5, 50}), n, n).Draw(r, "costs")
		bad := rapid.SliceOfN(rapid.SampledFrom([]bool{false, false, false, false, false, false, false, true}), n, n).Draw(r, "bad")
		o := loader.Options{
			Shuffle: rapid.Bool().Draw(r, "shuffle"), Epochs: rapid.IntRange(1, 3).Draw(r, "epochs"),
			Workers: rapid.IntRange(0, 5).Draw(r, "workers"),
			OnError: rapid.SampledFrom([]loader.ErrorPolicy{loader.Fail, loader.Substitute}).Draw(r, "on error"),
		}
		batch, slots := rapid.IntRange(1, 9).Draw(r, "batch"), rapid.IntRange(1, 5).Draw(r, "slots")
		stop := rapid.IntRange(0, 200).Draw(r, "batches before it is closed")
		failed := errors.New("bad")
		data := numbers{n: n, before: func(_ context.Context, i int, _ *loader.Row) error {
			time.Sleep(time.Duration(times[i]) * time.Millisecond)
			if bad[i] {
				return failed
			}
			return nil
		}}
		deliver := func(ds loader.Dataset, o loader.Options, slots int) (all []delivered, err error) {
			synctest.Test(t, func(t *testing.T) {
				ld, failed := loader.New(ds, batch, o)
				require.NoError(r, failed)
				mem := heap(r, ld, slots)
				run := ld.Start(t.Context(), loader.Cursor{}, mem)
				for len(all) < stop && !errors.Is(err, loader.ErrEnd) {
					var b delivered
					if b, err = read(ld, run, mem); err == nil {
						all = append(all, b)
					} else if !errors.Is(err, loader.ErrEpochEnd) {
						break
					}
				}
				require.NoError(r, run.Close())
				require.Equal(r, slots, mem.Free())
			})
			return all, err
		}
		first := o
		first.Workers = 1
		want, wantErr := deliver(data, first, 1)
		priced := coster{priced: priced{numbers: data, takes: func(int) time.Duration { return 0 }}, cost: func(i int) float64 { return told[i] }}
		for _, ds := range []loader.Dataset{data, priced} {
			got, err := deliver(ds, o, slots)
			require.Equal(r, len(want), len(got))
			for i := range want {
				require.Equal(r, want[i].indices, got[i].indices)
				require.Equal(r, want[i].random, got[i].random)
				require.Equal(r, want[i].filled.After, got[i].filled.After)
				require.Equal(r, len(want[i].filled.Substituted), len(got[i].filled.Substituted))
			}
			if wantErr == nil {
				require.NoError(r, err)
				continue
			}
			require.Equal(r, wantErr.Error(), err.Error())
		}
	})
}
