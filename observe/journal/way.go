package journal

import "time"

// Way is when a batch came how far before it was delivered. An instant that did not come,
// because there was nothing to wait for, is the zero Time.
type Way struct {
	// Asked is when the producers asked for its host slot, Opened when they got it, Filled
	// when its last row was written, and Overtaken when a later batch was filled before that.
	Asked, Opened, Overtaken, Filled time.Time
	// Short is when the uploader had it and no device slot, Freed when one was free but still
	// read, and Placed when it got that one.
	Short, Freed, Placed time.Time
	// Copying is when its copy was submitted and the calls of a Transform began. With a
	// Transform and no copy, without a device, it is Placed, or Filled.
	Copying time.Time
	// Staged says that there is a stage behind the host slot: a device, or a Transform.
	Staged bool
}

// Divide divides a stretch of time, in which the batch was waited for, by what the batch
// lacked at each instant. The parts add up to to - from.
//
// The batch is the next one in order, and all before it are delivered. So while it waits
// for a host slot, none holds a batch that is filled and not uploaded: with a stage behind
// them all are in flight, without one the user has them. And while it waits for a slot
// none holds a batch that is ready: they are the user's, or are free and still read.
func (w Way) Divide(from, to time.Time) (p Parts) {
	until := func(t time.Time) time.Duration {
		if t.After(to) {
			t = to
		}
		d := max(0, t.Sub(from))
		from = from.Add(d)
		return d
	}
	p.Producers += until(w.Asked)
	if d := until(w.Opened); w.Staged {
		p.HostSlot += d
	} else {
		p.Leases += d
	}
	if !w.Overtaken.IsZero() {
		p.Producers += until(w.Overtaken)
		p.Order += until(w.Filled)
	}
	p.Producers += until(w.Filled)
	if !w.Staged {
		p.Producers += until(to) // the handing over
		return p
	}
	p.Copy += until(w.Short)
	p.Leases += until(w.Freed)
	p.Device += until(w.Placed)
	if w.Copying.IsZero() { // there is no Transform, or the copy is not submitted
		w.Copying = to
	}
	p.Copy += until(w.Copying)
	p.Transform += until(to)
	return p
}
