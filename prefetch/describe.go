package prefetch

import (
	"fmt"

	"github.com/leat-go/leat/loader"
)

// What a checker of orders calls the pipeline's memory in its reports. It asks only
// when there is one to make.

// wrongUse is the mistakes that users make with a batch.
const wrongUse = "work on a batch is for batch.Stream(); any other stream needs batch.UsedOn first; " +
	"and a batch's fields end with its loop body, or with Release"

// describeSlots describes the memory of a carrier's slots.
func describeSlots(c *carrier, l *loader.Layout) func(offset, bytes int64) (name, hint string) {
	return func(offset, _ int64) (string, string) {
		i := min(int(offset/stride(l)), len(c.slots)-1)
		if i < 0 {
			return "device slots that are being made", ""
		}
		s := c.slots[i]
		return fmt.Sprintf("slot %d%s%s", s.id, s.history.batches(), field(offset-int64(i)*stride(l), l)), wrongUse
	}
}

// describeFields describes memory that is laid out as l says, again and again.
func describeFields(name string, l *loader.Layout) func(offset, bytes int64) (string, string) {
	return func(offset, _ int64) (string, string) { return name + field(offset%stride(l), l), "" }
}

// field is in which field of l a byte lies.
func field(offset int64, l *loader.Layout) string {
	for _, f := range l.Fields() {
		if end := f.Offset + f.RowBytes*int64(l.BatchSize()); offset >= f.Offset && offset < end {
			return fmt.Sprintf(", field %q", f.Name)
		}
	}
	return ""
}

// batches are the one that is in the slot, or was last, and the one before.
func (h *history) batches() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.n == 0 {
		return ""
	}
	last := h.moves[(h.n-1)%len(h.moves)]
	s := fmt.Sprintf(" (batch %d of epoch %d", last.batch, last.epoch)
	for i := h.n - 1; i >= max(0, h.n-len(h.moves)); i-- {
		if m := h.moves[i%len(h.moves)]; m.batch != last.batch || m.epoch != last.epoch {
			s += fmt.Sprintf(", before it batch %d of epoch %d", m.batch, m.epoch)
			break
		}
	}
	return s + ")"
}
