package prefetch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/pinnedpool"
)

// hostMemory is the pool as the loader's workers see it: a slot of theirs is the
// part of a pinned buffer that one batch takes. They know nothing of devices.
//
// A buffer is held from the time its first part is handed out until the last is
// back, by way of an upload or not.
type hostMemory struct {
	pool   *pinnedpool.Pool
	per    int   // batches in a buffer
	stride int64 // bytes between them
	bytes  int64 // of one
	layout *loader.Layout

	waited atomic.Int64 // how long Get has waited for a buffer, in ns
	since  atomic.Int64 // since when it does now, in ns behind born; 0 if it doesn't
	born   time.Time
	stuck  atomic.Int32 // buffers in quarantine

	// returned takes back a buffer, which is held, when all its producers have
	// returned from quarantine; with copied, copies from it were or may have been submitted.
	returned func(b *pinnedpool.Buffer, copied bool)

	mu      sync.Mutex
	late    map[int]bool       // the IDs of the slots in quarantine
	parts   []parts            // by the buffer's ID
	current *pinnedpool.Buffer // parts of it are still to be handed out
	next    int                // the first of them
}

// parts is what became of a buffer's parts.
type parts struct {
	out         int  // handed out and not back
	copied      bool // a copy of some was submitted
	doubtful    bool // a copy of some may have been submitted
	quarantined int  // somebody may still write to so many
	shelved     bool // the pool has it in quarantine
}

// left says what must happen to a buffer when its last part is back.
type left uint8

const (
	unread   left = iota // nothing was copied from it
	copied               // copies from it were submitted
	doubtful             // or perhaps were
	stuck                // it may still be written to
)

var _ loader.Memory = (*hostMemory)(nil)

func newHostMemory(pool *pinnedpool.Pool, l *loader.Layout, per int) *hostMemory {
	return &hostMemory{pool: pool, per: per, stride: stride(l), bytes: l.Size(), layout: l, born: time.Now(),
		parts: make([]parts, pool.Slots())}
}

func (m *hostMemory) buffer(id int) *pinnedpool.Buffer { return m.pool.Buffer(id / m.per) }

// offset is where a part begins in its buffer.
func (m *hostMemory) offset(id int) int64 { return int64(id%m.per) * m.stride }

// lastPart reports whether a part is the last of its buffer.
func (m *hostMemory) lastPart(id int) bool { return id%m.per == m.per-1 }

// view is a part as kernels see it.
func (m *hostMemory) view(id int) (device.View, error) {
	v, err := m.buffer(id).View()
	if err != nil {
		return v, err
	}
	return v.Slice(m.offset(id), m.bytes), nil
}

// Get implements loader.Memory. The loader's one dispatcher calls it.
func (m *hostMemory) Get(ctx context.Context) (loader.Slot, error) {
	m.mu.Lock()
	b := m.current
	m.mu.Unlock()
	if b == nil {
		var err error
		if b, err = m.wait(ctx); err != nil {
			return loader.Slot{}, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.current == nil {
		m.current, m.next = b, 0
		m.parts[b.ID()] = parts{}
	}
	id := b.ID()*m.per + m.next
	m.parts[b.ID()].out++
	if m.next++; m.next == m.per {
		m.current = nil
	}
	at := m.offset(id)
	return loader.Slot{ID: id, Bytes: b.Bytes()[at : at+m.bytes : at+m.bytes]}, nil
}

// wait gets a buffer from the pool and counts the time that it takes.
func (m *hostMemory) wait(ctx context.Context) (*pinnedpool.Buffer, error) {
	start := time.Since(m.born)
	m.since.Store(int64(start) + 1) // never 0
	b, err := m.pool.Get(ctx)
	m.waited.Add(int64(time.Since(m.born) - start))
	m.since.Store(0)
	if err != nil {
		err = m.overwritten(err)
	}
	return b, err
}

// overwritten is err; where a producer, or a host consumer, kept a slice beyond its
// time, it says of what.
func (m *hostMemory) overwritten(err error) error {
	var o *pinnedpool.OverwriteError
	if !errors.As(err, &o) {
		return err
	}
	at := o.Offset % m.stride
	for _, f := range m.layout.Fields() {
		if row := (at - f.Offset) / max(f.RowBytes, 1); at >= f.Offset && row < int64(m.layout.BatchSize()) {
			return fmt.Errorf("prefetch: field %q, row %d: %w", f.Name, row, err)
		}
	}
	return err
}

// waiting is how long producers have waited for a buffer until now.
func (m *hostMemory) waiting() time.Duration {
	total := m.waited.Load()
	if since := m.since.Load(); since > 0 {
		total += int64(time.Since(m.born)) - since + 1
	}
	return time.Duration(total)
}

// lost is how many buffers are in quarantine.
func (m *hostMemory) lost() int { return int(m.stuck.Load()) }

// Put implements loader.Memory: a batch that was not delivered, or whose producer has
// returned from quarantine.
func (m *hostMemory) Put(s loader.Slot) {
	b := m.buffer(s.ID)
	m.mu.Lock()
	late := m.late[s.ID]
	delete(m.late, s.ID)
	m.mu.Unlock()
	if !late {
		m.settle(b, func(p *parts) { p.out-- })
		return
	}
	m.settle(b, func(p *parts) { p.quarantined-- })
}

// Quarantine implements loader.Memory.
func (m *hostMemory) Quarantine(s loader.Slot, _ error) {
	m.settle(m.buffer(s.ID), func(p *parts) {
		p.out--
		p.quarantined++
		if m.late == nil {
			m.late = make(map[int]bool)
		}
		m.late[s.ID] = true
	})
}

// upload takes n parts of a buffer back for a copy, and reports whether they were
// the last: then the uploader gives the buffer to the recycler.
func (m *hostMemory) upload(b *pinnedpool.Buffer, n int) (last bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := &m.parts[b.ID()]
	p.out -= n
	p.copied = true
	last = p.out == 0 && m.current != b && p.quarantined == 0
	if last {
		*p = parts{}
	}
	return last
}

// doubt notes that an upload of the buffer failed half-way.
func (m *hostMemory) doubt(b *pinnedpool.Buffer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.parts[b.ID()].doubtful = true
}

// settle changes a buffer's account, and gives it back to the pool if its last part
// is back and nothing was copied from it. One that was copied from stays for finish.
func (m *hostMemory) settle(b *pinnedpool.Buffer, change func(*parts)) {
	m.mu.Lock()
	p := &m.parts[b.ID()]
	change(p)
	fate, done, shelved := p.fate(), p.out == 0 && m.current != b, p.shelved
	free := done && (fate == unread || shelved && fate != stuck)
	if free {
		*p = parts{}
	}
	m.mu.Unlock()
	switch {
	case !free:
	case shelved:
		m.pool.Readmit(b)
		m.stuck.Add(-1)
		m.returned(b, fate != unread)
	default:
		m.pool.Put(b)
	}
}

func (p *parts) fate() left {
	switch {
	case p.quarantined > 0:
		return stuck
	case p.doubtful:
		return doubtful
	case p.copied:
		return copied
	}
	return unread
}

// finish settles every buffer when the run has ended and all parts are back but
// those that a host consumer has leased. It returns those from which copies were
// submitted, for the recycler, and those from which they may have been.
func (m *hostMemory) finish() (recycle, doubt []*pinnedpool.Buffer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.parts {
		b, p := m.pool.Buffer(id), &m.parts[id]
		switch fate := p.fate(); {
		case fate == stuck:
			if !p.shelved {
				m.pool.Quarantine(b)
				m.stuck.Add(1)
				p.shelved, p.out = true, 0
			}
			continue // until its producers return
		case fate == doubtful:
			doubt = append(doubt, b)
		case fate == copied:
			recycle = append(recycle, b)
		case m.current == b:
			m.pool.Put(b)
		case p.out > 0:
			continue // its Release puts it back
		}
		*p = parts{}
	}
	m.current = nil
	return recycle, doubt
}

// orphans returns buffers whose last part came back without an upload, behind
// others that were uploaded: an iterator that ends gives its last slot back.
func (m *hostMemory) orphans() (recycle []*pinnedpool.Buffer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.parts {
		b, p := m.pool.Buffer(id), &m.parts[id]
		if p.fate() == copied && p.out == 0 && m.current != b {
			recycle = append(recycle, b)
			*p = parts{}
		}
	}
	return recycle
}
