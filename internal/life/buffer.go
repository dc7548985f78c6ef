package life

// Buffer is where a pinned buffer stands in its round.
type Buffer uint8

const (
	Free        Buffer = iota // nobody has it
	Held                      // a producer writes it, or a consumer reads it
	InFlight                  // copies read it; its event tells their end
	Doubtful                  // copies may read it, and no event tells their end
	Quarantined               // somebody who should have stopped may still write it
)

// String is the state as reports name it.
func (b Buffer) String() string {
	return [...]string{"free", "held", "in flight", "doubtful", "quarantined"}[b]
}

// BufferEvent is something that happens to a buffer.
type BufferEvent uint8

const (
	Get        BufferEvent = iota // a producer takes it
	Put                           // its holder gives it back
	Send                          // its copies are submitted, and the event behind them recorded
	Copied                        // the event is complete
	Doubt                         // an operation on its copies failed
	Rest                          // the streams have come to rest: nothing reads it any more
	Quarantine                    // its producer does not stop
	Readmit                       // and has stopped after all
)

// String is the event as reports name it.
func (e BufferEvent) String() string {
	return [...]string{"get", "put", "send", "copied", "doubt", "rest", "quarantine", "readmit"}[e]
}

// Next is the state behind e; false if e can't happen in b.
func (b Buffer) Next(e BufferEvent) (Buffer, bool) {
	switch e {
	case Get:
		return Held, b == Free
	case Put:
		return Free, b == Held
	case Send:
		return InFlight, b == Held
	case Copied:
		return Free, b == InFlight
	case Doubt:
		return Doubtful, b == Held || b == InFlight
	case Rest:
		return Free, b == Doubtful
	case Quarantine:
		return Quarantined, b == Held
	case Readmit:
		return Held, b == Quarantined
	}
	return b, false
}
