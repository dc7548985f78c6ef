package slotmodel

import (
	"fmt"
	"slices"
)

// An Edge is a call that the order of things depends on.
type Edge uint8

// The edges: (a) read after filled, (b) overwrite after read, (c) refill after copied.
const (
	None                Edge = iota
	WaitConsumed             // (b), the copy stream's wait
	RecordConsumed           // (b)
	RecordReady              // (a)
	WaitReady                // (a), compute's wait
	RecordCopied             // (c)
	SynchronizeCopied        // (c), the recycler's wait
	RecordBeforeRelease      // P1: the slot is released before Record(consumed)
)

func (e Edge) String() string {
	return [...]string{"None", "WaitConsumed", "RecordConsumed", "RecordReady", "WaitReady", "RecordCopied",
		"SynchronizeCopied", "RecordBeforeRelease"}[e]
}

// A Fault is what may go wrong, once, at any moment at which it can.
type Fault uint8

// The faults.
const (
	NoFault       Fault = iota
	ReadFails           // a sample can't be read
	UploadFails         // any call of the uploader
	HandOverFails       // compute's Wait(ready)
	ReleaseFails        // Record(consumed)
	RecycleFails        // the recycler's event
	Stopped             // Close, from another goroutine
	Stuck               // a producer ignores its context
)

func (f Fault) String() string {
	return [...]string{"NoFault", "ReadFails", "UploadFails", "HandOverFails", "ReleaseFails", "RecycleFails", "Stopped", "Stuck"}[f]
}

// Options say what to explore. The zero value is the protocol as it is, without a
// fault.
type Options struct {
	// Without leaves one edge out.
	Without Edge
	// Fault is what may happen once.
	Fault Fault
}

// Result is what Explore found.
type Result struct {
	// States is the number of different states reached.
	States int
	// Violation is the promise that was broken, "" if none was, and Trace the steps
	// that led there.
	Violation string
	Trace     []string
}

type model struct {
	Options
	steps []step
	seen  map[state]struct{}
	// visits are the states in the order of their discovery: how each was reached.
	visits []visit
}

type visit struct {
	from int // the visit before it
	did  note
}

// Explore goes through every interleaving, until one breaks a promise: none with
// fewer steps does.
func Explore(o Options) Result {
	m := &model{Options: o, steps: steps(), seen: make(map[state]struct{})}
	frontier := []state{initial()}
	m.seen[frontier[0]] = struct{}{}
	m.visits = append(m.visits, visit{})
	first := 0 // the frontier's first visit
	for len(frontier) > 0 {
		end := len(m.visits)
		var next []state
		for i, s := range frontier {
			reached, why := m.from(s, first+i)
			if why != "" {
				return Result{States: len(m.seen), Violation: why, Trace: m.trace(len(m.visits) - 1)}
			}
			next = append(next, reached...)
		}
		frontier, first = next, end
	}
	return Result{States: len(m.seen)}
}

// from takes every step from a state and returns the new states it leads to. What
// breaks a promise is the last visit.
func (m *model) from(s state, at int) (reached []state, why string) {
	stuck := true
	for _, step := range m.steps {
		next := s
		did, possible := step(m, &next)
		if !possible {
			continue
		}
		stuck = false
		if _, known := m.seen[next]; known {
			continue
		}
		m.seen[next] = struct{}{}
		m.visits = append(m.visits, visit{at, did})
		if next.broken.promise != kept {
			return nil, next.broken.String()
		}
		reached = append(reached, next)
	}
	if stuck {
		if why = s.unfinished(m.Fault); why != "" {
			m.visits = append(m.visits, visit{at, note{"and that is all", 0}})
		}
	}
	return reached, why
}

// trace is the way to a visit.
func (m *model) trace(at int) (steps []string) {
	for ; at > 0; at = m.visits[at].from {
		steps = append(steps, m.visits[at].did.String())
	}
	slices.Reverse(steps)
	return steps
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
