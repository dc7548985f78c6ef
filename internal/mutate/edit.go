package main

import (
	"bytes"
	"cmp"
	"slices"
)

// edits are insertions around pieces of a text. Pieces may nest, and may be the same;
// they never overlap in part.
type edits []edit

type edit struct {
	mutant        int
	start, end    int
	before, after string
}

// wrap puts before and after around the text from start to end. Of two wraps of one
// piece the earlier is the outer.
func (e *edits) wrap(mutant, start, end int, before, after string) {
	*e = append(*e, edit{mutant, start, end, before, after})
}

// insert puts text at a place, outside all wraps that start there.
func (e *edits) insert(mutant, at int, text string) { e.wrap(mutant, at, at, text, "") }

// apply is the edited text, and the function from an offset in it to that in the
// original.
func (e edits) apply(text []byte) ([]byte, func(int) int) {
	type piece struct {
		at, phase, order, made int
		text                   string
	}
	const after, inserted, before = 0, 1, 2
	var pieces []piece
	for i, w := range e {
		if w.start == w.end {
			pieces = append(pieces, piece{w.start, inserted, 0, i, w.before})
			continue
		}
		pieces = append(pieces,
			piece{w.start, before, -w.end, i, w.before}, // the longest first
			piece{w.end, after, -w.start, -i, w.after})  // the shortest first
	}
	slices.SortFunc(pieces, func(a, b piece) int {
		return cmp.Or(a.at-b.at, a.phase-b.phase, a.order-b.order, a.made-b.made)
	})
	var out bytes.Buffer
	type span struct{ edited, at int }
	spans := []span{{}}
	at := 0
	for _, p := range pieces {
		out.Write(text[at:p.at])
		at = p.at
		spans = append(spans, span{out.Len(), at})
		out.WriteString(p.text)
		spans = append(spans, span{out.Len(), at})
	}
	out.Write(text[at:])
	return out.Bytes(), func(offset int) int {
		i, found := slices.BinarySearchFunc(spans, offset, func(s span, offset int) int { return s.edited - offset })
		if !found {
			i--
		}
		if i+1 < len(spans) && spans[i+1].at == spans[i].at {
			return spans[i].at // in inserted text
		}
		return spans[i].at + offset - spans[i].edited
	}
}
