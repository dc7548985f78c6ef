package quota_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/quota"
)

// choice is one of a schedule.
type choice struct {
	source int
	turn   int64
}

// first are the first choices, up to n.
func first(s *quota.Schedule, n int) (all []choice) {
	c := s.Cursor()
	for range n {
		source, turn, ok := c.Next()
		if !ok {
			break
		}
		all = append(all, choice{source, turn})
	}
	return all
}

func weights(w ...float64) []quota.Step { return []quota.Step{{Weights: w}} }

func TestEqualSourcesTakeTurns(t *testing.T) {
	s := quota.New(weights(2, 2, 2), quota.Lane{}, nil)
	all := first(s, 9)
	for i, c := range all {
		require.Equal(t, all[i%3].source, c.source)
		require.EqualValues(t, i/3, c.turn)
	}
}

func draw(t *rapid.T) (steps []quota.Step, limits []int64) {
	k := rapid.IntRange(1, 6).Draw(t, "sources")
	from := int64(0)
	for i := range rapid.IntRange(1, 3).Draw(t, "steps") {
		if i > 0 {
			from += int64(rapid.IntRange(1, 40).Draw(t, "choices"))
		}
		w := make([]float64, k)
		for j := range w {
			w[j] = rapid.SampledFrom([]float64{0, 1e-6, 0.1, 1, 2, 3, 1e9}).Draw(t, "weight")
		}
		w[rapid.IntRange(0, k-1).Draw(t, "positive")] = 1
		steps = append(steps, quota.Step{From: from, Weights: w})
	}
	if rapid.Bool().Draw(t, "limited") {
		for range k {
			limits = append(limits, int64(rapid.IntRange(0, 60).Draw(t, "limit")))
		}
	}
	return steps, limits
}

func TestAnyChoiceIsFoundWithoutThoseBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps, limits := draw(t)
		lane := quota.Lane{Of: rapid.IntRange(0, 4).Draw(t, "lanes")}
		lane.Number = rapid.IntRange(0, max(lane.Of-1, 0)).Draw(t, "lane")
		require.NoError(t, quota.Check("quota", "w", len(steps[0].Weights), steps))
		s := quota.New(steps, lane, limits)
		all := first(s, 300)
		if len(all) < 300 {
			require.EqualValues(t, len(all), s.Len())
		} else {
			require.GreaterOrEqual(t, s.Len(), int64(300))
		}
		turns := make([]int64, len(steps[0].Weights))
		c := s.Cursor()
		for range 20 {
			n := rapid.IntRange(0, len(all)).Draw(t, "n")
			c.Move(int64(n))
			require.EqualValues(t, n, c.At())
			for i := n; i < min(n+5, len(all)); i++ {
				source, turn, ok := c.Next()
				require.True(t, ok)
				require.Equal(t, all[i], choice{source, turn}, "choice %d from %d", i, n)
			}
		}
		for n, c := range all {
			require.Equal(t, turns[c.source], c.turn, "turns are counted one by one")
			turns[c.source]++
			at, ok := s.Position(c.source, c.turn)
			require.True(t, ok)
			require.EqualValues(t, n, at)
		}
		for i, limit := range limits {
			require.LessOrEqual(t, turns[i], limit)
			_, ok := s.Position(i, limit)
			require.False(t, ok)
		}
	})
}

// quotas asserts that before and after each of its turns a source is within a bound of its
// quota: these are the moments at which it is farthest away.
func quotas(t require.TestingT, w []float64, n int, bound func(share float64) float64) {
	sum := 0.0
	for _, w := range w {
		sum += w
	}
	s := quota.New(weights(w...), quota.Lane{}, nil)
	c, turns := s.Cursor(), make([]int64, len(w))
	for i := range n {
		source, turn, _ := c.Next()
		turns[source]++
		share := w[source] / sum
		if before, after := float64(i)*share-float64(turn), float64(turn+1)-float64(i+1)*share; max(before, after) >= bound(share) {
			require.Failf(t, "too far", "source %d of share %v: turn %d at choice %d", source, share, turn, i)
		}
	}
	for i, w := range w {
		require.InDelta(t, float64(n)*w/sum, turns[i], bound(w/sum), "source %d", i)
	}
}

func TestEachSourceIsNearItsQuotaAtAnyMoment(t *testing.T) {
	quotas(t, []float64{1, 1, 1e-6}, 3_000_000, func(share float64) float64 { return 1 + 3*share })
	thousand := make([]float64, 1000)
	for i := range thousand {
		thousand[i] = 1 / float64((i+1)*(i+1))
	}
	quotas(t, thousand, 3_000_000, func(share float64) float64 { return 1 + share*math.Sqrt(1000) })
	rapid.Check(t, func(t *rapid.T) {
		w := rapid.SliceOfN(rapid.Float64Range(1e-3, 10), 1, 20).Draw(t, "weights")
		quotas(t, w, 2000, func(share float64) float64 { return 1 + share*float64(len(w)) })
	})
}

// Over all lanes a source of little weight has as many turns as in one.
func TestLanesShareTheQuotas(t *testing.T) {
	for _, lanes := range []int{1, 2, 3, 8, 100} {
		w := []float64{1, 1, 1e-3}
		turns := make([]float64, len(w))
		const n = 200
		for lane := range lanes {
			for _, c := range first(quota.New(weights(w...), quota.Lane{Number: lane, Of: lanes}, nil), n) {
				turns[c.source]++
			}
		}
		for i := range w {
			require.InDelta(t, float64(n*lanes)*w[i]/2.001, turns[i], float64(3*lanes)*w[i]/2+1.01, "%d lanes, source %d", lanes, i)
		}
	}
}

// The shares change exactly at the stated choice, in lanes too.
func TestSharesChangeAtTheStatedChoice(t *testing.T) {
	for _, lanes := range []int{1, 2, 4, 7} {
		steps := []quota.Step{{From: 0, Weights: []float64{1, 0}}, {From: 640, Weights: []float64{0, 1}}, {From: 641, Weights: []float64{1, 0}}}
		for lane := range lanes {
			for n, c := range first(quota.New(steps, quota.Lane{Number: lane, Of: lanes}, nil), 1000/lanes) {
				want := 0
				if n*lanes+lane == 640 {
					want = 1
				}
				require.Equal(t, want, c.source, "%d lanes: choice %d of lane %d", lanes, n, lane)
			}
		}
	}
}

// A source whose turn is never reached between two changes has its turn all the same.
func TestWhatIsHalfDueStaysHalfDue(t *testing.T) {
	var steps []quota.Step
	for i := range 100 {
		w := []float64{1, 0.01}
		if i%2 == 1 {
			w = []float64{2, 0.02}
		}
		steps = append(steps, quota.Step{From: int64(10 * i), Weights: w})
	}
	turns := 0
	for _, c := range first(quota.New(steps, quota.Lane{}, nil), 1000) {
		turns += c.source
	}
	require.InDelta(t, 10, turns, 2)
}

func TestExtremes(t *testing.T) {
	s := quota.New(weights(1e-300, 1e300, 5e-324), quota.Lane{}, nil)
	c := s.Cursor()
	c.Move(1 << 61)
	source, turn, ok := c.Next()
	require.True(t, ok)
	require.Equal(t, choice{1, 1 << 61}, choice{source, turn})
	_, ok = s.Position(0, 0)
	require.False(t, ok, "it is too far away")
	_, ok = s.Position(1, math.MaxInt64)
	require.False(t, ok)

	s = quota.New(weights(1, 1e-9), quota.Lane{}, []int64{3, quota.Most})
	c = s.Cursor()
	c.Move(1_000_000)
	source, turn, ok = c.Next()
	require.True(t, ok)
	require.Equal(t, choice{1, 999_997}, choice{source, turn}, "the others have all turns of one that is left out")
	require.Equal(t, int64(quota.Most), s.Len())
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		steps []quota.Step
		want  string
	}{
		{nil, "w is empty"},
		{weights(1), "w[0].Weights is 1 weights, want 2"},
		{weights(0, 0), "w[0].Weights is [0 0], want one above 0"},
		{weights(1, -1), "w[0].Weights[1] is -1"},
		{weights(math.NaN(), 1), "w[0].Weights[0] is NaN"},
		{weights(1, math.Inf(1)), "w[0].Weights[1] is +Inf"},
		{weights(math.MaxFloat64, math.MaxFloat64), "a finite sum"},
		{[]quota.Step{{From: 1, Weights: []float64{1, 1}}}, "w[0].From is 1, want 0"},
		{[]quota.Step{{Weights: []float64{1, 1}}, {Weights: []float64{1, 1}}}, "w[1].From is 0, want more than the 0"},
		{[]quota.Step{{Weights: []float64{1, 1}}, {From: math.MaxInt64, Weights: []float64{1, 1}}}, "w[1].From"},
	} {
		err := quota.Check("quota", "w", 2, c.steps)
		require.ErrorContains(t, err, c.want)
		require.ErrorAs(t, err, new(*loader.OptionError))
	}
	require.NoError(t, quota.Check("quota", "w", 2, weights(0, 5e-324)))
}

func BenchmarkNext(b *testing.B) {
	for _, k := range []int{2, 10, 1000} {
		w := make([]float64, k)
		for i := range w {
			w[i] = 1 / float64(i+1)
		}
		b.Run(fmt.Sprintf("sources=%d", k), func(b *testing.B) {
			c := quota.New(weights(w...), quota.Lane{}, nil).Cursor()
			b.ReportAllocs()
			for b.Loop() {
				c.Next()
			}
		})
		b.Run(fmt.Sprintf("move/sources=%d", k), func(b *testing.B) {
			c := quota.New(weights(w...), quota.Lane{}, nil).Cursor()
			b.ReportAllocs()
			for i := int64(0); b.Loop(); i++ {
				c.Move(i * 7919 % 1_000_000)
			}
		})
	}
}
