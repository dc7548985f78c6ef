// Package busy measures how long the engines of a device work: the one that copies to
// the device, the one that copies from it, and the one that runs kernels. Together with
// the time that passed it says which of them a program is bound by.
//
//	dev, clock := busy.Watch(dev)
//	…                            // all streams are made on this dev
//	times, err := clock.Take(ctx)
package busy

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/driver"
)

// Times are how long each engine worked. Work that ran at the same time on one engine,
// two kernels for example, counts twice.
type Times struct {
	H2D, Kernels, D2H time.Duration
}

// A Clock measures a device. It is safe for concurrent use.
type Clock struct {
	dev *device.Device
	drv *ruler
}

// Watch takes dev, and returns a Device that stands for it and the Clock of that. What
// is done through dev itself is not measured. It records a timed event before every
// CopyH2D, CopyD2H and Launch and another one after it, which costs the caller a few
// microseconds a call; in steady state it allocates nothing. The Device has no graphs: their
// nodes could not be timed.
func Watch(dev *device.Device) (*device.Device, *Clock) {
	r := &ruler{Device: dev.Driver()}
	watched := device.New(r)
	known := watched.Notes()
	for _, note := range dev.Notes() {
		if !slices.Contains(known, note) {
			watched.Note(note)
		}
	}
	return watched, &Clock{watched, r}
}

// Take waits until the device is at rest, and returns how long each engine worked since
// the last Take.
func (c *Clock) Take(ctx context.Context) (Times, error) {
	if err := c.dev.Synchronize(ctx); err != nil {
		return Times{}, err
	}
	r := c.drv
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.collect(); err != nil {
		return Times{}, err
	}
	t := Times{H2D: r.busy[h2d], Kernels: r.busy[kernels], D2H: r.busy[d2h]}
	r.busy = [engines]time.Duration{}
	return t, nil
}

type engine int

const (
	h2d engine = iota
	kernels
	d2h
	engines
)

// A ruler is the driver around the device's own.
type ruler struct {
	driver.Device

	mu      sync.Mutex
	idle    []span
	running [engines][]span // in order of submission
	busy    [engines]time.Duration
}

// A span is the pair of timed events around one copy or kernel.
type span struct{ start, end driver.Event }

var (
	_ driver.Peer    = (*ruler)(nil)
	_ driver.Wrapper = (*ruler)(nil)
)

func (r *ruler) CopyH2D(s driver.Stream, dst driver.Address, src []byte) error {
	p, err := r.begin(s)
	if err != nil {
		return err
	}
	return r.end(s, h2d, p, r.Device.CopyH2D(s, dst, src))
}

func (r *ruler) CopyD2H(s driver.Stream, dst []byte, src driver.Address) error {
	p, err := r.begin(s)
	if err != nil {
		return err
	}
	return r.end(s, d2h, p, r.Device.CopyD2H(s, dst, src))
}

func (r *ruler) Launch(s driver.Stream, l *driver.Launch) error {
	p, err := r.begin(s)
	if err != nil {
		return err
	}
	return r.end(s, kernels, p, r.Device.Launch(s, l))
}

func (r *ruler) begin(s driver.Stream) (span, error) {
	p, err := r.take()
	if err != nil {
		return p, err
	}
	if err := r.Record(p.start, s); err != nil {
		r.giveBack(p)
		return p, err
	}
	return p, nil
}

// end is the call that begin began, which returned err.
func (r *ruler) end(s driver.Stream, e engine, p span, err error) error {
	if err == nil {
		err = r.Record(p.end, s)
	}
	if err != nil {
		r.giveBack(p)
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[e] = append(r.running[e], p)
	return nil
}

func (r *ruler) giveBack(p span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.idle = append(r.idle, p)
}

// take gives a span that is not in use. There are as many as operations were ever under
// way at once.
func (r *ruler) take() (p span, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.idle) == 0 {
		if err := r.collect(); err != nil {
			return p, err
		}
	}
	if n := len(r.idle); n > 0 {
		p = r.idle[n-1]
		r.idle = r.idle[:n-1]
		return p, nil
	}
	if p.start, err = r.NewEvent(driver.EventConfig{Timing: true, Name: "start"}); err != nil {
		return p, err
	}
	if p.end, err = r.NewEvent(driver.EventConfig{Timing: true, Name: "end"}); err != nil {
		return p, errors.Join(err, r.FreeEvent(p.start))
	}
	return p, nil
}

// collect adds up the spans that are done. The caller holds r.mu.
func (r *ruler) collect() error {
	for e := range r.running {
		n, err := r.ended(engine(e))
		r.idle = append(r.idle, r.running[e][:n]...)
		r.running[e] = slices.Delete(r.running[e], 0, n)
		if err != nil {
			return err
		}
	}
	return nil
}

// ended adds the spans at the head of e's list up that are done, and returns how many
// they are.
func (r *ruler) ended(e engine) (n int, err error) {
	for _, p := range r.running[e] {
		done, err := r.EventDone(p.end)
		if err != nil || !done {
			return n, err
		}
		took, err := r.Elapsed(p.start, p.end)
		if err != nil {
			return n, err
		}
		r.busy[e] += took
		n++
	}
	return n, nil
}

// Close frees the events and closes the device.
func (r *ruler) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	spans := r.idle
	for _, running := range r.running {
		spans = append(spans, running...)
	}
	r.idle, r.running = nil, [engines][]span{}
	var errs []error
	for _, p := range spans {
		errs = append(errs, r.FreeEvent(p.start), r.FreeEvent(p.end))
	}
	return errors.Join(append(errs, r.Device.Close())...)
}

// Unwrap implements driver.Wrapper.
func (r *ruler) Unwrap() driver.Device { return r.Device }

// PeerOf, WaitPeer and CopyPeer pass on what the device beneath can do.
func (r *ruler) PeerOf(other driver.Device) bool {
	p, ok := r.Device.(driver.Peer)
	return ok && p.PeerOf(other)
}

func (r *ruler) WaitPeer(s driver.Stream, other driver.Device, e driver.Event) error {
	p, ok := r.Device.(driver.Peer)
	if !ok {
		return r.unsupported("Wait")
	}
	return p.WaitPeer(s, other, e)
}

func (r *ruler) CopyPeer(s driver.Stream, dst, src driver.Place, bytes int64) error {
	p, ok := r.Device.(driver.Peer)
	if !ok {
		return r.unsupported("CopyPeer")
	}
	return p.CopyPeer(s, dst, src, bytes)
}

func (r *ruler) unsupported(op string) error {
	return &driver.Error{Op: op, Device: driver.DeviceName(r.Properties()), Err: driver.ErrUnsupported}
}
