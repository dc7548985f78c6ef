package stream_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/compose"
	"github.com/leat-go/leat/loader/stream"
	"github.com/leat-go/leat/prefetch"
)

// Weights that change at global sample 640, step 80 of batches of 8, over streams and over
// datasets: the sources come in the same order on 1, 2 and 4 ranks, with 1 and 16 workers and
// 1 to 8 slots, and after a stop on either side of the change.
func TestWeightsChangeAtASampleWhateverReads(t *testing.T) {
	const from, global, steps = 640, 8, 100
	first, second := []float64{3, 1}, []float64{1, 3}
	negative := func(n int) int64 { return -int64(n) - 1 }
	streams := encodeNumber(stream.MixSteps(stream.UntilFirstEnds,
		[]stream.Step{{Weights: first}, {From: from, Weights: second}},
		stream.Source[int64]{Stream: stream.Map(endless(4), nil2(func(n int) int64 { return int64(n) }))},
		stream.Source[int64]{Stream: stream.Map(endless(4), nil2(negative))}))
	numbers := func(of func(int) int64) loader.Dataset {
		return loader.FromFunc(700, []loader.Field{{Name: "n", DType: dtype.Int64}}, func(_ context.Context, i int, row *loader.Row) error {
			return loader.Write(row, "n", of(i))
		})
	}
	mixed, err := compose.MixSteps(1, compose.UntilFirstEnds, []compose.Step{{Weights: first}, {From: from, Weights: second}},
		compose.Source{Dataset: numbers(func(n int) int64 { return int64(n) })}, compose.Source{Dataset: numbers(negative)})
	require.NoError(t, err)
	for name, open := range map[string]func(batch int, o loader.Options) (*loader.Loader, error){
		"streams": func(batch int, o loader.Options) (*loader.Loader, error) {
			o.Steps = steps
			return loader.NewStream(streams, batch, o)
		},
		"datasets": func(batch int, o loader.Options) (*loader.Loader, error) { return loader.New(mixed, batch, o) },
	} {
		begin := func(ranks, workers, depth int) (w world) {
			for rank := range ranks {
				o := loader.Options{Seed: 5, Workers: workers, Last: loader.Drop}
				if ranks > 1 {
					o.Shard = loader.Shard{Index: rank, Count: ranks}
				}
				ld, err := open(global/ranks, o)
				require.NoError(t, err)
				pf, err := prefetch.NewHost(ld, prefetch.Options{Memory: prefetch.Memory{HostSlots: depth}})
				require.NoError(t, err)
				w = append(w, pf)
			}
			return w
		}
		w := begin(1, 1, 1)
		want := w.steps(t, steps)
		w.close(t)
		seconds := 0
		for i, batch := range want {
			for _, n := range batch {
				if n < 0 {
					seconds++
				}
			}
			quota := float64(min(i+1, 80))*2 + float64(max(i+1-80, 0))*6
			require.InDelta(t, quota, seconds, 2, "%s, behind step %d", name, i)
		}
		for _, ranks := range []int{1, 2, 4} {
			for _, workers := range []int{1, 16} {
				for depth := 1; depth <= 8; depth++ {
					what := fmt.Sprintf("%s: %d ranks, %d workers, depth %d", name, ranks, workers, depth)
					w := begin(ranks, workers, depth)
					require.Equal(t, want[:79], w.steps(t, 79), what)
					for stop := 79; stop <= 81; stop++ {
						state := stateOf(t, w, name == "streams")
						other := begin(4/ranks, 17-workers, 9-depth)
						other.restore(t, state)
						require.Equal(t, want[stop:], other.steps(t, steps-stop), "%s, stopped behind %d", what, stop)
						other.close(t)
						require.Equal(t, want[stop:stop+1], w.steps(t, 1), what)
					}
					w.close(t)
				}
			}
		}
	}
}

// stateOf is that of all ranks: of datasets any one's.
func stateOf(t *testing.T, w world, merged bool) loader.State {
	if merged {
		return w.state(t)
	}
	for _, pf := range w {
		require.Equal(t, w[0].State(), pf.State())
	}
	return w[0].State()
}
