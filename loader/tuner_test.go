package loader

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// load is what workers find: so many of them read rate(n) samples a second, and each sample
// takes a worker latency(n), of which the rest is spent waiting for rows or a processor.
type load struct {
	name    string
	rate    func(n float64) float64
	inRead  func(n float64) float64 // how many are in reads on average; nil: all
	latency time.Duration
	consume float64 // samples a second at most; 0 means any number
	noise   float64 // of a sample's time
	most    int
}

// waits is reads that wait, with room for so many at once.
func waits(latency time.Duration, room float64) func(float64) float64 {
	return func(n float64) float64 { return min(n, room) / latency.Seconds() }
}

// rows is what n workers read in a time, how long they were in reads and how long the
// consumer waited.
func (l *load) spend(r *rand.Rand, n int, d time.Duration) measures {
	can := l.rate(float64(n))
	rate := can
	if l.consume > 0 {
		rate = min(rate, l.consume)
	}
	in := float64(n)
	if l.inRead != nil {
		in = l.inRead(in)
	}
	m := measures{at: d, busy: time.Duration(in * rate / can * float64(d))}
	if l.consume == 0 {
		m.waited = d
	} else if can < l.consume {
		m.waited = time.Duration((1 - can/l.consume) * float64(d))
	}
	rows := rate * d.Seconds()
	if l.noise > 0 && rows > 0 {
		rows = max(0, rows+r.NormFloat64()*l.noise*math.Sqrt(rows))
	}
	whole := math.Floor(rows)
	if r.Float64() < rows-whole {
		whole++
	}
	m.rows = int64(whole)
	return m
}

// tune runs a tuner against loads, one after the other for a time each. It returns their rates
// over all of it and over the second half, and how many workers there were at the end.
func tune(t *testing.T, seed uint64, each time.Duration, loads ...load) (rates, late []float64, workers int, decisions []Decision) {
	r := rand.New(rand.NewPCG(seed, 1))
	most := loads[0].most
	u := newTuner(min(32, most), most, 0, func(from, to int, reason string) {
		decisions = append(decisions, Decision{From: from, To: to, Reason: reason})
	})
	var now measures
	for i := range loads {
		l := &loads[i]
		before, half, end := now.rows, int64(0), now.at+each
		for now.at < end {
			m := l.spend(r, u.workers, max(u.next-now.at, l.latency/time.Duration(u.workers)))
			now.at += m.at
			now.rows += m.rows
			now.busy += m.busy
			now.waited += m.waited
			u.step(now)
			if now.at < end-each/2 {
				half = now.rows
			}
			require.LessOrEqual(t, u.workers, most)
			require.Positive(t, u.workers)
		}
		rates = append(rates, float64(now.rows-before)/each.Seconds())
		late = append(late, float64(now.rows-half)/(each/2).Seconds())
	}
	return rates, late, u.workers, decisions
}

// best is the highest rate that any fixed number of workers has.
func (l *load) best() (rate float64) {
	for n := 1; n <= l.most; n++ {
		rate = max(rate, l.rate(float64(n)))
	}
	if l.consume > 0 {
		rate = min(rate, l.consume)
	}
	return rate
}

func TestTheTunerIsWithinFivePercentOfTheBestNumber(t *testing.T) {
	const ms = time.Millisecond
	cores := func(c float64, each time.Duration) (rate, inRead func(float64) float64) {
		return waits(each, c), func(n float64) float64 { return min(n, c) }
	}
	two, inTwo := cores(2, ms/10)
	fourteen, inFourteen := cores(14, ms)
	for _, l := range []load{
		{name: "reads that wait", rate: waits(5*ms, 1e9), latency: 5 * ms, most: 1024},
		{name: "reads that wait within a budget", rate: waits(5*ms, 1e9), latency: 5 * ms, most: 100},
		{name: "one worker is the budget", rate: waits(5*ms, 1e9), latency: 5 * ms, most: 1},
		{name: "slow reads that wait", rate: waits(300*ms, 1e9), latency: 300 * ms, most: 1024},
		{name: "jittery", rate: waits(5*ms, 200), latency: 5 * ms, noise: 1, most: 1024},
		{name: "bimodal", rate: waits(5*ms, 50), latency: 5 * ms, noise: 5, most: 1024},
		{name: "room for 150", rate: waits(5*ms, 150), latency: 5 * ms, most: 1024},
		{name: "room for 20", rate: waits(5*ms, 20), latency: 5 * ms, most: 1024},
		{name: "room for 3", rate: waits(5*ms, 3), latency: 5 * ms, most: 1024},
		{name: "each more slows the others", rate: func(n float64) float64 { return 200 * n / (1 + n*n/36) }, latency: 5 * ms, most: 1024},
		{name: "each more slows the others much, with jitter", rate: func(n float64) float64 { return 200 * n / (1 + n*n/9) }, latency: 5 * ms, noise: 1, most: 1024},
		{name: "gains fade", rate: func(n float64) float64 { return 200 * n / (1 + n/100) }, latency: 5 * ms, most: 1024},
		{name: "two cores", rate: two, inRead: inTwo, latency: ms / 10, most: 1024},
		{name: "fourteen cores", rate: fourteen, inRead: inFourteen, latency: ms, noise: 1, most: 1024},
		{name: "slow consumer", rate: waits(5*ms, 1e9), latency: 5 * ms, consume: 100, most: 1024},
		{name: "consumer needs 100", rate: waits(5*ms, 1e9), latency: 5 * ms, consume: 20000, noise: 1, most: 1024},
	} {
		for seed := range uint64(2) {
			rates, _, workers, decisions := tune(t, seed, max(time.Minute, 3000*l.latency, time.Duration(2e5/l.best()*1e9)), l)
			t.Logf("%s: %.3f of the best, %d workers, %d decisions", l.name, rates[0]/l.best(), workers, len(decisions))
			require.GreaterOrEqual(t, rates[0], 0.95*l.best(), "%s: %v", l.name, decisions)
		}
	}
}

// What reads cost changes, and the tuner follows within two minutes.
func TestTheTunerFollowsALoadThatChanges(t *testing.T) {
	const ms = time.Millisecond
	loads := []load{
		{name: "a disk", rate: waits(ms, 8), latency: ms, noise: 1, most: 1024},
		{name: "a network", rate: waits(20*ms, 300), latency: 20 * ms, noise: 1, most: 1024},
		{name: "a slow consumer", rate: waits(20*ms, 300), latency: 20 * ms, consume: 200, most: 1024},
		{name: "the network again", rate: waits(20*ms, 300), latency: 20 * ms, noise: 1, most: 1024},
		{name: "a lock", rate: func(n float64) float64 { return 2000 / (1 + n/64) }, latency: ms, noise: 1, most: 1024},
		{name: "the disk again", rate: waits(ms, 8), latency: ms, noise: 1, most: 1024},
	}
	for seed := range uint64(3) {
		_, rates, _, decisions := tune(t, seed, 4*time.Minute, loads...)
		for i := range loads {
			t.Logf("%s: %.3f of the best", loads[i].name, rates[i]/loads[i].best())
			require.GreaterOrEqual(t, rates[i], 0.95*loads[i].best(), "%s: %v", loads[i].name, decisions)
		}
	}
}

// Once it has found a number it tries others less and less often.
func TestTheTunerComesToRest(t *testing.T) {
	const ms = time.Millisecond
	l := load{rate: waits(5*ms, 64), latency: 5 * ms, noise: 1, most: 1024}
	_, _, _, first := tune(t, 1, 10*time.Minute, l)
	_, _, _, second := tune(t, 1, 20*time.Minute, l)
	require.NotEmpty(t, first)
	require.Less(t, len(second)-len(first), 200, "in ten minutes")
}

// A trial is told with what it was for and what came of it.
func TestTheTunerGivesReasons(t *testing.T) {
	const ms = time.Millisecond
	_, _, _, all := tune(t, 1, time.Second, load{rate: waits(5*ms, 64), latency: 5 * ms, most: 1024})
	require.Equal(t, Decision{From: 32, To: 64, Reason: "a trial: the consumer waits 100% of the time, the workers are in reads 100%"}, all[0])
	require.Equal(t, Decision{From: 64, To: 64, Reason: "kept: 64 workers read 12800 samples a second, 32 read 6400"}, all[1])
	require.Equal(t, 128, all[2].To)
	require.Equal(t, Decision{From: 128, To: 64, Reason: "128 workers read 12800 samples a second, 64 read 12800"}, all[3])
}

// Where reads compute, what the consumer waits for is the processors or the memory. The rate
// wavers with whatever else the machine does, and nothing is tried.
func TestReadsThatComputeAreLeftAlone(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const processors = 16
	tried := 0
	u := newTuner(32, 512, processors, func(_, _ int, _ string) { tried++ })
	var now measures
	for range 10_000 {
		d := max(u.next-now.at, leastSample)
		now.at += d
		now.rows += int64(d.Seconds() * 60e6 * (0.3 + 0.7*r.Float64()))
		now.busy += time.Duration(float64(d) * processors * (0.5 + 0.5*r.Float64()))
		now.waited += time.Duration(float64(d) * r.Float64())
		u.step(now)
	}
	require.Zero(t, tried)
	require.Equal(t, 32, u.workers)
}
