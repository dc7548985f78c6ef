// Package timeline draws what engines did and when, in characters: one row an
// engine, one column a fixed time.
package timeline

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// Idle is drawn where an engine has nothing to do.
const Idle = '·'

// A Span is a time in which an engine works on one batch.
type Span struct {
	Start, End time.Duration
	// Label fills the columns of the span.
	Label rune
}

// A Row is an engine and its spans, which do not overlap, in order of time.
type Row struct {
	Name  string
	Spans []Span
}

// Column is the least round time, 1, 2 or 5 times a power of ten of nanoseconds,
// of which at most columns cover total.
func Column(total time.Duration, columns int) time.Duration {
	for decade := time.Duration(1); decade <= math.MaxInt64/10; decade *= 10 {
		for _, step := range []time.Duration{decade, 2 * decade, 5 * decade} {
			if (total+step-1)/step <= time.Duration(columns) {
				return step
			}
		}
	}
	return math.MaxInt64
}

// Draw draws the rows from 0 to total, a line each, with the names in front. The
// span that takes most of a column's time fills it, so that a copy of any length is
// seen, and bubbles of a column or more.
func Draw(rows []Row, total, column time.Duration) string {
	width := 0
	for _, r := range rows {
		width = max(width, utf8.RuneCountInString(r.Name))
	}
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%-*s  %s\n", width, r.Name, string(r.cells(total, column)))
	}
	return b.String()
}

// cells are r's columns.
func (r Row) cells(total, column time.Duration) []rune {
	cells := make([]rune, (total+column-1)/column)
	next := 0
	for i := range cells {
		from := time.Duration(i) * column
		to := min(from+column, total)
		for next < len(r.Spans) && r.Spans[next].End <= from {
			next++
		}
		cells[i] = majority(r.Spans[next:], from, to)
	}
	return cells
}

// majority is the label of the span that takes most of the time between from and
// to, of equals the earliest; Idle if none takes any.
func majority(spans []Span, from, to time.Duration) rune {
	label, most := Idle, time.Duration(0)
	for _, s := range spans {
		if s.Start >= to {
			break
		}
		if in := min(s.End, to) - max(s.Start, from); in > most {
			label, most = s.Label, in
		}
	}
	return label
}
