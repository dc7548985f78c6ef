package loader

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// However coarse the clock, a chunk takes about 100 µs, and its size settles.
func TestChunksByACoarseClock(t *testing.T) {
	for _, tick := range []time.Duration{1, 100, time.Microsecond, 500 * time.Microsecond, 15 * time.Millisecond} {
		for _, sample := range []time.Duration{20, time.Microsecond, 7 * time.Microsecond, 60 * time.Microsecond} {
			r := &Run{workers: make([]*worker, 4)}
			var now time.Duration
			var tally tally
			warmUp, chunks, rows := 100*max(tick, time.Millisecond), 0, 0
			for now < 3*warmUp {
				n := r.grain(4096)
				began := now
				now += time.Duration(n) * sample
				r.measure(&tally, now/tick*tick-began/tick*tick, n)
				if began < warmUp {
					continue
				}
				chunks++
				rows += n
				require.LessOrEqual(t, time.Duration(n)*sample, 4*longest, "tick %v, sample %v", tick, sample)
			}
			mean := time.Duration(rows/chunks) * sample
			want := min(shortest, maxChunk*sample)
			require.GreaterOrEqual(t, mean, want/2, "tick %v, sample %v", tick, sample)
		}
	}
}

// A sample may take longer than its cost in sixteenths of a nanosecond fits in 32 bits.
func TestAChunkOfVerySlowSamplesIsOne(t *testing.T) {
	r := &Run{workers: make([]*worker, 4)}
	for _, took := range []time.Duration{1 << 27, 1 << 28, time.Hour, 1 << 58} {
		r.cost.Store(0)
		r.measure(new(tally), took, 1)
		require.Equal(t, 1, r.grain(4096), "%v", took)
	}
}
