package stream_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/stream"
)

// The one promise about state: compositions of compositions, stopped behind each step and gone
// on with by another number of ranks, and then once more by a third, give the global batches
// of the run that nobody stopped. Of records that fail each costs itself.
func TestCompositionsGoOnInAnotherWorld(t *testing.T) {
	const steps, epochs, all = 4, 2, 8
	rapid.Check(t, func(r *rapid.T) {
		var open atomic.Int64
		c := &composer{t: r, open: &open, shards: 4, steady: true, bad: rapid.Bool().Draw(r, "bad")}
		m := c.any(rapid.IntRange(1, 4).Draw(r, "depth"))
		some := stream.Concat(m.s, count(&open, -50, 8, 4)) // no shard is empty
		data := encodeNumber(stream.Map(some, nil2(func(n int) int64 { return int64(n) })))
		ranks := func(label string) int { return rapid.SampledFrom([]int{1, 2, 4}).Draw(r, label) }
		o := loader.Options{Seed: rapid.Uint64().Draw(r, "seed"), Steps: steps, Epochs: epochs, OnError: loader.SkipFailed}

		whole := newWorld(t, data, ranks("first world"), o)
		var want [][]int64
		states := []loader.State{whole.state(t)}
		for range all {
			want = append(want, whole.steps(t, 1)...)
			states = append(states, whole.state(t))
		}
		whole.close(t)
		second, third := ranks("second world"), ranks("third world")
		for stop, state := range states {
			w := newWorld(t, data, second, o)
			w.restore(t, state)
			again := min(all, stop+1+stop%3)
			got := w.steps(t, again-stop)
			state = w.state(t)
			w.close(t)
			w = newWorld(t, data, third, o)
			w.restore(t, state)
			got = append(got, w.steps(t, all-again)...)
			w.close(t)
			require.Equal(t, want[stop:], append([][]int64{}, got...), "%s, stopped behind %d and %d", m.name, stop, again)
		}
		require.Zero(t, open.Load(), m.name)
	})
}
