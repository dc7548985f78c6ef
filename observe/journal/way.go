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
func (w *Way) Divide(from, to time.Time) (p Parts) {
	w.Causes(from, to, func(c Cause, from, to time.Time) { *p.Of(c) += to.Sub(from) })
	return p
}

// Causes yields the stretches that Divide adds up, in order, none of them empty.
//
// The batch is the next one in order, and all before it are delivered. So while it waits
// for a host slot, none holds a batch that is filled and not uploaded: with a stage behind
// them all are in flight, without one the user has them. And while it waits for a slot
// none holds a batch that is ready: they are the user's, or are free and still read.
func (w *Way) Causes(from, to time.Time, yield func(c Cause, from, to time.Time)) {
	for _, lack := range w.lacks() {
		until := lack.until
		if until.After(to) || lack.last {
			until = to
		}
		if until.After(from) {
			yield(lack.cause, from, until)
			from = until
		}
	}
}

// lack is what a batch lacks until an instant, or to the last.
type lack struct {
	cause Cause
	until time.Time
	last  bool
}

func (w *Way) lacks() [10]lack {
	slot, handing, order := HostSlot, false, w.Filled
	if !w.Staged {
		slot, handing = Leases, true
	}
	if w.Overtaken.IsZero() {
		order = time.Time{} // none was late for it
	}
	return [...]lack{
		{cause: Producers, until: w.Asked},
		{cause: slot, until: w.Opened},
		{cause: Producers, until: w.Overtaken},
		{cause: Order, until: order},
		{cause: Producers, until: w.Filled, last: handing},
		{cause: Copy, until: w.Short},
		{cause: Leases, until: w.Freed},
		{cause: Device, until: w.Placed},
		{cause: Copy, until: w.Copying, last: w.Copying.IsZero()}, // there is no Transform, or the copy is not submitted
		{cause: Transform, last: true},
	}
}
