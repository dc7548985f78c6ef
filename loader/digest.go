package loader

import (
	"fmt"
	"hash/crc32"
	"iter"
	"slices"
	"strings"
)

// Digest says what a batch holds, in a few numbers: two runs that note one for each batch
// are compared by FirstDifference. It marshals to JSON, as a line of a log for example.
// Each rank has its own.
type Digest struct {
	// Epoch, Batch, Position, Rows and Valid are the batch's, as in Filled.
	Epoch    int   `json:"epoch"`
	Batch    int   `json:"batch"`
	Position int64 `json:"position"`
	Rows     int   `json:"rows"`
	Valid    int   `json:"valid"`
	// Fields are those of the batch, in their order.
	Fields []FieldDigest `json:"fields"`
}

// FieldDigest says what a batch holds in one field.
type FieldDigest struct {
	Name string `json:"name"`
	// Bytes is how many bytes all rows have.
	Bytes int64 `json:"bytes"`
	// Sum is their CRC-32C: of sums in the standard library that are the same in every
	// process it is by far the fastest, 11 GB/s and more where SHA-256, CRC-64 and FNV make
	// about 1. Of other bytes one in four billion has the same sum by chance; it is no
	// protection from who wants that.
	Sum uint32 `json:"sum"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// DigestField is the digest of a field with these bytes.
func DigestField(name string, bytes []byte) FieldDigest {
	return FieldDigest{Name: name, Bytes: int64(len(bytes)), Sum: crc32.Checksum(bytes, castagnoli)}
}

// Digest is that of a batch of this layout: of all bytes of its rows, padding included, and
// of no others in its slot.
func (l *Layout) Digest(batch Filled) Digest {
	d := Digest{
		Epoch: batch.Epoch, Batch: batch.Batch, Position: batch.Position, Rows: batch.N, Valid: batch.Valid,
		Fields: make([]FieldDigest, len(l.fields)),
	}
	for i := range l.fields {
		d.Fields[i] = DigestField(l.fields[i].Name, l.Rows(i, batch))
	}
	return d
}

// DifferenceError is the first difference between the batches of two runs.
type DifferenceError struct {
	// Number counts the batches compared, from 0.
	Number int
	// A and B are the digests that differ, nil of a run that has no more batches.
	A, B *Digest
	// Fields are the names of the fields that differ, if the batches are otherwise alike.
	Fields []string
}

// Error implements error. It names the batch and what differs.
func (e *DifferenceError) Error() string {
	switch {
	case e.A == nil:
		return fmt.Sprintf("loader: the first run has %d batches, the second has %v too", e.Number, e.B)
	case e.B == nil:
		return fmt.Sprintf("loader: the second run has %d batches, the first has %v too", e.Number, e.A)
	case len(e.Fields) == 0:
		return fmt.Sprintf("loader: batch %d of those compared is %v in the first run, %v in the second", e.Number, e.A, e.B)
	}
	return fmt.Sprintf("loader: %v: other bytes in %s", e.A, strings.Join(e.Fields, ", "))
}

// String names the batch.
func (d *Digest) String() string {
	return fmt.Sprintf("batch %d of epoch %d, position %d, %d rows, %d of them valid", d.Batch, d.Epoch, d.Position, d.Rows, d.Valid)
}

// FirstDifference compares two runs batch by batch. It returns a *DifferenceError for the
// first in which they differ, nil if there is none. Runs that began at different places are
// different from the start: leave out what only one of them has.
func FirstDifference(a, b iter.Seq[Digest]) error {
	next, stop := iter.Pull(b)
	defer stop()
	n := 0
	for x := range a {
		y, ok := next()
		if !ok {
			return &DifferenceError{Number: n, A: &x}
		}
		if different, fields := x.differs(y); different {
			return &DifferenceError{Number: n, A: &x, B: &y, Fields: fields}
		}
		n++
	}
	if y, ok := next(); ok {
		return &DifferenceError{Number: n, B: &y}
	}
	return nil
}

// differs reports whether two digests do, and in which fields if the batches are otherwise
// alike.
func (d Digest) differs(e Digest) (different bool, fields []string) {
	alike := d.Epoch == e.Epoch && d.Batch == e.Batch && d.Position == e.Position && d.Rows == e.Rows && d.Valid == e.Valid &&
		slices.EqualFunc(d.Fields, e.Fields, func(a, b FieldDigest) bool { return a.Name == b.Name })
	if !alike {
		return true, nil
	}
	for i, f := range d.Fields {
		if f != e.Fields[i] {
			fields = append(fields, f.Name)
		}
	}
	return len(fields) > 0, fields
}
