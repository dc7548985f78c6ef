package prefetch

import "time"

// A passage is when a batch came how far on its way to the user. A zero time is "not
// yet", or of the overtaking "never".
type passage struct {
	asked     time.Time // the loader asked for its host slot
	opened    time.Time // and got one
	overtaken time.Time // a later batch was filled while this one was not
	filled    time.Time // its last row was written
	short     span      // the uploader had it and no slot
}

func (w *window) passage() passage {
	t := w.batch.Times
	return passage{t.Asked, t.Opened, t.Overtaken, t.Filled, w.short}
}

// waits are the parts of what Next waited.
type waits struct{ producer, order, device, release time.Duration }

// divide divides a wait of Next for a batch, from one time to another, by what the batch
// lacked at each instant. The batch is the next one in order, and all before it are
// delivered: so while it waits for a host slot, none holds a batch that is filled and not
// uploaded. With a stage behind them all are in flight, without one the user has them.
func divide(from, to time.Time, b passage, inFlight bool) (w waits) {
	until := func(t time.Time) time.Duration {
		if t.IsZero() || t.After(to) {
			t = to
		}
		d := max(0, t.Sub(from))
		from = from.Add(d)
		return d
	}
	w.producer += until(b.asked)
	if slot := until(b.opened); inFlight {
		w.device += slot
	} else {
		w.release += slot
	}
	if !b.overtaken.IsZero() {
		w.producer += until(b.overtaken)
		w.order += until(b.filled)
	} else {
		w.producer += until(b.filled)
	}
	if !b.short.from.IsZero() {
		w.device += until(b.short.from)
		w.release += until(b.short.to) // all slots are the user's: none before this batch is ready
	}
	w.device += until(time.Time{})
	return w
}
