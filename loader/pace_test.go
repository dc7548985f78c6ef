package loader

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// However coarse the clock, a claim takes about claimTime, and its size settles.
func TestClaimsByACoarseClock(t *testing.T) {
	for _, tick := range []time.Duration{1, 100, time.Microsecond, 500 * time.Microsecond, 15 * time.Millisecond} {
		for _, sample := range []time.Duration{20, time.Microsecond, 7 * time.Microsecond, 60 * time.Microsecond} {
			var now time.Duration
			p := pace{rows: 1}
			warmUp, claims, rows := 100*max(tick, time.Millisecond), 0, 0
			for now < 3*warmUp {
				n := p.rows
				began := now
				now += time.Duration(n) * sample
				p.measure(now/tick*tick-began/tick*tick, n)
				if began < warmUp {
					continue
				}
				claims++
				rows += n
				require.LessOrEqual(t, time.Duration(n)*sample, 3*claimTime, "tick %v, sample %v", tick, sample)
			}
			mean := time.Duration(rows/claims) * sample
			want := min(claimTime, maxClaim*sample)
			require.GreaterOrEqual(t, mean, want/2, "tick %v, sample %v", tick, sample)
		}
	}
}

// A sample may take longer than its cost in sixteenths of a nanosecond fits in 32 bits.
func TestAClaimOfVerySlowSamplesIsOne(t *testing.T) {
	for _, took := range []time.Duration{1 << 27, 1 << 28, time.Hour, 1 << 58} {
		p := pace{rows: maxClaim}
		p.measure(took, 1)
		require.Equal(t, 1, p.rows, "%v", took)
	}
}

// A sample that costs more than those before is noticed at once, one that costs less
// after a few claims.
func TestTheNextClaimGoesByTheLast(t *testing.T) {
	p := pace{rows: 512}
	p.measure(10*time.Millisecond, 500)
	require.Equal(t, 2, p.rows)
	for _, want := range []int{4, 8, 16, 32, 64, 128, 256, 500} {
		p.measure(time.Duration(p.rows)*100, p.rows)
		require.Equal(t, want, p.rows)
	}
	p.measure(3*100, 3) // what was left of a batch
	require.Equal(t, 500, p.rows)
}
