package prefetch

import (
	"time"

	"github.com/leat-go/leat/loader"
)

// A span is a stretch of time.
type span struct{ from, to time.Time }

// waits are the parts of what Next waited.
type waits struct{ producer, order, device, release time.Duration }

// divide divides a wait of Next for a batch by what the batch lacked at each instant: made
// says when it got its host slot and when it was filled, short when the uploader had it
// and no slot, if it ever did.
//
// The batch is the next one in order, and all before it are delivered. So while it waits
// for a host slot, none holds a batch that is filled and not uploaded: with a stage behind
// them all are in flight, without one the user has them. And while it waits for a slot
// none holds a batch that is ready: they are the user's, or are free and still read.
func divide(wait span, made loader.Times, short shortage, inFlight bool) (w waits) {
	until := func(t time.Time) time.Duration {
		if t.After(wait.to) {
			t = wait.to
		}
		d := max(0, t.Sub(wait.from))
		wait.from = wait.from.Add(d)
		return d
	}
	w.producer += until(made.Asked)
	if d := until(made.Opened); inFlight {
		w.device += d
	} else {
		w.release += d
	}
	if !made.Overtaken.IsZero() {
		w.producer += until(made.Overtaken)
		w.order += until(made.Filled)
	}
	w.producer += until(made.Filled)
	if !inFlight {
		w.producer += until(wait.to) // the handing over
		return w
	}
	w.device += until(short.from)
	w.release += until(short.freed)
	w.device += until(wait.to)
	return w
}
