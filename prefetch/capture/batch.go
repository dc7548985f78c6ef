package capture

import "github.com/leat-go/leat/prefetch"

// A Batch is what a step may know of its batch: what is the same whenever the graph is
// launched that is being captured. What differs, its position for example, is given to Run.
// It is borrowed for the call that gets it.
type Batch struct{ of prefetch.Batch }

// Len is the number of rows.
func (b Batch) Len() int { return b.of.Len() }

// Valid is the number of rows that are samples of this epoch's own; the rest is padding.
func (b Batch) Valid() int { return b.of.Valid() }

// Field returns the field of that name, and panics if there is none.
func (b Batch) Field(name string) prefetch.Field { return b.of.Field(name) }

// Lookup returns the field of that name, if there is one.
func (b Batch) Lookup(name string) (prefetch.Field, bool) { return b.of.Lookup(name) }
