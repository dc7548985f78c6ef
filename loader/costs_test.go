package loader

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// spread is a dataset in which every 16th sample costs much.
type spread struct{ costly }

func (spread) Cost(index int) float64 { return float64(1 + index%16/15*100) }

func TestBeginningEarlyAllocatesNothing(t *testing.T) {
	l, err := New(spread{costly{1 << 30, func() {}}}, 64, Options{Workers: 2})
	require.NoError(t, err)
	mem, err := NewHeap(l.Layout().Size(), 4)
	require.NoError(t, err)
	run := l.Start(t.Context(), Cursor{}, mem)
	next := func() {
		f, err := run.Next(t.Context())
		require.NoError(t, err)
		mem.Put(f.Slot)
	}
	for range 1000 {
		next()
	}
	require.Zero(t, testing.AllocsPerRun(1000, next))
	require.NoError(t, run.Close())
}

// What is learnt is a byte a sample, exact to an eighth of a factor of two, and only if some
// samples cost much more than others.
func TestWhatSamplesCostIsLearnt(t *testing.T) {
	c := &costs{n: 10}
	c.note(3, 5*time.Millisecond, 4*time.Millisecond)
	c.note(4, 300*time.Microsecond, 100*time.Microsecond)
	require.False(t, c.known(), "all take about as long, or next to nothing")
	took := map[int]time.Duration{9: time.Second, 8: time.Millisecond, 3: 200 * time.Microsecond, 0: time.Hour}
	c.note(9, took[9], 4*time.Millisecond)
	for i, d := range took {
		c.note(i, d, time.Second)
	}
	require.Len(t, *c.learnt.Load(), 3)
	for i := range 10 {
		want := took[i].Seconds() / costFloor.Seconds()
		require.LessOrEqual(t, math.Abs(c.of(0, i)-want), 0.05*want, "sample %d", i)
	}
	c.note(9, 0, time.Second)
	require.InDelta(t, 1, c.of(0, 9), 1e-9, "what it took last counts")
	c.note(9, math.MaxInt64, time.Second)
	require.Positive(t, c.of(0, 9))
}

func TestCostsThatMakeNoSense(t *testing.T) {
	given := []float64{math.NaN(), -1, math.Inf(1), math.Inf(-1), 2}
	c := &costs{given: func(_, i int) float64 { return given[i] }}
	for i, want := range []float64{0, 0, maxCost, 0, 2} {
		require.Equal(t, want, c.of(0, i))
	}
}
