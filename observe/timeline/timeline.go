package timeline

import (
	"slices"
	"time"
)

// A Timeline is what happened from 0 to Length.
type Timeline struct {
	// Title says which pipeline it is of.
	Title string
	// Notes are sentences about it.
	Notes []string
	// Length is how long it is.
	Length time.Duration
	// Lanes are in the order of a batch's way.
	Lanes []Lane
}

// A Lane is what one worker, slot or engine did, one thing after the other.
type Lane struct {
	// Group is what it is one of, as in "worker", and Number which, from 0; -1 for the only one.
	Group  string
	Number int
	// Spans are in order of time, and don't overlap.
	Spans []Span
}

// The groups of lanes, in order.
const (
	Workers   = "worker"
	HostSlots = "host slot"
	Copies    = "copies"
	Transform = "transform"
	Compute   = "compute"
	Downloads = "downloads"
	Loop      = "loop"
)

// A Kind is what a span's time was spent on.
type Kind string

// The kinds. What is idle has a reason in Span.Why.
const (
	Reading    Kind = "read"
	Filling    Kind = "fill"
	Filled     Kind = "filled" // a host slot that waits to be copied
	Copying    Kind = "copy"
	Converting Kind = "transform"
	Computing  Kind = "compute"
	Fetching   Kind = "download"
	Body       Kind = "body"
	Idle       Kind = "idle"
)

// A Span is a stretch of a lane's time.
type Span struct {
	Kind Kind
	// From and To are since the Timeline's beginning.
	From, To time.Duration
	// Epoch and Batch are of the batch that it is about, or the first of Batches.
	Epoch, Batch, Batches int
	// Sample is the index of the first of Samples that a worker has read.
	Sample, Samples int
	// Why is what an idle span waited for: a journal.Cause.
	Why string
}

// Took is how long it lasted.
func (s *Span) Took() time.Duration { return s.To - s.From }

// Lane returns the lanes of a group.
func (t *Timeline) Group(group string) (lanes []*Lane) {
	for i := range t.Lanes {
		if t.Lanes[i].Group == group {
			lanes = append(lanes, &t.Lanes[i])
		}
	}
	return lanes
}

// Sum is how long a group's lanes were at work of a kind together; with a reason, idle for
// that reason.
func (t *Timeline) Sum(group string, kind Kind, why string) (sum time.Duration) {
	for _, l := range t.Group(group) {
		for i := range l.Spans {
			if s := &l.Spans[i]; s.Kind == kind && (why == "" || s.Why == why) {
				sum += s.Took()
			}
		}
	}
	return sum
}

// Cut is the part of it between two instants, which begins at 0 again.
func (t *Timeline) Cut(from, to time.Duration) *Timeline {
	from, to = max(from, 0), min(to, t.Length)
	cut := &Timeline{Title: t.Title, Notes: t.Notes, Length: max(to-from, 0)}
	for _, l := range t.Lanes {
		spans := slices.Clone(l.Spans)
		spans = slices.DeleteFunc(spans, func(s Span) bool { return s.To <= from || s.From >= to })
		for i := range spans {
			s := &spans[i]
			s.From, s.To = max(s.From, from)-from, min(s.To, to)-from
		}
		if len(spans) > 0 {
			l.Spans = spans
			cut.Lanes = append(cut.Lanes, l)
		}
	}
	return cut
}

// Last is the part of the last so many steps of the loop, all of it if there are no more.
func (t *Timeline) Last(steps int) *Timeline {
	for _, loop := range t.Group(Loop) {
		for i := len(loop.Spans) - 1; i >= 0; i-- {
			if loop.Spans[i].Kind != Body {
				continue
			}
			if steps--; steps < 0 {
				return t.Cut(loop.Spans[i].To, t.Length)
			}
		}
	}
	return t
}
