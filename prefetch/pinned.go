package prefetch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/pinnedpool"
)

// A feed is the seam by which batches reach device memory: their bytes are brought there
// from where the loader's workers have written them.
type feed interface {
	// Memory is where the workers write.
	loader.Memory
	// fill submits to stream the work that brings batches into to, one behind the other
	// at the stride. The feed owns what the batches lie in from here on, whether or not
	// there is an error: the workers get it again when that work is done.
	fill(stream *device.Stream, to device.View, batches []loader.Filled) error
	// view is where a batch lies, for work that is submitted to stream before done.
	view(batch loader.Filled) (device.View, error)
	// done takes a batch back behind the work that was submitted to stream.
	done(stream *device.Stream, batch loader.Filled) error
	// doubt takes batches back when the streams have come to rest.
	doubt(batches []loader.Filled)
}

// pinned is the feed by copies from pinned memory: a buffer of the pool for each batch.
// Neighbours that are full travel in one copy.
type pinned struct {
	pool   *pinnedpool.Pool
	layout *loader.Layout
	stride int64

	extent   *extent              // of the batch being copied
	group    []*pinnedpool.Buffer // of the fill under way
	pageable bool                 // copies block the caller
	copying  atomic.Bool          // one of those is under way
	late     atomic.Int32         // buffers in quarantine
	closed   atomic.Bool          // what comes back is freed
}

// Get implements loader.Memory.
func (f *pinned) Get(ctx context.Context) (loader.Slot, error) {
	b, err := f.pool.Get(ctx)
	if err != nil {
		return loader.Slot{}, f.overwritten(err)
	}
	return loader.Slot{ID: b.ID(), Bytes: b.Bytes()}, nil
}

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

// fill implements feed.
func (f *pinned) fill(stream *device.Stream, to device.View, batches []loader.Filled) (err error) {
	if f.pageable {
		f.copying.Store(true)
		defer f.copying.Store(false)
	}
	f.group = f.group[:0]
	for i := range batches {
		f.group = append(f.group, f.pool.Buffer(batches[i].Slot.ID))
	}
	for at := 0; at < len(batches) && err == nil; {
		n := f.together(batches[at:])
		to := to.Slice(int64(at)*f.stride, int64(n-1)*f.stride+f.layout.Size())
		if n > 1 {
			err = stream.CopyH2D(to, f.group[at].With(n-1))
		} else {
			from := f.group[at].Bytes()
			f.extent.set(&batches[at])
			err = f.extent.copy(func(offset, bytes int64) error {
				return stream.CopyH2D(to.Slice(offset, bytes), from[offset:offset+bytes])
			})
		}
		at += n
	}
	return f.sent(stream, err)
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

// sent takes the group back: behind the copies that were submitted, or once the streams
// have come to rest if one of them failed.
func (f *pinned) sent(stream *device.Stream, err error) error {
	if err == nil {
		err = stream.Record(f.group[len(f.group)-1].Copied()) // refill after copied
	}
	if err == nil {
		f.pool.PutAfter(f.group...)
		return nil
	}
	for _, b := range f.group {
		f.pool.Doubt(b)
	}
	return err
}

// lend implements feed.
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
