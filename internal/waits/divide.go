package waits

import (
	"time"

	"github.com/leat-go/leat/loader"
)

// A Span is a stretch of time.
type Span struct{ From, To time.Time }

// A Shortage is a wait of the uploader, with a batch, for a slot. It is zero if there was one.
type Shortage struct {
	From  time.Time
	Freed time.Time // from here on a slot was free, but still read
	To    time.Time
}

// Parts are the parts of a wait: for producers, for order, for the device, and for what the
// user held.
type Parts struct{ Producer, Order, Device, Release time.Duration }

// Divide divides a wait for a batch by what the batch lacked at each instant: made says when
// it got its host slot and when it was filled, short when the uploader had it and no slot.
// With inFlight there is a stage behind the host slots.
//
// The batch is the next one in order, and all before it are delivered. So while it waits
// for a host slot, none holds a batch that is filled and not uploaded: with a stage behind
// them all are in flight, without one the user has them. And while it waits for a slot
// none holds a batch that is ready: they are the user's, or are free and still read.
func Divide(wait Span, made loader.Times, short Shortage, inFlight bool) (w Parts) {
	until := func(t time.Time) time.Duration {
		if t.After(wait.To) {
			t = wait.To
		}
		d := max(0, t.Sub(wait.From))
		wait.From = wait.From.Add(d)
		return d
	}
	w.Producer += until(made.Asked)
	if d := until(made.Opened); inFlight {
		w.Device += d
	} else {
		w.Release += d
	}
	if !made.Overtaken.IsZero() {
		w.Producer += until(made.Overtaken)
		w.Order += until(made.Filled)
	}
	w.Producer += until(made.Filled)
	if !inFlight {
		w.Producer += until(wait.To) // the handing over
		return w
	}
	w.Device += until(short.From)
	w.Release += until(short.Freed)
	w.Device += until(wait.To)
	return w
}
