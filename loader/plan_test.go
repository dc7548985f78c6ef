package loader

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// begun is a step of an epoch: where it begins, and its batch size.
type begun struct{ from, size int64 }

// stepwise is what plan says, worked out position by position.
func stepwise(p *plan, epoch int, from int64) (steps []begun) {
	jumped := func(position int64) bool {
		at := Cursor{Epoch: epoch, Position: position}
		for _, s := range p.jumped {
			if s.From.compare(at) <= 0 && at.compare(s.To) < 0 {
				return true
			}
		}
		return false
	}
	for from < p.samples {
		if jumped(from) {
			from++
			continue
		}
		size := p.batch
		for _, s := range p.sizes {
			if int64(epoch)*p.samples+from >= s.Sample {
				size = int64(s.BatchSize)
			}
		}
		if p.last == Drop && p.samples-from < size*p.ranks {
			break
		}
		steps = append(steps, begun{from, size})
		from += size * p.ranks
	}
	return steps
}

func drawPlan(t *rapid.T) *plan {
	p := &plan{split: split{
		samples: int64(rapid.IntRange(0, 60).Draw(t, "samples")),
		batch:   int64(rapid.IntRange(1, 5).Draw(t, "batch")),
		ranks:   int64(rapid.IntRange(1, 4).Draw(t, "ranks")),
		last:    rapid.SampledFrom([]LastPolicy{Keep, Drop, Pad, Exact}).Draw(t, "last"),
	}}
	if rapid.Bool().Draw(t, "schedule") {
		p.sizes = []SizeFrom{{0, int(p.batch)}}
		for at := int64(0); len(p.sizes) < 4; {
			at += int64(rapid.IntRange(1, 50).Draw(t, "sample"))
			p.sizes = append(p.sizes, SizeFrom{at, rapid.IntRange(1, 5).Draw(t, "size")})
		}
	}
	at := Cursor{}
	place := func(label string) Cursor {
		to := Cursor{Epoch: at.Epoch + rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, label+" epoch")}
		if to.Epoch == at.Epoch {
			to.Position = min(at.Position+1, p.samples)
		}
		to.Position = int64(rapid.IntRange(int(to.Position), int(p.samples)).Draw(t, label))
		return to
	}
	for range rapid.IntRange(0, 3).Draw(t, "spans") {
		from := place("from")
		at = from
		to := place("to")
		at = to
		p.jumped = append(p.jumped, Span{from, to})
	}
	return p
}

func TestStepsAreWhatWalkingFromSampleToSampleFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		epoch := rapid.IntRange(0, 4).Draw(t, "epoch")
		from := rapid.Int64Range(0, p.samples).Draw(t, "from")
		want := stepwise(p, epoch, from)
		at := Cursor{Epoch: epoch, Position: from}
		for n, step := range want {
			require.EqualValues(t, len(want)-n, p.left(at))
			s, begin, ok := p.step(at)
			require.True(t, ok)
			require.Equal(t, step, begun{begin, s.batch})
			for rank := range s.ranks {
				s.rank = rank
				part := s.part(begin)
				require.Equal(t, begin+rank*step.size, part.position)
				require.Equal(t, min(begin+step.size*p.ranks, p.samples), part.after)
				require.Equal(t, min(max(p.samples-part.position, 0), step.size), int64(part.valid))
			}
			at.Position = s.part(begin).after
		}
		require.Zero(t, p.left(at))
		for n := range len(want) + 1 {
			to, steps := p.advance(Cursor{Epoch: epoch, Position: from}, int64(n))
			require.EqualValues(t, n, steps)
			require.EqualValues(t, len(want)-n, p.left(to))
		}
		if p.alike(epoch) {
			require.Equal(t, stepwise(p, epoch, 0), stepwise(p, epoch+1, 0))
		}
	})
}

// No two steps of an epoch have one number, and where whole steps are jumped over all
// others keep theirs.
func TestStepsKeepTheirNumbersWhereOthersAreJumpedOver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		epoch := rapid.IntRange(0, 4).Draw(t, "epoch")
		last := -1
		for _, step := range stepwise(p, epoch, 0) {
			n := p.number(Cursor{Epoch: epoch, Position: step.from})
			require.Greater(t, n, last)
			last = n
		}
		p.jumped = nil
		steps := stepwise(p, epoch, 0)
		for n := 0; n < len(steps)-1; n++ {
			if length := rapid.IntRange(0, 2).Draw(t, "jumped over"); length > 0 {
				to := min(n+length, len(steps)-1)
				p.jumped = append(p.jumped, Span{Cursor{Epoch: epoch, Position: steps[n].from}, Cursor{Epoch: epoch, Position: steps[to].from}})
				n = to
			}
		}
		for n, step := range steps {
			require.Equal(t, n, p.number(Cursor{Epoch: epoch, Position: step.from}))
		}
	})
}

func TestPlansOfTheLargestNumbers(t *testing.T) {
	p := &plan{split: split{samples: maxSamples, batch: 1, ranks: 1, last: Drop},
		sizes: []SizeFrom{{0, 1}, {maxSamples + 1, 2}, {math.MaxInt64, 3}}}
	require.Equal(t, int64(maxSamples), p.left(Cursor{}))
	require.Equal(t, int64(1+(maxSamples-1)/2), p.left(Cursor{Epoch: 1}))
	require.Equal(t, int64(maxSamples/3), p.left(Cursor{Epoch: maxEpoch}), "past what an int64 counts")
	require.EqualValues(t, int64(1+(maxSamples-2)/2), p.number(Cursor{Epoch: 1, Position: maxSamples - 1}))
	require.True(t, p.alike(maxEpoch))
	require.False(t, p.alike(1))
}
