package order_test

// The reference judges a program by brute force: it keeps, for every step, the whole
// set of steps that come before, and compares every access with every other.

const maxSteps = 256

// A set is one of steps, by number.
type set [maxSteps / 64]uint64

func (s *set) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s *set) has(i int) bool { return s[i/64]>>(i%64)&1 == 1 }
func (s *set) join(o *set) {
	for i := range s {
		s[i] |= o[i]
	}
}

// A use is an access to n bytes of one of the memories.
type use struct {
	memory, at, n int
	write         bool
}

type usage struct {
	step int
	uses []use
}

// reference is the state of a program as far as it has run.
type reference struct {
	before   [maxSteps]set // each step's
	steps    int
	last     map[int]int // the newest step of each stream
	recorded map[int]int // the step of each event's newest Record
	deviceOf map[int]int // of each stream, those that have ended included
	host     set         // what the host has seen the end of
	funcs    map[int]int // the host function submitted last, by device
	usages   []usage
}

func newReference() *reference {
	return &reference{last: map[int]int{}, recorded: map[int]int{}, deviceOf: map[int]int{}, funcs: map[int]int{}}
}

// step submits something to a stream, behind what was submitted to it and behind what
// the host has seen.
func (r *reference) step(stream int) int {
	i := r.steps
	r.steps++
	b := r.host
	if last, ok := r.last[stream]; ok {
		b.join(&r.before[last])
		b.add(last)
	}
	r.before[i] = b
	r.last[stream] = i
	return i
}

func (r *reference) record(stream, event int) { r.recorded[event] = r.step(stream) }

func (r *reference) wait(stream, event int) {
	i := r.step(stream)
	if of, ok := r.recorded[event]; ok {
		r.before[i].join(&r.before[of])
		r.before[i].add(of)
	}
}

// saw lets the host have seen the end of a step.
func (r *reference) saw(step int, known bool) {
	if known {
		r.host.join(&r.before[step])
		r.host.add(step)
	}
}

func (r *reference) sawStream(stream int) { step, ok := r.last[stream]; r.saw(step, ok) }
func (r *reference) sawEvent(event int)   { step, ok := r.recorded[event]; r.saw(step, ok) }

func (r *reference) sawDevice(device int) {
	for s, d := range r.deviceOf {
		if d == device {
			r.sawStream(s)
		}
	}
}

// races are the steps that uses, behind the steps of before, are unordered with.
func (r *reference) races(uses []use, before *set) (with []int) {
	for _, u := range r.usages {
		if !before.has(u.step) && conflict(u.uses, uses) {
			with = append(with, u.step)
		}
	}
	return with
}

func conflict(a, b []use) bool {
	for _, x := range a {
		for _, y := range b {
			if x.memory == y.memory && (x.write || y.write) && x.at < y.at+y.n && y.at < x.at+x.n {
				return true
			}
		}
	}
	return false
}

// would is what the stream's next step would come behind.
func (r *reference) would(stream int) *set {
	b := r.host
	if last, ok := r.last[stream]; ok {
		b.join(&r.before[last])
		b.add(last)
	}
	return &b
}

func (r *reference) access(stream int, uses []use) {
	i := r.step(stream)
	r.usages = append(r.usages, usage{i, uses})
}
