package loader

import "encoding/json"

// Keeper is a Stream that a program has changed as it ran, such as one of weights that follow
// what was learned by then. What was decided is in every State, so that a program that is
// started again finds it there and makes the same Stream.
type Keeper interface {
	Stream
	// Kept is what was decided, a JSON value; nil if nothing was. NewStream asks once.
	Kept() json.RawMessage
	// Extends is an error if what a State has kept is not part of what this Stream has: then
	// the State is refused. What was decided since is no matter.
	Extends(kept json.RawMessage) error
}

// extends is a *StateError if the Stream lacks what a State has kept.
func (l *Loader) extends(kept json.RawMessage) error {
	if len(kept) == 0 {
		return nil
	}
	k, ok := l.stream.(Keeper)
	if !ok {
		return &StateError{Field: "Kept", Got: string(kept), Want: "a Keeper"}
	}
	if err := k.Extends(kept); err != nil {
		return &StateError{Field: "Kept", Got: string(kept), Want: err}
	}
	return nil
}
