package fuzz

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/device/order"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/chain"
)

// A bench is what a program's pipelines run on: an unkind device that may fail, a
// peer of it, and a checker of everything that both do.
type bench struct {
	data      data
	bad       []trouble // of the transform
	tap       *devicetest.Tap
	dev, peer *device.Device
	compute   *device.Stream
	extra     *device.Stream // a stream of the user's
	foreign   *device.Stream // the same on the peer
	checker   *order.Checker
	armed     []*devicetest.Armed // ever

	making     sync.Mutex                     // guards armed and transforms
	transforms map[string]*prefetch.Transform // by kind: pipelines share them
	stuck      atomic.Bool                    // a host slot is left to code that did not heed its context
	before     device.Usage
	beforeAt   device.Usage // the peer's
}

var errFault = errors.New("the driver fails")

func newBench(d data, m machine, bad []trouble) (*bench, error) {
	b := &bench{data: d, bad: bad, transforms: make(map[string]*prefetch.Transform), checker: order.New(order.Options{ListOnly: true})}
	co := cpu.Options{Adversary: &cpu.Adversary{Poison: true, LateRead: true, CheckInputs: true, Reorder: true, Seed: m.Seed, Delay: m.Delay}}
	if m.Model {
		link := cpu.Link{Latency: m.Latency}
		co.Model = &cpu.Model{ComputeEngines: m.ComputeEngines, CopyEngines: m.CopyEngines, H2D: link, D2H: link, Peer: link}
	}
	drv, err := cpu.New(co)
	if err != nil {
		return nil, err
	}
	co.Index = 1
	other, err := cpu.New(co)
	if err != nil {
		return nil, err
	}
	b.tap = devicetest.NewTap(b.checker.Wrap(drv))
	b.dev, b.peer = device.New(b.tap), device.New(devicetest.NewTap(b.checker.Wrap(other)))
	var errs [3]error
	b.compute, errs[0] = b.dev.NewStream(device.StreamOptions{Name: "compute"})
	b.extra, errs[1] = b.dev.NewStream(device.StreamOptions{Name: "extra"})
	b.foreign, errs[2] = b.peer.NewStream(device.StreamOptions{Name: "foreign"})
	b.before, b.beforeAt = b.dev.Usage(), b.peer.Usage()
	return b, errors.Join(errs[:]...)
}

// arm has a call of the driver fail.
func (b *bench) arm(f *fault) {
	if f != nil {
		armed := b.tap.Arm(devicetest.Rule{Op: f.Op, Event: f.Event, Stream: f.Stream, Nth: f.Nth, Err: errFault})
		b.making.Lock()
		defer b.making.Unlock()
		b.armed = append(b.armed, armed)
	}
}

func (b *bench) disarm() { b.tap.Disarm() }

// faults is how many calls have failed so far, one that was under way when its rule was
// disarmed included.
func (b *bench) faults() (n int64) {
	b.making.Lock()
	defer b.making.Unlock()
	for _, a := range b.armed {
		n += a.Fired()
	}
	return n
}

// transform is the device work of a shape, nil for none.
func (b *bench) transform(kind string) *prefetch.Transform {
	if kind == "" {
		return nil
	}
	b.making.Lock()
	defer b.making.Unlock()
	if t := b.transforms[kind]; t != nil {
		return t
	}
	in := b.data.fields()
	if kind == "is a chain" {
		t, err := chain.New(in, chain.Convert("bytes", dtype.Float32), chain.Convert("bytes", dtype.Uint8)) // exact there and back
		if err != nil {
			panic(err)
		}
		apply := t.Apply
		t.Apply = func(s *device.Stream, out, in prefetch.Fields) error {
			if err := b.badly(in.Position()); err != nil {
				return err
			}
			return apply(s, out, in)
		}
		b.transforms[kind] = t
		return t
	}
	out := append([]loader.Field(nil), in...)
	for i := range out {
		out[i] = in[len(in)-1-i] // in another order, so in other places
	}
	t := &prefetch.Transform{Out: out}
	b.transforms[kind] = t
	scratch := kind != "passes on"
	if scratch {
		t.Scratch = in
	}
	t.Apply = func(s *device.Stream, out, in prefetch.Fields) error {
		if err := b.badly(in.Position()); err != nil {
			return err
		}
		for _, f := range t.Out {
			from := in.Field(f.Name).View
			if scratch {
				if err := s.CopyD2D(out.Scratch(f.Name).View, from); err != nil {
					return err
				}
				from = out.Scratch(f.Name).View
			}
			if err := s.CopyD2D(out.Field(f.Name).View, from); err != nil {
				return err
			}
		}
		return nil
	}
	return t
}

// badly is what goes wrong with a batch in a transform.
func (b *bench) badly(at prefetch.Position) error {
	bad, ok := find(b.bad, at.Batch, at.Epoch)
	if !ok {
		return nil
	}
	_, err := bad.meet(context.Background())
	return err
}

// rest waits for all work on both devices.
func (b *bench) rest() error {
	return errors.Join(b.dev.Synchronize(context.Background()), b.peer.Synchronize(context.Background()))
}

// account requires that nothing is left once a while has passed, and closes the
// devices.
func (b *bench) account(while time.Duration) error {
	if err := b.rest(); err != nil {
		return err
	}
	usage := func(d *device.Device, want device.Usage) error {
		is := d.Usage()
		is.Allocations = want.Allocations
		if b.stuck.Load() {
			is.HostBuffers, is.PinnedBytes, is.Events = want.HostBuffers, want.PinnedBytes, want.Events
		}
		if is != want {
			return fmt.Errorf("left behind on %s: %+v, before it was %+v", d.Name(), is, want)
		}
		return nil
	}
	var left error
	for start := time.Now(); ; time.Sleep(while / 1000) {
		left = errors.Join(usage(b.dev, b.before), usage(b.peer, b.beforeAt))
		if left == nil || time.Since(start) > while {
			break
		}
	}
	left = errors.Join(left, b.checker.Err())
	closed := errors.Join(b.compute.Close(), b.extra.Close(), b.foreign.Close(), b.dev.Close(), b.peer.Close())
	if b.stuck.Load() {
		closed = nil
	}
	return errors.Join(left, closed)
}

// busy keeps a stream from going on for a while.
func busy(s *device.Stream, d time.Duration) error { return s.Launch(cpu.Busy(d)) }
