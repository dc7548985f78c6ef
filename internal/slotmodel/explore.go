package slotmodel

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
)

// Result is what an exploration found.
type Result struct {
	// States is the number of different states reached.
	States int
	// Violation is the promise that was broken, "" if none was, and Trace the steps
	// that led there.
	Violation string
	Trace     []string
}

// String is the result for a person.
func (r Result) String() string {
	if r.Violation == "" {
		return fmt.Sprintf("%d states, and every promise is kept", r.States)
	}
	text := "after\n"
	for _, step := range r.Trace {
		text += "\t" + step + "\n"
	}
	return text + r.Violation
}

// A note says what a step did, in a format for one number or none.
type note struct {
	format string
	number int8
}

func (n note) String() string {
	if !strings.Contains(n.format, "%") {
		return n.format
	}
	return fmt.Sprintf(n.format, n.number)
}

func impossible() (note, bool) { return note{}, false }

// A step is one thing that can happen. It changes s and says what it did, or reports that
// it is not possible now, and changes nothing.
type step[S any] func(s *S) (did note, possible bool)

// A space is all that can happen, to be searched. States that are equal have equal
// futures.
type space[S comparable] struct {
	steps []step[S]
	// broken is the promise that is broken in a state, "" if none is.
	broken func(*S) string
	// unfinished is what is missing in a state in which nobody can go on, "" if that is
	// as it should be.
	unfinished func(*S) string

	seeds [2]maphash.Seed
	seen  map[[2]uint64]struct{} // states by a hash of 128 bits: none is taken for another
	// visits are the states in the order of their discovery: how each was reached.
	visits []visit
}

type visit struct {
	from int // the visit before it
	did  note
}

// new reports whether s was not reached before, and notes it.
func (sp *space[S]) new(s *S) bool {
	key := [2]uint64{maphash.Comparable(sp.seeds[0], *s), maphash.Comparable(sp.seeds[1], *s)}
	if _, known := sp.seen[key]; known {
		return false
	}
	sp.seen[key] = struct{}{}
	return true
}

// explore takes every step in every state that can be reached, breadth first, until one
// breaks a promise: none with fewer steps does.
func (sp *space[S]) explore(initial S) Result {
	sp.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	sp.seen = make(map[[2]uint64]struct{})
	sp.new(&initial)
	sp.visits = []visit{{}}
	first := 0 // the frontier's first visit
	for frontier := []S{initial}; len(frontier) > 0; {
		end := len(sp.visits)
		var next []S
		for i := range frontier {
			reached, why := sp.from(&frontier[i], first+i)
			if why != "" {
				return Result{States: len(sp.seen), Violation: why, Trace: sp.trace(len(sp.visits) - 1)}
			}
			next = append(next, reached...)
		}
		frontier, first = next, end
	}
	return Result{States: len(sp.seen)}
}

// from takes every step from a state and returns the new states it leads to. What breaks
// a promise is the last visit.
func (sp *space[S]) from(s *S, at int) (reached []S, why string) {
	stuck, next := true, *s
	for _, step := range sp.steps {
		did, possible := step(&next)
		if !possible {
			continue
		}
		stuck = false
		if sp.new(&next) {
			sp.visits = append(sp.visits, visit{at, did})
			if why := sp.broken(&next); why != "" {
				return nil, why
			}
			reached = append(reached, next)
		}
		next = *s
	}
	if stuck {
		if why = sp.unfinished(s); why != "" {
			sp.visits = append(sp.visits, visit{at, note{format: "and that is all"}})
		}
	}
	return reached, why
}

// trace is the way to a visit.
func (sp *space[S]) trace(at int) (steps []string) {
	for ; at > 0; at = sp.visits[at].from {
		steps = append(steps, sp.visits[at].did.String())
	}
	slices.Reverse(steps)
	return steps
}
