package observe

import (
	"time"

	"github.com/leat-go/leat/observe/journal"
)

// Device is the device's account, of the uploads that were timed. All figures add up over
// intervals.
type Device struct {
	// Uploads were timed, of Bytes; their copies took Copying, and Copy is how long each took.
	// Of those that came right behind another one that was timed it is known whether there was
	// work meanwhile: these took Compared, for Waiting of which compute stood still.
	Uploads, Bytes    int64
	Copying           time.Duration
	Compared, Waiting time.Duration
	Copy              Histogram
	// Batches is how many the compute stream worked on while it was watched from the end of
	// one upload's work to the end of the next one's. Parts is where that time went: Device
	// is its work, the other parts are what it waited for. Step is how long each batch took
	// of it, work and waits.
	Batches int64
	Parts   journal.Parts
	Step    Histogram
}

// Sub is what d has more than before.
func (d Device) Sub(before *Device) Device {
	d.Uploads -= before.Uploads
	d.Bytes -= before.Bytes
	d.Copying -= before.Copying
	d.Compared -= before.Compared
	d.Waiting -= before.Waiting
	d.Copy = d.Copy.Sub(before.Copy)
	d.Batches -= before.Batches
	d.Parts = d.Parts.Minus(before.Parts)
	d.Step = d.Step.Sub(before.Step)
	return d
}

// deviceAccount makes a Device of what the recorder is told.
type deviceAccount struct {
	Device
	clock clock
	last  journal.Upload // the one before, with Number -1 before the first
	any   bool
}

// upload takes a timed upload into account, some time after the steps of its batches.
func (a *deviceAccount) upload(u *journal.Upload, steps *ring[journal.Step]) {
	a.Uploads++
	a.Bytes += u.Bytes
	a.Copying += u.Copied - u.Started
	a.Copy.Add(u.Copied-u.Started, 1)
	of := find(steps, u.Number)
	a.clock.narrow(of.bound(u))
	if a.any && a.last.Number == u.Number-1 && a.last.Finished >= 0 {
		a.Compared += u.Copied - u.Started
		a.Waiting += max(0, u.Copied-max(u.Started, a.last.Finished))
		if u.Finished >= 0 && of.follow() && !of.heldOn(u) {
			a.pair(u, &of)
		}
	}
	a.last, a.any = *u, true
}

// stepsOf is the steps of an upload, as far as they are among the last ones.
type stepsOf struct {
	before       *journal.Step // the last of the upload before
	first, last  *journal.Step
	again        *journal.Step // the next one that had the first one's host slot
	synchronized time.Duration
}

func find(steps *ring[journal.Step], upload int64) (of stepsOf) {
	for back := range steps.len() {
		s := steps.last(back)
		switch {
		case s.Upload < upload:
			of.before = s
			of.again = next(steps, of.first, back)
			return of
		case s.Upload == upload:
			if of.first = s; of.last == nil {
				of.last = s
			}
			of.synchronized += s.Synchronized
		}
	}
	return of
}

// next is the next step that had the host slot of s, which lies before so many of the newest.
func next(steps *ring[journal.Step], s *journal.Step, back int) *journal.Step {
	for back--; s != nil && back >= 0; back-- {
		if n := steps.last(back); n != s && n.HostSlot == s.HostSlot && n.Opened.After(s.Opened) {
			return n
		}
	}
	return nil
}

// follow reports whether all are there, in one range with the one before.
func (of *stepsOf) follow() bool {
	return of.first != nil && of.before != nil && of.before.Ended.Equal(of.first.Called)
}

// heldOn reports whether batches were released so long after the body that what the stream had
// done by then was not theirs alone.
func (of *stepsOf) heldOn(u *journal.Upload) bool { return u.Released.Sub(of.last.Ended) > heldLong }

// heldLong is longer than what lies between the end of a body and the release behind it.
const heldLong = time.Millisecond

// bound is what an upload tells of the clocks.
func (of *stepsOf) bound(u *journal.Upload) bounds {
	b := bounds{u.Sent.Sub(u.Origin) - u.Started, far}
	if of.first != nil {
		b.least = max(b.least, of.first.Delivered.Sub(u.Origin)-u.Reached)
	}
	if of.again != nil {
		b.most = of.again.Opened.Sub(u.Origin) - u.Copied
	}
	return b
}

// at is an instant of the device on the host's clock.
func (a *deviceAccount) at(u *journal.Upload, on time.Duration) time.Time {
	return u.Origin.Add(on + a.clock.shift)
}

// pair divides the compute stream's time from the end of the last upload's work to the end
// of this one's.
func (a *deviceAccount) pair(u *journal.Upload, of *stepsOf) {
	from := a.last.Finished
	begun := max(from, u.Reached, u.Loaded)
	var p journal.Parts
	a.gap(&a.last, u, of.first, func(c journal.Cause, from, to time.Time) { *p.Of(c) += to.Sub(from) })
	work := u.Finished - begun
	if a.idleAtRelease(u) {
		// Of its work no more is known than for how long the body waited for it.
		p.Body += max(0, work-of.synchronized)
		work = min(work, of.synchronized)
	}
	p.Device += work
	a.Parts = a.Parts.Plus(p)
	a.Batches += int64(u.Batches)
	a.Step.Add((u.Finished-from)/time.Duration(max(u.Batches, 1)), int64(u.Batches))
}

// idleAtRelease reports whether the stream had done all that was submitted for an upload when
// its batches were released.
func (a *deviceAccount) idleAtRelease(u *journal.Upload) bool {
	return a.at(u, u.Finished).Sub(u.Released) <= promptly
}

// promptly is within what an event that marks the end of work is late behind its Record.
const promptly = 20 * time.Microsecond

// gap yields why the compute stream had nothing to do between two uploads. Until the batch was
// handed over the host was in the last body, or waited in Next; then the stream waited for
// what was under way on the device.
func (a *deviceAccount) gap(last, u *journal.Upload, first *journal.Step, yield func(c journal.Cause, from, to time.Time)) {
	reached := max(u.Reached, last.Finished)
	from, told := a.at(u, last.Finished), a.at(u, reached)
	until := func(t time.Time, c journal.Cause) {
		if t.After(from) {
			yield(c, from, t)
			from = t
		}
	}
	until(earlier(first.Called, told), journal.Body)
	if to := earlier(first.Delivered, told); to.After(from) {
		first.Causes(from, to, yield)
		from = to
	}
	until(told, journal.Body) // the handing over
	until(a.at(u, u.Copied), journal.Copy)
	until(a.at(u, u.Loaded), journal.Transform)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
