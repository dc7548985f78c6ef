package serve_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// A program is requests and what becomes of their batches, at random. All times are odd to
// each other, so that hardly two things happen at once.
type program struct {
	maxBatch, inFlight int
	maxWait, priority  time.Duration
	in, out            time.Duration // of a copy
	steps              []time.Duration
	fails              []bool
	requests           []planned
}

type planned struct {
	at, slow time.Duration
	deadline time.Duration // 0 is none
	cancel   time.Duration // the same, but nobody knows of it before
	tenant   int
	priority int8
}

// An outcome is what a request came to, and when.
type outcome struct {
	at     time.Duration
	result result
}

type result string

const (
	answeredAt result = "answer"
	failedAt   result = "step"
	gaveUpAt   result = "gave up"
)

func newProgram(rng *rand.Rand) program {
	between := func(lo, hi time.Duration) time.Duration { return lo + time.Duration(rng.Int64N(int64(hi-lo))) }
	p := program{
		maxBatch: 1 + rng.IntN(6), inFlight: 1 + rng.IntN(4),
		maxWait: between(0, 6*ms), priority: between(ms, 9*ms),
		in: between(ms/10, 2*ms), out: between(ms/10, 2*ms),
	}
	usual := between(ms, 8*ms)
	for range 120 {
		p.steps = append(p.steps, between(usual/2, 2*usual))
		p.fails = append(p.fails, rng.IntN(10) == 0)
	}
	pace, tenants := between(ms/4, 4*ms), 1+rng.IntN(3)
	at := time.Duration(0)
	for range 10 + rng.IntN(50) {
		at += between(1, 2*pace)
		r := planned{at: at, tenant: rng.IntN(tenants), priority: int8(rng.IntN(3))}
		if rng.IntN(3) == 0 {
			r.slow = between(1, 3*ms)
		}
		switch rng.IntN(4) {
		case 0:
			r.deadline = at + between(ms/2, 40*ms)
		case 1:
			r.cancel = at + between(ms/2, 40*ms)
		}
		p.requests = append(p.requests, r)
	}
	return p
}

// simulation runs a program as the documentation of package serve has it, without any of its
// code: slowly, and one thing after the other.
type simulation struct {
	program
	now                       time.Duration
	alarm                     time.Duration
	waiting                   []int        // encoded, in the order of coming
	late                      map[int]bool // of them
	ring                      []int        // tenants
	batches                   []simulated  // under way
	begun                     int
	took                      []time.Duration // by the number of others
	outcome                   []outcome
	copied, computed, fetched time.Duration // when each engine is free
}

type simulated struct {
	members    []int
	began, end time.Duration
	others     int
	failed     bool
}

const noTime = time.Duration(math.MaxInt64)

func (p program) simulate() []outcome {
	s := &simulation{program: p, late: map[int]bool{}, took: make([]time.Duration, p.inFlight), outcome: make([]outcome, len(p.requests)), alarm: noTime}
	for {
		s.now = s.next()
		if s.now == noTime {
			return s.outcome
		}
		s.happen()
	}
}

// ends is when a request's caller has no more patience.
func (r planned) ends() time.Duration {
	if r.deadline > 0 {
		return r.deadline
	}
	if r.cancel > 0 {
		return r.cancel
	}
	return noTime
}

// open says of a request that it has no outcome yet.
func (s *simulation) open(i int) bool { return s.outcome[i].result == "" }

// next is when something happens next.
func (s *simulation) next() time.Duration {
	next := s.alarm
	for i, r := range s.requests {
		if encoded := r.at + r.slow; encoded > s.now {
			next = min(next, encoded)
		}
		if s.open(i) && r.ends() > s.now {
			next = min(next, max(r.ends(), r.at+1))
		}
	}
	for _, b := range s.batches {
		next = min(next, b.end)
	}
	return next
}

// happen is what happens now.
func (s *simulation) happen() {
	form := s.alarm == s.now
	for i, b := range s.batches {
		if b.end == s.now {
			s.batches = slices.Delete(s.batches, i, i+1)
			s.end(b)
			form = true
			break
		}
	}
	for i, r := range s.requests {
		if encoded := r.at + r.slow; encoded == s.now {
			if r.ends() <= encoded { // its caller waits for Encode
				s.outcome[i] = outcome{encoded, gaveUpAt}
				continue
			}
			s.waiting = append(s.waiting, i)
			slices.Sort(s.waiting)
			s.join(i)
			form = form || len(s.batches) < s.inFlight && (s.ready() >= s.maxBatch || r.at+s.maxWait < s.alarm)
		}
		if s.open(i) && r.ends() == s.now && r.at+r.slow < s.now {
			s.outcome[i] = outcome{s.now, gaveUpAt}
			if slices.Contains(s.waiting, i) {
				s.quit(i)
			}
		}
	}
	for form {
		form = s.form()
	}
}

func (s *simulation) end(b simulated) {
	took := b.end - b.began
	if t := s.took[b.others]; took < t {
		took = t - (t-took+3)/4
	}
	s.took[b.others] = took
	for _, i := range b.members {
		if !s.open(i) {
			continue
		}
		s.outcome[i] = outcome{s.now, answeredAt}
		if b.failed {
			s.outcome[i].result = failedAt
		}
	}
}

func (s *simulation) ready() int { return len(s.waiting) - len(s.late) }

// join gives a tenant a turn.
func (s *simulation) join(i int) {
	if t := s.requests[i].tenant; !slices.Contains(s.ring, t) {
		s.ring = append(s.ring, t)
	}
}

// part ends a tenant's turns where it has nobody ready.
func (s *simulation) part(t int) {
	for _, i := range s.waiting {
		if s.requests[i].tenant == t && !s.late[i] {
			return
		}
	}
	s.ring = slices.DeleteFunc(s.ring, func(other int) bool { return other == t })
}

func (s *simulation) quit(i int) {
	s.waiting = slices.DeleteFunc(s.waiting, func(j int) bool { return j == i })
	delete(s.late, i)
	s.part(s.requests[i].tenant)
}

func (s *simulation) form() bool {
	s.alarm = noTime
	if len(s.batches) == s.inFlight {
		return false
	}
	others := len(s.batches)
	for others > 0 && s.took[others] == 0 {
		others--
	}
	s.judge(s.now + s.took[others])
	var members []int
	switch {
	case s.ready() > 0:
		first := 0
		for s.late[s.waiting[first]] {
			first++
		}
		if due := s.requests[s.waiting[first]].at + s.maxWait; s.ready() < s.maxBatch && due > s.now {
			s.alarm = due
			return false
		}
		for len(members) < s.maxBatch && s.ready() > 0 {
			members = append(members, s.pick())
		}
	case len(s.waiting) > 0 && len(s.batches) == 0:
		all := slices.Clone(s.waiting)
		slices.SortFunc(all, func(i, j int) int { return int(s.requests[j].deadline - s.requests[i].deadline) })
		members = all[:min(len(all), s.maxBatch)]
		for _, i := range members {
			s.quit(i)
		}
	default:
		return false
	}
	s.start(members)
	return true
}

func (s *simulation) judge(reached time.Duration) {
	byDeadline := slices.Clone(s.waiting)
	slices.SortFunc(byDeadline, func(i, j int) int { return int(s.requests[j].deadline - s.requests[i].deadline) })
	for _, i := range byDeadline {
		if d := s.requests[i].deadline; d > 0 && d <= reached && !s.late[i] {
			s.late[i] = true
			s.part(s.requests[i].tenant)
		}
	}
	for _, i := range byDeadline {
		if s.late[i] && s.requests[i].deadline > reached {
			delete(s.late, i)
			s.join(i)
		}
	}
}

// pick is who has the next turn.
func (s *simulation) pick() int {
	t, best := s.ring[0], -1
	rank := func(i int) time.Duration { return s.requests[i].at - time.Duration(s.requests[i].priority)*s.priority }
	for _, i := range s.waiting {
		if s.requests[i].tenant == t && !s.late[i] && (best < 0 || rank(i) < rank(best)) {
			best = i
		}
	}
	s.ring = append(s.ring[1:], t)
	s.quit(best)
	return best
}

// start sends a batch through the three engines.
func (s *simulation) start(members []int) {
	step, failed := s.steps[s.begun], s.fails[s.begun]
	if failed {
		step = 0
	}
	s.begun++
	s.copied = max(s.copied, s.now) + s.in
	s.computed = max(s.computed, s.copied) + step
	s.fetched = max(s.fetched, s.computed) + s.out
	s.batches = append(s.batches, simulated{members, s.now, s.fetched, len(s.batches), failed})
}
