package compose

import (
	"context"
	"math"

	"github.com/leat-go/leat/loader"
)

// maxLen is the largest length of a composition, as of a loader's dataset.
const maxLen = min(1<<62, math.MaxInt)

// mapping is a Dataset whose samples are samples of others. It moves no byte: the other
// dataset writes into the row.
type mapping struct {
	parts  []part // all of the same fields
	length int
	chooser
	fingerprint uint64
	changing    bool // whether what is chosen depends on the pass
}

// chooser says which sample of which part a sample is. It is a pure function, and is
// called by several goroutines at once.
type chooser interface {
	// choose is Part of loader.Composed. What it works out for the samples behind is kept
	// with the row that they are read into, which is nil if nothing is read.
	choose(row *loader.Row, pass uint64, index int) (part, at int, partPass uint64)
}

func (m *mapping) Len() int                { return m.length }
func (m *mapping) Fields() []loader.Field  { return m.parts[0].fields }
func (m *mapping) Fingerprint() uint64     { return m.fingerprint }
func (m *mapping) Parts() []loader.Dataset { return datasets(m.parts) }

// Part is that of loader.Composed.
func (m *mapping) Part(pass uint64, index int) (part, at int, partPass uint64) {
	return m.choose(nil, pass, index)
}

func (m *mapping) Read(ctx context.Context, index int, row *loader.Row) error {
	return m.read(ctx, uint64(row.Epoch()), index, row)
}

func (m *mapping) read(ctx context.Context, pass uint64, index int, row *loader.Row) error {
	if uint(index) >= uint(m.length) {
		return &IndexError{Index: index, Len: m.length}
	}
	part, at, partPass := m.choose(row, pass, index)
	return m.parts[part].read(ctx, partPass, at, row)
}

func (m *mapping) varies() bool {
	return m.changing || vary(m.parts)
}

// chosen makes a mapping of one part.
func chosen(k kind, p part, length int, c chooser, parameters ...uint64) *mapping {
	return &mapping{
		parts: []part{p}, length: length, chooser: c,
		fingerprint: fingerprint(k, []part{p}, parameters...),
	}
}

// chosenByPass is chosen where the choice depends on the pass.
func chosenByPass(k kind, p part, length int, c chooser, parameters ...uint64) *mapping {
	m := chosen(k, p, length, c, parameters...)
	m.changing = true
	return m
}
