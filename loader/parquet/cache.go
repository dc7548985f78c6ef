package parquet

import (
	"context"
	"io"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
)

// key is a row group of a file.
type key struct{ file, group int }

// cache keeps the row groups that were used last.
type cache struct {
	limit int64

	mu     sync.Mutex
	held   int64
	clock  int64
	groups map[key]*group
}

// group is a decoded row group, or one that is being decoded.
type group struct {
	done    chan struct{} // closed when it is there
	batches []arrow.RecordBatch
	bytes   int64
	err     error
	used    int64
}

// get returns a row group, decoded by one of those who ask for it.
func (c *cache) get(ctx context.Context, k key, t *table) ([]arrow.RecordBatch, error) {
	for {
		c.mu.Lock()
		g := c.groups[k]
		mine := g == nil
		if mine {
			g = &group{done: make(chan struct{})}
			if c.groups == nil {
				c.groups = make(map[key]*group)
			}
			c.groups[k] = g
		}
		c.clock++
		g.used = c.clock
		c.mu.Unlock()
		if mine {
			return c.load(ctx, k, t, g)
		}
		select {
		case <-g.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if g.err == nil {
			return g.batches, nil
		}
		// Another's failure may have been its own context: nothing failed is kept.
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// load decodes a row group and makes room for it.
func (c *cache) load(ctx context.Context, k key, t *table, g *group) ([]arrow.RecordBatch, error) {
	finished := false
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !finished || g.err != nil {
			delete(c.groups, k)
		} else {
			c.held += g.bytes
			c.evict(k)
		}
		close(g.done)
	}()
	g.batches, g.bytes, g.err = t.load(ctx, k.group)
	finished = true
	return g.batches, g.err
}

// evict gives up the groups that were not used for longest, until the rest have room.
func (c *cache) evict(keep key) {
	for c.held > c.limit {
		var oldest key
		found := false
		for k, g := range c.groups {
			if k != keep && g.bytes > 0 && (!found || g.used < c.groups[oldest].used) {
				oldest, found = k, true
			}
		}
		if !found {
			return
		}
		c.held -= c.groups[oldest].bytes
		delete(c.groups, oldest)
	}
}

// load decodes a row group.
func (t *table) load(ctx context.Context, group int) (batches []arrow.RecordBatch, bytes int64, err error) {
	m := newMeter(t.limit)
	err = t.guard(group, func() error {
		r, err := t.rows(ctx, group, m)
		if err != nil {
			return err
		}
		defer r.Release()
		for {
			b, err := r.Read()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			b.Retain()
			batches = append(batches, b)
		}
	})
	if err != nil {
		return nil, 0, err
	}
	return batches, max(m.held.Load(), 1), nil
}
