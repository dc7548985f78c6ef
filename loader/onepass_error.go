package loader

import "fmt"

// OnePassError is an attempt to read a source that gives its samples once (FromSeq)
// from another place than where it stands.
type OnePassError struct {
	// At is where the source stands: how much of it is delivered.
	At Cursor
	// Want is where it was to be read from.
	Want Cursor
	// Reason says what is wrong.
	Reason string
}

// Error implements error.
func (e *OnePassError) Error() string {
	return "loader: a source that gives its samples once: " + e.Reason
}

// misplaced is the error of reading a source at one place from another one.
func misplaced(at, want Cursor) *OnePassError {
	e := &OnePassError{At: at, Want: want}
	switch {
	case at == Cursor{}:
		e.Reason = fmt.Sprintf("it is at its beginning and cannot be read from epoch %d, position %d: what another process had of it is gone", want.Epoch, want.Position)
	default:
		e.Reason = fmt.Sprintf("it is at epoch %d, position %d, and cannot be read from epoch %d, position %d", at.Epoch, at.Position, want.Epoch, want.Position)
	}
	e.Reason += beginAgain
	return e
}

const (
	beginAgain    = "; FromSeqFunc makes an Iterable that can begin again"
	reasonBusy    = "another Run reads it, which must be closed first"
	reasonClaimed = "another pipeline has it"
	reasonClosed  = "it is closed"
	reasonWrapped = "a pass over it has begun"
)
