package prefetch

import (
	"fmt"

	"github.com/leat-go/leat/loader"
)

// describe is what a checker of orders calls the ring's memory in its reports. It asks
// only when there is one to make.
func describe(s *slot, z *sizes) {
	s.describe(func(offset, _ int64) (string, string) {
		if len(s.windows) == 0 {
			return "device slots that are being made", ""
		}
		i := min(int(offset/z.outStride), len(s.windows)-1)
		w := s.windows[i]
		return fmt.Sprintf("slot %d%s%s", s.id, w.history.batches(), inField(offset-int64(i)*z.outStride, z.out)), wrongUse
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
