// Package rig is a device and what a measurement makes on it: streams, timed
// events and memory, all freed together.
package rig

import (
	"context"
	"errors"
	"time"

	"github.com/leat-go/leat/device"
)

// A Rig owns what was made through it until Close. The first failure is kept, and
// everything asked for afterwards is nil or empty, so that a measurement checks
// Err once, before it uses any of it. It is for one goroutine.
type Rig struct {
	dev   *device.Device
	free  []func() error
	err   error
	limit time.Duration
}

// closeLimit is how long Close waits for the device to come to rest.
const closeLimit = 10 * time.Second

// New makes an empty Rig on dev, which stays the caller's.
func New(dev *device.Device) *Rig { return &Rig{dev: dev, limit: closeLimit} }

// Device is the rig's device.
func (r *Rig) Device() *device.Device { return r.dev }

// Err is the first failure, nil if there was none.
func (r *Rig) Err() error { return r.err }

// made keeps how to free what a call made, or the call's failure.
func (r *Rig) made(err error, free func() error) bool {
	if err != nil {
		r.err = err
		return false
	}
	r.free = append(r.free, free)
	return true
}

// Stream makes a stream.
func (r *Rig) Stream(name string) *device.Stream {
	return r.StreamWith(device.StreamOptions{Name: name})
}

// StreamWith makes a stream with options.
func (r *Rig) StreamWith(o device.StreamOptions) *device.Stream {
	if r.err != nil {
		return nil
	}
	s, err := r.dev.NewStream(o)
	if !r.made(err, func() error { return s.Close() }) {
		return nil
	}
	return s
}

// Event makes an event that keeps the time of its Record.
func (r *Rig) Event(name string) *device.Event {
	if r.err != nil {
		return nil
	}
	e, err := r.dev.NewEvent(device.EventOptions{Name: name, Timing: true})
	if !r.made(err, func() error { return e.Close() }) {
		return nil
	}
	return e
}

// Alloc allocates device memory.
func (r *Rig) Alloc(bytes int64) device.View {
	if r.err != nil {
		return device.View{}
	}
	b, err := r.dev.Alloc(bytes)
	if !r.made(err, func() error { return b.Close() }) {
		return device.View{}
	}
	return b.View()
}

// AllocHost allocates pinned host memory, or pageable if o says so.
func (r *Rig) AllocHost(bytes int64, o device.HostOptions) []byte {
	if r.err != nil {
		return nil
	}
	h, err := r.dev.AllocHost(bytes, o)
	if !r.made(err, func() error { return h.Close() }) {
		return nil
	}
	return h.Bytes()
}

// Mapped allocates pinned host memory, and tells where kernels see it.
func (r *Rig) Mapped(bytes int64) (mem []byte, v device.View) {
	if r.err != nil {
		return nil, device.View{}
	}
	h, err := r.dev.AllocHost(bytes, device.HostOptions{})
	if !r.made(err, func() error { return h.Close() }) {
		return nil, device.View{}
	}
	if v, r.err = h.View(); r.err != nil {
		return nil, device.View{}
	}
	return h.Bytes(), v
}

// Owns makes Close call free, for what was not made through r.
func (r *Rig) Owns(free func() error) { r.free = append(r.free, free) }

// Close waits for the device and frees everything, what was made last first.
// Where the device does not come to rest nothing is freed, since its memory may
// still be in use.
func (r *Rig) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), r.limit)
	defer cancel()
	if err := r.dev.Synchronize(ctx); err != nil {
		return err
	}
	var errs []error
	for i := len(r.free) - 1; i >= 0; i-- {
		errs = append(errs, r.free[i]())
	}
	r.free = nil
	return errors.Join(errs...)
}
