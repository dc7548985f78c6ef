package group

import (
	"slices"
	"time"
)

// shares says which step of an epoch each device takes next, so that all are busy to the
// end and the results come in about the order of the steps.
//
// Each device's time for a step is measured by how its results come, and measured again with
// each of them. A device that could take a step is given the one that will be the next in
// order when it is done, by these times: the other devices will have taken those before. And
// if the others will have done all that are left by then, it takes none. So a slow device
// neither holds up the results of the others nor is waited for at the end.
type shares struct {
	// undealt are the steps before frontier that nobody has, ascending; from there on nobody
	// has any.
	undealt  []int
	frontier int
	limit    int // the steps end before this one
	inOrder  bool
	ahead    int // how many steps a device has room for
	devices  []share
}

// share is what shares knows of one device.
type share struct {
	// queue are the steps that it was dealt and whose results are not here, in its order.
	queue []int
	// took is how long it takes for a step, 0 if that is not known. rough says that the
	// time has more in it: that in which the device had nothing else to do.
	took  time.Duration
	rough bool
	times [3]time.Duration // of the last steps, the newest last
	// latency is how long a step takes that finds the device idle, 0 if that is not known.
	latency time.Duration

	last  time.Duration // when its last result came
	since time.Duration // since when it has had something to do
	early bool          // it has as many results before their turn as may be kept
	out   bool          // it takes none any more
}

// leastAhead is how many steps a device needs at least: one that is read or copied while it
// works on another, and one that is ready.
const leastAhead = 3

// untilKnown is how many steps a device has at most before its first result tells how fast
// it is: the second is read while it works on the first.
const untilKnown = 2

// farthest is how far ahead of the others a device works at most. Its result is kept until
// they are there.
const farthest = 256

// left is how many steps nobody has.
func (s *shares) left() int {
	n := max(s.limit-s.frontier, 0)
	i, _ := slices.BinarySearch(s.undealt, s.limit)
	return n + i
}

// take deals a step to device i, if it is to have another one now.
func (s *shares) take(i int, now time.Duration) (step int, ok bool) {
	d, left := &s.devices[i], s.left()
	if left == 0 || d.out || s.full(i) {
		return 0, false
	}
	before := s.before(i, now, left)
	switch {
	case before >= left:
		return 0, false
	case !s.inOrder || d.early: // whose turn it is may be nobody's yet
		before = 0
	}
	if len(d.queue) == 0 {
		d.since = now
	}
	step = s.remove(min(before, farthest))
	d.queue = append(d.queue, step)
	return step, true
}

// full reports whether a device has as many steps as it is to have.
func (s *shares) full(i int) bool { return len(s.devices[i].queue) >= s.most(i) }

// most is how many steps a device has at most: as many as it is done with in the time that
// one of them takes from here through all of its stages, and one more. Every further one
// would be late, should the device become slower.
func (s *shares) most(i int) int {
	switch d := &s.devices[i]; {
	case d.took == 0:
		return untilKnown
	case d.latency == 0:
		return leastAhead
	default:
		return max(leastAhead, min(int((d.latency+d.took-1)/d.took)+1, s.ahead))
	}
}

// estimate is how long a device takes for a step: if that is not known, as long as the
// fastest of those of which it is; 0 if it is of none.
func (s *shares) estimate(i int) time.Duration {
	if t := s.devices[i].took; t > 0 {
		return t
	}
	var fastest time.Duration
	for j := range s.devices {
		if t := s.devices[j].took; t > 0 && (fastest == 0 || t < fastest) {
			fastest = t
		}
	}
	return fastest
}

// idle is when a device will have done what it has.
func (s *shares) idle(i int, now time.Duration) time.Duration {
	d, t := &s.devices[i], s.estimate(i)
	if len(d.queue) == 0 {
		return now
	}
	return max(now, max(d.last, d.since)+t) + time.Duration(len(d.queue)-1)*t
}

// before is how many of the steps that nobody has the other devices will have done before
// device i has done another one; of equal times the first device counts as earlier. It stops
// counting at most.
func (s *shares) before(i int, now time.Duration, most int) (n int) {
	own := s.estimate(i)
	if own == 0 {
		return 0
	}
	done := s.idle(i, now) + own
	for j := range s.devices {
		if j == i || s.devices[j].out {
			continue
		}
		t := s.estimate(j)
		gap := done - s.idle(j, now)
		if j > i {
			gap-- // strictly earlier
		}
		if gap >= t {
			n += int(min(gap/t, time.Duration(most)))
		}
	}
	return n
}

// remove takes a step out of those that nobody has: the nth of them, from 0.
func (s *shares) remove(n int) (step int) {
	if n < len(s.undealt) {
		step = s.undealt[n]
		s.undealt = slices.Delete(s.undealt, n, n+1)
		return step
	}
	step = s.frontier + n - len(s.undealt)
	for ; s.frontier < step; s.frontier++ {
		s.undealt = append(s.undealt, s.frontier)
	}
	s.frontier++
	return step
}

// arrived notes that the first result that device i was to give is here, and which step it
// is of. free says that the device was not kept from giving it earlier.
func (s *shares) arrived(i int, now time.Duration, free bool) (step int) {
	d := &s.devices[i]
	step = d.queue[0]
	d.queue = slices.Delete(d.queue, 0, 1)
	took, rough := now-d.last, false
	if d.since >= d.last { // it had nothing to do when it got this step
		took, rough = now-d.since, true
		if d.latency == 0 || took < d.latency {
			d.latency = max(took, 1)
		}
	}
	if took = max(took, 1); free {
		d.measured(took, rough)
	}
	d.last = now
	return step
}

// measured takes a step's time into account: the middle one of the last three counts. So a
// device that has become slower or faster is known for it with its second result from then on,
// and one step that was held up by something else changes nothing.
func (d *share) measured(took time.Duration, rough bool) {
	switch {
	case !rough && (d.rough || d.took == 0): // the first
		d.rough, d.times = false, [3]time.Duration{took, took, took}
	case !rough:
		d.times[0], d.times[1], d.times[2] = d.times[1], d.times[2], took
	case d.took == 0 || took < d.took: // an upper bound
		d.times = [3]time.Duration{took, took, took}
	}
	x, y, z := d.times[0], d.times[1], d.times[2]
	d.took = max(min(x, y), min(max(x, y), z))
}

// giveBack takes from a device all that it was dealt and has not done; last says that it will
// do nothing more.
func (s *shares) giveBack(i int, last bool) {
	d := &s.devices[i]
	for _, step := range d.queue {
		at, _ := slices.BinarySearch(s.undealt, step)
		s.undealt = slices.Insert(s.undealt, at, step)
	}
	d.queue = d.queue[:0]
	d.out = d.out || last
}

// elsewhere reports whether another device than i has a step.
func (s *shares) elsewhere(i, step int) bool {
	for j := range s.devices {
		if j != i && slices.Contains(s.devices[j].queue, step) {
			return true
		}
	}
	return false
}
