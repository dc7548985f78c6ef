package loader

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// ShardMark is how far one shard of a Stream is.
type ShardMark struct {
	// Shard is its number.
	Shard int `json:"shard"`
	// Pass is the pass that it is in: the epoch, or under Options.Steps its own.
	Pass int `json:"pass"`
	// Samples counts those of it that are delivered, in the epoch, or under Options.Steps
	// in all its passes.
	Samples int64 `json:"samples"`
	// Mark is where to begin to read, as a ShardReader has marked it: at the beginning of
	// the pass if there is none.
	Mark json.RawMessage `json:"mark,omitempty"`
	// Leave is how many records behind Mark to leave out.
	Leave int64 `json:"leave,omitempty"`
	// Replay says that the reader could not mark a place behind Mark, so that Leave may be
	// large: going on takes time in proportion to it.
	Replay bool `json:"replay,omitempty"`
	// Ended says that the shard has no more to give: in the epoch, or under Options.Steps
	// for good.
	Ended bool `json:"ended,omitempty"`
}

// MergeStates makes one State of those that the ranks of a Stream have saved behind the
// same step, each of which has the shards of its rank only. They may come in any order.
// What does not fit together, or is missing, is a *StateError. States of other data are
// equal on all ranks: any one of them is returned.
func MergeStates(states ...State) (State, error) {
	if len(states) == 0 {
		return State{}, &StateError{Field: "states", Got: "none", Want: "the State of each rank"}
	}
	merged := states[0]
	merged.Marks = nil
	var errs []error
	for _, s := range states {
		merged.Position = max(merged.Position, s.Position)
		merged.Marks = append(merged.Marks, s.Marks...)
		errs = append(errs, states[0].differs(s))
	}
	if err := errors.Join(errs...); err != nil {
		return State{}, err
	}
	for _, s := range states {
		if s.Position < merged.Position && !s.ended() {
			errs = append(errs, &StateError{Field: "Position", Got: s.Position, Want: fmt.Sprintf("%d, as on another rank: saved behind the same step", merged.Position)})
		}
	}
	sortBy(merged.Marks, func(a, b ShardMark) int { return cmp.Compare(a.Shard, b.Shard) })
	if err := errors.Join(append(errs, merged.incomplete())...); err != nil {
		return State{}, err
	}
	if merged.Steps == 0 && len(merged.Marks) > 0 { // the last batches may have been short
		merged.Position = 0
		for _, m := range merged.Marks {
			merged.Position += m.Samples
		}
	}
	return merged, nil
}

// differs is what keeps two States from being of one run.
func (s State) differs(other State) error {
	s.Position, other.Position = 0, 0
	s.Marks, other.Marks = nil, nil
	s.Substituted, other.Substituted = 0, 0
	s.Skipped, other.Skipped = 0, 0
	if s.Equal(other) {
		return nil
	}
	return &StateError{Field: "states", Got: fmt.Sprintf("%+v", other), Want: fmt.Sprintf("%+v", s)}
}

// ended reports whether no shard that the State has can give more: then it is behind later
// steps too.
func (s State) ended() bool {
	return len(s.Marks) > 0 && !slices.ContainsFunc(s.Marks, func(m ShardMark) bool { return !m.Ended })
}

// incomplete reports shards that the State has twice, or lacks: it is one rank's.
func (s State) incomplete() error {
	if len(s.Marks) == 0 && s.Position == 0 {
		return nil // the beginning
	}
	seen := make(map[int]bool, len(s.Marks))
	for _, m := range s.Marks {
		if seen[m.Shard] {
			return &StateError{Field: "Marks", Got: fmt.Sprintf("shard %d twice", m.Shard), Want: "each once"}
		}
		if m.Shard < 0 || m.Shard >= s.Shards {
			return &StateError{Field: "Marks", Got: fmt.Sprintf("shard %d", m.Shard), Want: fmt.Sprintf("0 to %d", s.Shards-1)}
		}
		seen[m.Shard] = true
	}
	if missing := s.Shards - len(seen); missing > 0 {
		return &StateError{Field: "Marks", Got: len(seen),
			Want: fmt.Sprintf("those of all %d shards: the other %d are in the states of other ranks; see MergeStates", s.Shards, missing)}
	}
	return nil
}

// checkMarks reports marks that no run has left.
func (s State) checkMarks() error {
	errs := []error{s.incomplete()}
	sum := int64(0)
	most := int64(maxSamples) / int64(max(s.Shards, 1))
	for _, m := range s.Marks {
		check := func(ok bool, what string, got, want any) {
			if !ok {
				errs = append(errs, &StateError{Field: fmt.Sprintf("Marks of shard %d: %s", m.Shard, what), Got: got, Want: want})
			}
		}
		check(m.Pass >= 0 && m.Pass <= maxEpoch, "Pass", m.Pass, fmt.Sprintf("0 to %d", maxEpoch))
		check(s.Steps > 0 || m.Pass == s.Epoch, "Pass", m.Pass, fmt.Sprintf("%d, the epoch", s.Epoch))
		check(m.Samples >= 0 && m.Samples <= most, "Samples", m.Samples, fmt.Sprintf("0 to %d", most))
		sum += min(max(m.Samples, 0), most)
		check(m.Leave >= 0 && m.Leave <= maxSamples, "Leave", m.Leave, fmt.Sprintf("0 to %d", int64(maxSamples)))
		check(len(m.Mark) == 0 || json.Valid(m.Mark), "Mark", string(m.Mark), "a JSON value")
	}
	if err := errors.Join(errs...); err != nil || s.Steps > 0 || sum == s.Position {
		return err
	}
	return &StateError{Field: "Position", Got: s.Position, Want: fmt.Sprintf("%d, the sum over the shards", sum)}
}

// marksAt returns the marks of this rank's shards at a place, each once and by number, nil if
// they are not all known.
func (l *Loader) marksAt(at Cursor) []ShardMark {
	at = l.normalize(at)
	if at.track == nil {
		return l.marksOf(at)
	}
	all := at.track.at(at)
	own := all[:0]
	for _, m := range all {
		if m.Shard%int(l.split.ranks) == int(l.split.rank) {
			own = append(own, m)
		}
	}
	sortBy(own, func(a, b ShardMark) int { return cmp.Compare(a.Shard, b.Shard) })
	shard := int(l.split.rank)
	for _, m := range own {
		if m.Shard != shard || shard >= l.shards {
			return nil
		}
		shard += int(l.split.ranks)
	}
	if shard < l.shards {
		return nil
	}
	return own
}

// marksOf returns those at an epoch's beginning.
func (l *Loader) marksOf(at Cursor) (marks []ShardMark) {
	if at.Position != 0 || l.options.Steps > 0 && at.Epoch != 0 {
		return nil
	}
	for shard := int(l.split.rank); shard < l.shards; shard += int(l.split.ranks) {
		marks = append(marks, ShardMark{Shard: shard, Pass: at.Epoch})
	}
	return marks
}

// samePlace reports whether a State tells of a place that this rank can go on from: also
// by other marks.
func (l *Loader) samePlace(s State, at Cursor) bool {
	to := s.Cursor()
	at = l.normalize(at)
	if !at.same(l.normalize(to)) {
		return false
	}
	a, b := l.marksAt(at), l.marksAt(to)
	return a != nil && slices.EqualFunc(a, b, func(x, y ShardMark) bool {
		return x.Shard == y.Shard && x.Pass == y.Pass && x.Samples == y.Samples && x.Ended == y.Ended
	})
}
