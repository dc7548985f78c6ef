package prefetch

import (
	"context"
	"errors"
	"fmt"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/life"
)

// A Clone is a copy of a batch in memory of its own, for callers that keep more
// batches than there are slots. Its fields are valid until Close.
type Clone struct {
	fields []Field
	buffer *device.Buffer
}

// Clone copies the batch. With a device the copy is submitted to its
// Stream, in whose order the Clone may be used; the call allocates device memory,
// which can wait for the device: it is not for the steady state.
func (b Batch) Clone() (*Clone, error) {
	w := b.use("Clone")
	c := &Clone{fields: b.Fields()}
	for i := range c.fields {
		c.fields[i].Shape = append([]int(nil), c.fields[i].Shape...)
	}
	if w.host != nil {
		for i := range c.fields {
			c.fields[i].Bytes = append([]byte{}, c.fields[i].Bytes...)
		}
		b.use("Clone") // still
		return c, nil
	}
	buffer, err := b.p.stages.dev.Alloc(w.memory.Size())
	if err != nil {
		return nil, err
	}
	c.buffer = buffer
	if err := b.copyTo(c); err != nil {
		return nil, errors.Join(err, b.p.freeBehind(w.stream, buffer))
	}
	return c, nil
}

// copyTo submits the copy of the batch's fields to the clone's memory, and makes them the
// clone's.
func (b Batch) copyTo(c *Clone) error {
	w := b.window
	w.slot.Lock() // a Release from here on waits for the lock
	defer w.slot.Unlock()
	if !w.lentTo(b.generation) {
		_ = c.buffer.Close()
		b.stale("Clone")
	}
	for i, l := range b.p.stages.sizes.out.Fields() {
		to := c.buffer.View().Slice(l.Offset, c.fields[i].View.Size())
		if err := w.stream.CopyD2D(to, c.fields[i].View); err != nil {
			return err
		}
		c.fields[i].View = to
	}
	return nil
}

// freeBehind frees a buffer that work submitted to stream may still use: now, or by a
// goroutine if the work takes longer than Options.CloseTimeout.
func (p *Prefetcher) freeBehind(stream *device.Stream, buffer *device.Buffer) error {
	ctx, cancel := context.WithTimeout(context.Background(), p.ahead.closeTimeout())
	defer cancel()
	err := stream.Synchronize(ctx)
	if err == nil {
		return buffer.Close()
	}
	p.ahead.life.must(life.Use)
	go func() { // ends when the device's work does
		_ = p.stages.host.Synchronize(context.Background())
		p.ahead.notes.keep(errors.Join(buffer.Close(), p.unuse()))
	}()
	return err
}

// Field returns the field of that name, and panics if there is none.
func (c *Clone) Field(name string) Field {
	f, ok := c.Lookup(name)
	if !ok {
		panic(fmt.Sprintf("prefetch: no field %q in the clone", name))
	}
	return f
}

// Lookup returns the field of that name, if there is one.
func (c *Clone) Lookup(name string) (Field, bool) {
	for _, f := range c.fields {
		if f.Name == name {
			return f, true
		}
	}
	return Field{}, false
}

// Close gives the clone's device memory back. Work that uses it must be done.
func (c *Clone) Close() error {
	if c.buffer == nil {
		return nil
	}
	return c.buffer.Close()
}
