package lesson

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// A Lesson is all schedules of all numbers of batches.
type Lesson struct {
	Options Options // those in force
	Parts   []Part
}

// A Part is the same batches in every way.
type Part struct {
	Batches   int
	Schedules [SeveralStreams + 1]Schedule // by Way
}

// Give runs the lesson, in real time or in that of a testing/synctest bubble. A
// run that would last for less or much longer than a person likes to watch has its
// times stretched or shrunk meanwhile. Mistakes in o are reported all at once.
func Give(ctx context.Context, o Options) (Lesson, error) {
	if err := o.Validate(); err != nil {
		return Lesson{}, fmt.Errorf("lesson: %w", err)
	}
	o = o.withDefaults()
	l := Lesson{Options: o}
	most := time.Duration(slices.Max(o.Batches))
	pace := newPace(most*o.serial(), o.H2D, o.Compute, o.D2H)
	for _, n := range o.Batches {
		part := Part{Batches: n}
		for way := range part.Schedules {
			s, err := run(ctx, o, pace, Way(way), n)
			if err != nil {
				return Lesson{}, fmt.Errorf("lesson: %d batches, %s: %w", n, o.name(Way(way)), err)
			}
			part.Schedules[way] = s
		}
		l.Parts = append(l.Parts, part)
	}
	return l, nil
}

// name is the way's name.
func (o Options) name(w Way) string {
	switch w {
	case Synchronous:
		return "synchronous"
	case OneStream:
		return "one stream"
	}
	return count(o.Depth, "stream", "streams")
}

// engines are the names of the card's engines.
func (o Options) engines() []string {
	if o.Engines == 1 {
		return []string{"copy", "compute"}
	}
	return []string{"H2D", "compute", "D2H"}
}
