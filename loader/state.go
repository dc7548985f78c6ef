package loader

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// Cursor is a place in the data: the next sample to be delivered, over all ranks. Cursors of
// different places are never equal. One that a Run of a Stream gave refers to what the Run
// keeps of the place: a State has to be made of it before a later place is delivered; see
// Loader.StateAt.
type Cursor struct {
	// Epoch counts from 0.
	Epoch int
	// Position is the number of samples of the epoch that are delivered. With a Stream and
	// several ranks it is this rank's number times the ranks: equal on all of them until
	// the last batches under Exact.
	Position int64
	// Substituted is how many of them this rank has replaced. It is counted only if
	// Options.MaxSubstituted limits it, and 0 otherwise. Nothing else differs between the
	// cursors of ranks.
	Substituted int
	// Skipped is likewise for samples that were left out, and Options.MaxSkipped.
	Skipped int

	track *track // of a Stream; nil at an epoch's beginning
}

// bare is the place without what else is known of it.
func (c Cursor) bare() Cursor { return Cursor{Epoch: c.Epoch, Position: c.Position} }

// same reports whether two cursors of one track are the same place.
func (c Cursor) same(as Cursor) bool { return c.bare() == as.bare() }

// String is the place for people.
func (c Cursor) String() string { return fmt.Sprintf("epoch %d, position %d", c.Epoch, c.Position) }

// stateVersion is raised when a State's meaning, or the order behind it, changes.
const stateVersion = 3

// State is all that must be saved to go on later: a small value, equal on every
// rank, that any number of ranks, workers and slots can go on from, with any batch size:
// it counts samples, and the next batch begins at the sample behind the last one
// delivered. It marshals to JSON as it is.
//
// The State of a Stream is that of the rank's own shards if there are several ranks:
// MergeStates makes one of them all, from which any number of ranks up to that of the shards
// goes on. At an epoch's beginning there is nothing to be merged.
type State struct {
	Version int `json:"version"`
	// Samples is the length of the dataset, 0 of an Iterable, whose length is not known.
	Samples int64 `json:"samples"`
	// Fields are the fields of a sample, in the form of Field.String.
	Fields string `json:"fields"`
	// Fingerprint is a hash of the fields and of the dataset's own Fingerprint, if it is a
	// Fingerprinter. A State with another one is of other data.
	Fingerprint uint64 `json:"fingerprint,string"`
	Seed        uint64 `json:"seed,string"`
	Shuffle     bool   `json:"shuffle"`
	Epoch       int    `json:"epoch"`
	// Position counts the samples of the epoch delivered to all ranks together.
	Position int64 `json:"position"`
	// Substituted is Cursor.Substituted if there is one rank. With several it is 0, since
	// each rank has a number of its own and a State is the same on all of them: a rank
	// that is restored in another process begins to count at 0.
	Substituted int `json:"substituted,omitempty"`
	// Skipped is likewise Cursor.Skipped.
	Skipped int `json:"skipped,omitempty"`
	// Excluded is a hash of Options.Exclude, 0 if that is empty.
	Excluded uint64 `json:"excluded,string,omitempty"`
	// Steps is Options.Steps. Where one run has it and another not, neither goes on from
	// the other's State.
	Steps int `json:"steps,omitempty"`
	// Shards is the number of shards of a Stream, 0 of other data.
	Shards int `json:"shards,omitempty"`
	// Marks are the shards, by number. There are none at the beginning of an epoch that
	// begins with new passes.
	Marks []ShardMark `json:"marks,omitempty"`
	// Kept is what a Stream that is a Keeper has decided.
	Kept json.RawMessage `json:"kept,omitempty"`
}

// Equal reports whether two States are the same.
func (s State) Equal(as State) bool { return reflect.DeepEqual(s, as) }

// Cursor is where to start from.
func (s State) Cursor() Cursor {
	at := Cursor{Epoch: s.Epoch, Position: s.Position, Substituted: s.Substituted, Skipped: s.Skipped}
	if len(s.Marks) > 0 {
		at.track = &track{told: s.Marks}
	}
	return at
}

// StateError is a part of a State, or of a place in the data, that does not fit the
// Loader.
type StateError struct {
	// Field is the field of State, or Cursor for a place that is no state. Where State's
	// JSON cannot be read it is the key.
	Field string
	// Got is the state's value, Want what this Loader has or accepts. A key that is
	// missing has no Got, one that is not known no Want.
	Got, Want any

	zero bool // the whole State is
}

// Error implements error.
func (e *StateError) Error() string {
	switch {
	case e.Got == nil:
		return fmt.Sprintf("loader: the state has no %q", e.Field)
	case e.Want == nil:
		return fmt.Sprintf("loader: the state has a key %q, which is not known", e.Field)
	}
	switch e.Field {
	case "Version":
		switch {
		case e.zero:
			return "loader: the state is the zero value: none was saved in it, or it was not read from its file"
		case e.Got == 0:
			return "loader: the state has no version"
		}
		return fmt.Sprintf("loader: the state is of version %v, this program reads version %v", e.Got, e.Want)
	case "Samples":
		switch {
		case e.Want == int64(0):
			return fmt.Sprintf("loader: the samples are an Iterable's, the state was saved with a dataset of %v", e.Got)
		case e.Got == int64(0):
			return fmt.Sprintf("loader: the dataset has %v samples, the state was saved with an Iterable", e.Want)
		}
		return fmt.Sprintf("loader: the dataset has %v samples, the state was saved with %v", e.Want, e.Got)
	case "Fields":
		return fmt.Sprintf("loader: a sample has %v, the state was saved with %v", e.Want, e.Got)
	case "Fingerprint":
		return "loader: the data has the same fields, but not the contents that the state was saved with: its Fingerprint differs"
	case "Seed":
		return fmt.Sprintf("loader: the seed is %v, the state was saved with %v", e.Want, e.Got)
	case "Shards":
		switch {
		case e.Want == 0:
			return fmt.Sprintf("loader: the data is no Stream, the state was saved with one of %v shards", e.Got)
		case e.Got == 0:
			return fmt.Sprintf("loader: the data is a Stream of %v shards, the state was saved without", e.Want)
		}
		return fmt.Sprintf("loader: the stream has %v shards, the state was saved with %v", e.Want, e.Got)
	case "Steps":
		return fmt.Sprintf("loader: Options.Steps is %v, the state was saved with %v", e.Want, e.Got)
	case "Shuffle":
		if e.Want == true {
			return "loader: the samples are shuffled, the state was saved without Shuffle"
		}
		return "loader: the samples are not shuffled, the state was saved with Shuffle"
	case "Kept":
		return fmt.Sprintf("loader: the state was saved with a stream that had decided more: %v", e.Want)
	case "Excluded":
		return "loader: the state was saved with other samples or steps excluded: Options.Exclude must begin with all that was excluded then, unchanged; append what is new"
	}
	return fmt.Sprintf("loader: %s is %v, want %v", e.Field, e.Got, e.Want)
}

// StateAt is the state of a training loop to which all before the cursor has been
// delivered. At an epoch's end it is the beginning of the next.
//
// What a Stream's State has to say is known from the last place delivered on: behind
// Run.Next of the batch and until the next batch is returned, or until Claim.Delivered tells
// of a later place. The State of an earlier place has no Marks, and Check refuses it.
func (l *Loader) StateAt(at Cursor) State {
	at = l.normalize(at)
	if l.options.Shard.Count > 1 {
		at.Substituted, at.Skipped = 0, 0
	}
	samples := int64(0)
	if l.known {
		samples = l.split.samples
	}
	s := State{
		Version:     stateVersion,
		Samples:     samples,
		Fields:      l.fields,
		Fingerprint: l.fingerprint,
		Seed:        l.options.Seed,
		Shuffle:     l.options.Shuffle,
		Epoch:       at.Epoch,
		Position:    at.Position,
		Substituted: at.Substituted,
		Excluded:    l.excluded.digest(),
		Skipped:     at.Skipped,
		Steps:       l.options.Steps,
		Shards:      l.shards,
		Kept:        slices.Clone(l.kept),
	}
	if at.track != nil {
		s.Marks = l.marksAt(at)
	}
	return s
}

// Check reports whether the state belongs to this loader's data and order. Its
// error joins a *StateError for everything that does not fit. A source that gives its
// samples once (FromSeq) can go on only where it stands, in the same process: any
// other place is an *OnePassError.
func (l *Loader) Check(s State) error {
	if s.Version != stateVersion {
		// The other fields may mean something else.
		return &StateError{Field: "Version", Got: s.Version, Want: stateVersion, zero: s.Equal(State{})}
	}
	var errs []error
	check := func(ok bool, field string, got, want any) bool {
		if !ok {
			errs = append(errs, &StateError{Field: field, Got: got, Want: want})
		}
		return ok
	}
	samples := int64(0)
	if l.known {
		samples = l.split.samples
	}
	same := check(s.Samples == samples, "Samples", s.Samples, samples)
	if check(s.Fields == l.fields, "Fields", s.Fields, l.fields) && same {
		check(s.Fingerprint == l.fingerprint, "Fingerprint", s.Fingerprint, l.fingerprint)
	}
	check(s.Seed == l.options.Seed, "Seed", s.Seed, l.options.Seed)
	check(s.Shuffle == l.options.Shuffle, "Shuffle", s.Shuffle, l.options.Shuffle)
	check(s.Epoch >= 0 && s.Epoch <= maxEpoch, "Epoch", s.Epoch, fmt.Sprintf("0 to %d", maxEpoch))
	if same { // else its position is of another length
		check(l.split.holds(s.Position), "Position", s.Position, fmt.Sprintf("0 to %d", l.split.samples))
	}
	if end := l.options.Epochs; end > 0 && s.Epoch <= maxEpoch {
		check(s.Epoch <= end, "Epoch", s.Epoch, fmt.Sprintf("0 to %d, the end of Options.Epochs", end))
		over := s.Epoch == end && s.Position > 0 && s.Position <= l.split.samples // else it is told above
		check(!over, "Position", s.Position, fmt.Sprintf("0, since all %d epochs of Options.Epochs are over", end))
	}
	check(l.excluded.extends(s.Excluded), "Excluded", s.Excluded, l.excluded.digest())
	if check(s.Shards == l.shards, "Shards", s.Shards, l.shards) && l.stream != nil {
		check((s.Steps > 0) == (l.options.Steps > 0), "Steps", s.Steps, l.options.Steps)
		errs = append(errs, s.checkMarks(), l.extends(s.Kept))
		if l.options.Steps > 0 && len(s.Marks) == 0 {
			check(s.Epoch == 0, "Epoch", s.Epoch, "0, where a State with Steps has no Marks")
		}
	}
	check(s.Skipped >= 0, "Skipped", s.Skipped, "0 or more")
	check(s.Substituted >= 0 && int64(s.Substituted) <= max(l.split.rows(s.Position), 0), "Substituted", s.Substituted, "0 to Position")
	if err := errors.Join(errs...); err != nil || l.once == nil {
		return err
	}
	return l.once.check(s.Cursor())
}

// normalize is Claim.Normalize.
func (l *Loader) normalize(at Cursor) Cursor {
	if l.known && l.split.holds(at.Position) && l.split.left(at) == 0 {
		return Cursor{Epoch: at.Epoch + 1}
	}
	if l.split.fixed > 0 && at.Position > 0 && l.split.rest(at) == 0 {
		return Cursor{Epoch: at.Epoch + 1, track: at.track} // the sequence goes on
	}
	return at
}

// validate is a *StateError for a place that no epoch of this loader has.
func (l *Loader) validate(at Cursor) error {
	if at.Epoch < 0 || at.Epoch > maxEpoch || !l.split.holds(at.Position) ||
		at.Substituted < 0 || int64(at.Substituted) > l.split.rows(at.Position) {
		return &StateError{Field: "Cursor", Got: at, Want: fmt.Sprintf(
			"an epoch of 0 to %d, a position of 0 to %d and no more substitutes than rows", maxEpoch, l.split.samples)}
	}
	if l.stream != nil && l.marksAt(at) == nil {
		return &StateError{Field: "Cursor", Got: at, Want: "an epoch's beginning, or a place of a State, or the last one that was delivered"}
	}
	return nil
}
