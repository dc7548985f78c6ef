package loader

import (
	"fmt"
	"math"
	"time"
)

// A tuner finds how many workers there should be, from nothing but what they have done. It
// tries more or fewer for a while, and keeps to them if that pays. It has no clock and no
// goroutine: it is told what was measured, and says when it is to be told again.
//
// Workers are tried only while the consumer waits, and reads wait too: more of them go on than
// there are processors. More of them are tried only if those that
// there are spend their time in user code: where they wait for rows, for shards or for a
// processor, others would wait too. Steps begin with a factor of two, and become smaller
// where neither more nor fewer pay. Then the tuner rests, longer each time, until the rate
// changes.
type tuner struct {
	most    int
	first   int
	compute float64 // so many may be in reads that only compute
	workers int     // as many are to be there now,
	kept    int     // and when no trial is under way

	from    measures      // the beginning of the sample under way
	next    time.Duration // when it may end
	settled bool          // it began when the last change of workers was over
	rates   sampled       // by workers
	base    sampled       // by kept

	begun    time.Duration // the search
	factor   float64
	up, down bool          // whether more and fewer were tried with it
	until    time.Duration // the end of the rest
	rest     time.Duration // how long it is
	drifted  int           // samples in a row, of another rate than base

	decided func(from, to int, reason string)
}

const (
	// A sample takes this long at least, and until so many rows are read and as many as there
	// are workers, apart from those on trial.
	leastSample = 100 * time.Millisecond
	sampleRows  = 64
	// A trial is decided by these numbers of samples: not before, unless the difference is
	// great, and no later. Whatever else the machine does makes rates lower: so a low one
	// alone ends no trial of more workers, unless it is very low twice.
	fewSamples, mostSamples = 4, 32
	great                   = 0.3

	firstFactor, lastFactor = 2, 1.15
	// pays is what a step to more workers has to gain, and keeps is what must be left with
	// fewer.
	pays, keeps = 1.03, 0.99
	// starving is the share of time for which the consumer has to wait for the workers, and
	// inUse that for which workers have to be in user code before there are more of them.
	starving, inUse = 0.03, 0.5
	// busyPerProcessor is how many workers are in reads for each processor, where reads
	// compute: few are interrupted in a read.
	busyPerProcessor = 1.25
	// drift is how much the rate changes, beyond chance, where the search begins again.
	drift = 0.25
	// A rest is this many times as long as the search, or longer.
	restPerSearch = 8
	longestRest   = 30 * time.Second
)

// measures is what was counted up to a time since the Run's start.
type measures struct {
	at     time.Duration
	rows   int64
	busy   time.Duration // of all workers, in user code
	waited time.Duration // by the consumer
}

// sampled are rates that were measured under the same conditions.
type sampled struct {
	n            int
	mean, square float64 // square is the sum of the squares of their distances to mean
}

func (s *sampled) add(rate float64) {
	s.n++
	d := rate - s.mean
	s.mean += d / float64(s.n)
	s.square += d * (rate - s.mean)
}

// deviation is how far a rate is from the mean as a rule.
func (s *sampled) deviation() float64 { return math.Sqrt(s.square / float64(max(s.n-1, 1))) }

// doubt is how far the mean is from the truth as a rule, as a share of it.
func (s *sampled) doubt() float64 { return s.deviation() / math.Sqrt(float64(s.n)) / s.mean }

func newTuner(workers, most, processors int, decided func(from, to int, reason string)) tuner {
	return tuner{
		most: most, first: workers, compute: busyPerProcessor * float64(processors),
		workers: workers, kept: workers, factor: firstFactor, decided: decided,
	}
}

// again is the tuner for another Run of the same Loader, whose times begin at 0.
func (t tuner) again(decided func(from, to int, reason string)) tuner {
	t.workers, t.decided = t.kept, decided
	t.until = max(t.until-t.from.at, 0)
	t.begun = t.until
	t.settled, t.rates, t.from, t.next = false, t.base, measures{}, 0
	return t
}

// step takes into account what was measured up to next, or later.
func (t *tuner) step(now measures) {
	m := measures{now.at - t.from.at, now.rows - t.from.rows, now.busy - t.from.busy, now.waited - t.from.waited}
	if need := max(min(t.workers, t.kept), sampleRows); t.settled && m.rows < int64(need) {
		t.next = now.at + max(m.at/4, leastSample)
		return
	}
	t.from, t.next = now, now.at+leastSample
	if !t.settled {
		t.settled = true
		return
	}
	rate := float64(m.rows) / m.at.Seconds()
	starved := m.waited.Seconds() / m.at.Seconds()
	inRead := m.busy.Seconds() / m.at.Seconds()
	t.rates.add(rate)
	switch {
	case t.workers > t.kept:
		t.tryMore()
	case t.workers < t.kept:
		t.tryFewer(starved)
	default:
		t.observe(now.at, rate, starved, inRead)
	}
	if !t.settled { // what was begun before is to be over
		t.next = now.at + max(leastSample, 2*m.busy/time.Duration(m.rows))
	}
}

// observe takes a sample without a trial into account, and may begin one.
func (t *tuner) observe(at time.Duration, rate, starved, inRead float64) {
	if starved < starving {
		t.rates, t.drifted = sampled{}, 0 // it is the consumer's rate
		return
	}
	if t.changed(rate) {
		if t.drifted++; t.drifted == 1 {
			t.rates = sampled{}
			t.rates.add(rate)
		}
		if t.drifted < fewSamples { // it may be chance
			return
		}
		t.search(at)
		t.rest = 0
	} else if t.drifted > 0 {
		t.drifted, t.rates = 0, t.base
	}
	if at < t.until {
		return
	}
	t.base = t.rates
	if t.base.n < 2 {
		return
	}
	if t.up && t.down {
		t.up, t.down, t.factor = false, false, math.Sqrt(t.factor)
		if t.factor < lastFactor {
			t.rest = min(max(2*t.rest, restPerSearch*(at-t.begun)), max(longestRest, restPerSearch*(at-t.begun)))
			t.search(at + t.rest)
			return
		}
	}
	if inRead <= t.compute && t.kept == t.first {
		return // the processors are the limit, or memory; each trial would cost more than it finds
	}
	used := inRead >= inUse*float64(t.kept)
	if t.up = t.up || !used || t.kept == t.most; !t.up {
		t.try(min(t.most, int(math.Ceil(float64(t.kept)*t.factor))),
			fmt.Sprintf("a trial: the consumer waits %.0f%% of the time, the workers are in reads %.0f%%", 100*starved, 100*inRead/float64(t.kept)))
		return
	}
	if t.down = t.down || t.kept == 1; !t.down {
		to := int(float64(t.kept) / t.factor)
		if !used {
			to = max(to, min(int(math.Ceil(1.25*inRead)), t.kept-1))
		}
		t.try(max(to, 1), fmt.Sprintf("a trial: fewer may read as much, since %.1f are in reads on average", inRead))
	}
}

// changed reports whether a rate is so far from those before that it is of another load.
func (t *tuner) changed(rate float64) bool {
	return t.base.n >= 2 && math.Abs(rate-t.base.mean) > max(drift*t.base.mean, min(3*t.base.deviation(), 2*drift*t.base.mean))
}

// search begins a search when a time has come.
func (t *tuner) search(from time.Duration) {
	t.begun, t.until, t.factor = from, from, firstFactor
	t.up, t.down, t.drifted = false, false, 0
}

// tryMore ends a trial of more workers, if its outcome is known.
func (t *tuner) tryMore() {
	switch pay, known := t.outcome(pays); {
	case !known:
	case pay:
		t.down = true
		t.keep()
	default:
		t.up = true
		t.goBack()
	}
}

// tryFewer ends a trial of fewer workers, if its outcome is known.
func (t *tuner) tryFewer(starved float64) {
	switch pay, known := t.outcome(keeps); {
	case starved < starving: // the rate tells nothing
		t.down = true
		t.goBack()
	case !known:
	case pay:
		t.up = true
		t.keep()
	default:
		t.down = true
		t.goBack()
	}
}

// outcome is whether the trial's rate is so many times base's, as far as that is known.
func (t *tuner) outcome(times float64) (yes, known bool) {
	gain := t.rates.mean / t.base.mean
	distance := math.Abs(gain - times)
	switch n := t.rates.n; {
	case n >= mostSamples:
		known = true
	case n >= fewSamples:
		known = distance > 3*gain*math.Hypot(t.rates.doubt(), t.base.doubt())
	case gain >= times || t.workers < t.kept:
		known = distance > great
	default:
		known = n == 2 && distance > 2*great
	}
	return gain >= times, known
}

// try begins a trial.
func (t *tuner) try(workers int, reason string) {
	t.decided(t.workers, workers, reason)
	t.workers, t.settled, t.rates = workers, false, sampled{}
}

// keep ends a trial that pays.
func (t *tuner) keep() {
	t.decided(t.workers, t.workers, "kept: "+t.compared())
	t.kept, t.base = t.workers, t.rates
}

// goBack ends a trial that does not pay.
func (t *tuner) goBack() {
	t.decided(t.workers, t.kept, t.compared())
	t.workers, t.settled, t.rates = t.kept, false, t.base
}

func (t *tuner) compared() string {
	return fmt.Sprintf("%d workers read %.0f samples a second, %d read %.0f", t.workers, t.rates.mean, t.kept, t.base.mean)
}
