package prefetch

import (
	"fmt"

	"github.com/leat-go/leat/internal/slots"
	"github.com/leat-go/leat/loader"
)

// describe says what a checker of orders calls the ring's memory in its reports. It asks
// only when there is one to make.
func (g *stages) describe(s *slots.Slot) {
	z := &g.sizes
	s.Describe(func(offset, _ int64) (string, string) {
		if g.ring == nil {
			return "device slots that are being made", ""
		}
		windows := g.windowsOf(s)
		i := min(int(offset/z.outStride), len(windows)-1)
		return fmt.Sprintf("slot %d%s%s", s.ID, windows[i].history.Batches(), inField(offset-int64(i)*z.outStride, z.out)), wrongUse
	})
}

// wrongUse is the mistakes that users make with a batch.
const wrongUse = "work on a batch is for batch.Stream(); any other stream needs batch.UsedOn first; " +
	"and a batch's fields end with its loop body, or with Release"

// describeFields describes memory that is laid out as l says, again and again.
func describeFields(name string, l *loader.Layout) func(offset, bytes int64) (string, string) {
	return func(offset, _ int64) (string, string) { return name + inField(offset%stride(l), l), "" }
}

// inField is in which field of l a byte lies.
func inField(offset int64, l *loader.Layout) string {
	if f, ok := fieldAt(l, offset); ok {
		return fmt.Sprintf(", field %q", f.Name)
	}
	return ""
}

// placeOf says for a person where the byte at offset is. A ragged field has its rows
// elsewhere in each batch.
func placeOf(l *loader.Layout, offset int64) (place string, ok bool) {
	f, ok := fieldAt(l, offset)
	switch {
	case !ok:
		return "", false
	case !f.Fixed():
		return fmt.Sprintf("field %q", f.Name), true
	}
	return fmt.Sprintf("field %q, row %d", f.Name, (offset-f.Offset)/f.RowBytes), true
}

// fieldAt is the field to which the byte at offset belongs.
func fieldAt(l *loader.Layout, offset int64) (field *loader.FieldLayout, ok bool) {
	for i := range l.Fields() {
		f := &l.Fields()[i]
		if offset >= f.Offset && offset < f.Offset+f.Size {
			return f, true
		}
	}
	return nil, false
}
