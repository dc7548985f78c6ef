package prefetch

import (
	"context"
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
		n := f.together(batches[at:]) // that lie one behind the other
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
