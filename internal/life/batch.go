package life

// Batch is where the place of a batch stands in its lap.
type Batch uint8

const (
	Empty   Batch = iota // no batch is in it
	Filling              // its batch is on the way into it
	Ready                // its batch can be delivered
	Leased               // its batch is the user's
)

// String is the state as reports name it.
func (b Batch) String() string {
	return [...]string{"free", "filling", "ready", "leased"}[b]
}

// BatchEvent is something that happens to the place of a batch.
type BatchEvent uint8

const (
	Fill    BatchEvent = iota // work that fills it begins to be submitted
	Load                      // all of that work is submitted
	Fail                      // or could not be
	Deliver                   // the user gets it
	Discard                   // nobody does
	Release                   // the user gives it back
)

// String is the event as reports name it.
func (e BatchEvent) String() string {
	return [...]string{"fill", "load", "fail", "deliver", "discard", "release"}[e]
}

// Next is the state behind e; false if e can't happen in b.
func (b Batch) Next(e BatchEvent) (Batch, bool) {
	switch e {
	case Fill:
		return Filling, b == Empty
	case Load:
		return Ready, b == Filling
	case Fail:
		return Empty, b == Filling
	case Deliver:
		return Leased, b == Ready
	case Discard:
		return Empty, b == Ready
	case Release:
		return Empty, b == Leased
	}
	return b, false
}
