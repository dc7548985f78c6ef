package loader

import (
	"context"
	"io"
	"sync/atomic"
)

// An item is what the iterator of a onePass gave at one position: a sample or an
// error. It is the Encoder that Runs take, one after the other until its batch is
// delivered. The sample itself is encoded once; from then on the item is what came of
// that. Only one that was told its position is encoded again, if a failure before it has
// moved it to another.
type item struct {
	broken error      // the iterator's own, instead of a sample
	sample heldSample // as long as it may have to be encoded
	failed error      // what encode returned, or
	row    savedRow
	saved  bool  // whether row holds the sample,
	at     int64 // as it is at this position
	flush  bool  // what waits with it is to be delivered without what comes next
	busy   atomic.Bool
	lap    uint64 // how often it was used before
}

// A ticket names what an item held in one of its laps; the zero ticket names nothing.
type ticket struct {
	item *item
	lap  uint64
}

func (it *item) ticket() ticket { return ticket{it, it.lap} }

// heldSample is a *sample of any type.
type heldSample interface {
	io.Closer
	try(ctx context.Context, row *Row) error
	closer() io.Closer
	drop()
}

// item is a new one, or one that is used again.
func (p *onePass) item(encoder Encoder, err error) *item {
	if len(p.free) == 0 {
		p.free = append(p.free, new(item))
	}
	last := len(p.free) - 1
	it := p.free[last]
	p.free = p.free[:last]
	it.broken = err
	if err == nil {
		it.sample = encoder.(heldSample)
	}
	return it
}

// reset makes the item ready to be used again, with the memory of its row.
func (it *item) reset() {
	it.broken, it.sample, it.failed, it.saved, it.flush = nil, nil, nil, false, false
	it.lap++
}

// Encode implements Encoder.
func (it *item) Encode(ctx context.Context, row *Row) error {
	it.busy.Store(true)
	defer it.busy.Store(false)
	switch {
	case it.failed != nil:
		return it.failed
	case it.saved && (it.sample == nil || it.at == row.position):
		it.row.load(row)
		return nil
	}
	return it.encode(ctx, row)
}

// encode encodes the sample, and keeps what comes of it.
func (it *item) encode(ctx context.Context, row *Row) (err error) {
	returned, owns := false, it.sample.closer() != nil
	defer func() {
		if !returned {
			err = caught(recover())
		}
		if err != nil && ctx.Err() != nil && !owns {
			return // because the range is left: the sample is for the next
		}
		it.failed, it.saved, it.at = err, err == nil, row.position
		if err != nil || owns || !row.placed {
			it.sample.drop()
			it.sample = nil
		}
	}()
	err = it.sample.try(ctx, row)
	if err == nil {
		err = row.unwritten()
	}
	if err == nil {
		it.row.save(row)
	}
	returned = true
	return err
}
