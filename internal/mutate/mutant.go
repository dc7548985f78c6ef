package main

import (
	"fmt"
	"strings"
)

// Kinds of mutants; doc.go describes them.
const (
	deleted   = "delete"
	unlocked  = "unlock"
	swapped   = "swap"
	madeTrue  = "true"
	madeFalse = "false"
	dropped   = "drop"
	negated   = "negate"
	bound     = "bound"
	noCase    = "nocase"
)

// A Mutant is one change of the source.
type Mutant struct {
	Number  int
	Package string
	File    string // of the package, without its folder
	Line    int
	Func    string
	Kind    string
	Text    string // what is changed, in one line
	Nth     int    // among those of equal function, kind and text
	Race    bool   // it may take the race detector to see its harm

	source     *file
	start, end int // what is changed, by offsets
}

// Key names the mutant in the list of survivors. It holds no line and no number, so
// that it outlives changes elsewhere.
func (m *Mutant) Key() string {
	key := fmt.Sprintf("%s %s %s: %s", m.Package, m.Func, m.Kind, m.Text)
	if m.Nth > 1 {
		key += fmt.Sprintf(" #%d", m.Nth)
	}
	return key
}

// oneLine is source text in one line, cut at a length that is read at a glance.
func oneLine(text []byte) string {
	const most = 100
	line := []rune(strings.Join(strings.Fields(string(text)), " "))
	if len(line) > most {
		line = append(line[:most-1], '…')
	}
	return string(line)
}
