package prefetch

import (
	"context"
	"errors"
	"fmt"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/pinnedpool"
)

// Put implements loader.Memory.
func (f *pinned) Put(s loader.Slot) {
	b := f.pool.Buffer(s.ID)
	if f.pool.Readmit(b) {
		f.late.Add(-1)
	}
	f.pool.Put(b)
	if f.closed.Load() {
		_ = f.pool.Close(context.Background()) // it says which others are not back
	}
}

// Quarantine implements loader.Memory.
func (f *pinned) Quarantine(s loader.Slot, _ error) {
	f.pool.Quarantine(f.pool.Buffer(s.ID))
	f.late.Add(1)
}

// together is how many of the batches, from the first, are full and lie one behind the
// other. With ragged fields it is one: what such batches take of their buffers isn't all of
// them.
func (f *pinned) together(batches []loader.Filled) int {
	n := 1
	if f.layout.Fixed() < f.layout.Size() {
		return n
	}
	for full := f.layout.BatchSize(); n < len(batches); n++ {
		if batches[n-1].N != full || batches[n].N != full || batches[n].Slot.ID != batches[0].Slot.ID+n {
			break
		}
		if f.pool.Buffer(batches[0].Slot.ID).With(n) == nil {
			break
		}
	}
	return n
}

// view implements feed.
func (f *pinned) view(batch loader.Filled) (device.View, error) {
	return f.pool.Buffer(batch.Slot.ID).View()
}

// done implements feed.
func (f *pinned) done(stream *device.Stream, batch loader.Filled) error {
	f.group = append(f.group[:0], f.pool.Buffer(batch.Slot.ID))
	return f.sent(stream, nil)
}

// doubt implements feed.
func (f *pinned) doubt(batches []loader.Filled) {
	for i := range batches {
		f.pool.Doubt(f.pool.Buffer(batches[i].Slot.ID))
	}
}

// overwritten is err; where a producer, or a host consumer, kept a slice beyond its time,
// it says of what.
func (f *pinned) overwritten(err error) error {
	var o *pinnedpool.OverwriteError
	if !errors.As(err, &o) {
		return err
	}
	if at, ok := placeOf(f.layout, o.Offset); ok {
		return fmt.Errorf("prefetch: %s: %w", at, err)
	}
	return err
}

// close frees the memory of what is back, and from here on of what comes back.
func (f *pinned) close(ctx context.Context) error {
	f.closed.Store(true)
	return f.pool.Close(ctx)
}
