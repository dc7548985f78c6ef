package cpu

import (
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/driver"
)

// An Adversary does to its callers what the rules of package driver allow. Each
// field is one unkindness; the zero value has none. All dice are functions of
// Seed, the stream's number and the operation's number in its stream, never of
// the goroutines' timing.
type Adversary struct {
	Seed uint64
	// Poison overwrites destinations with PoisonByte when the operation starts: a
	// copy's, a memset's, and a kernel's Out ranges. A reader of a slot before its
	// copy is done, or still reads it when the next copy starts, reads poison.
	// Fresh device memory is poisoned too.
	Poison bool
	// LateRead makes the operations of a plain device read their sources after
	// Delay, at the last legal moment, and not before it. A modelled device always
	// reads at the operation's end.
	LateRead bool
	// CheckInputs compares a copy's source and a kernel's In ranges at the
	// operation's start and end. A difference is a *Race and ends the device.
	CheckInputs bool
	// Delay prolongs each copy, memset and kernel by up to so much.
	Delay time.Duration
	// Reorder gives engines to ready operations of different streams in any order.
	Reorder bool
	// Fail, if not nil, is asked about every call; if it returns an error the call
	// does nothing and returns it. It must not call the device.
	Fail func(Call) error
	// Fault, if not nil, is asked about every copy, memset, kernel and host
	// function submitted; if it returns an error the device ends with it when the
	// operation has run. It must not call the device.
	Fault func(Call) error
}

// PoisonByte fills memory whose contents are undefined. In every floating-point
// type a number of such bytes is NaN.
const PoisonByte = 0xff

func (a *Adversary) validate() []error {
	if a.Delay < 0 {
		return []error{&device.OptionError{Option: "Adversary.Delay", Value: a.Delay, Want: "0 or more"}}
	}
	return nil
}

// A Call is a call of the driver.
type Call struct {
	// N is the call's number on its device, from 1. Properties and calls on a
	// device that has ended are not counted.
	N int64
	// Op is the method: "CopyH2D".
	Op string
	// Stream, Event and Kernel are the names of those the call is about.
	Stream, Event, Kernel string
	// Bytes is the length of a copy, a memset or an allocation.
	Bytes int64
}

// A Race is the fault of an operation whose input changed while it ran: whoever
// wrote there was not ordered after it.
type Race struct {
	// Argument is the number of the kernel's argument; -1 is a copy's source.
	Argument int
	Bytes    int64
}

func (r *Race) Error() string {
	what := fmt.Sprintf("argument %d", r.Argument)
	if r.Argument < 0 {
		what = "the source"
	}
	return fmt.Sprintf("%s (%d bytes) was overwritten while it was being read: an event is missing between this operation and the writer", what, r.Bytes)
}

// admit is the start of a call on a device that may have ended.
func (d *Device) admit(c Call) error {
	if err := d.endedError(c.Op); err != nil {
		return err
	}
	return d.trip(c)
}

// trip asks the adversary whether the call is to fail.
func (d *Device) trip(c Call) error {
	if d.adversary == nil {
		return nil
	}
	d.calls++
	c.N = d.calls
	if d.adversary.Fail == nil {
		return nil
	}
	err := d.adversary.Fail(c)
	if err == nil {
		return nil
	}
	var wrapped *driver.Error
	if errors.As(err, &wrapped) {
		return err
	}
	return d.fail(c.Op, err, "")
}

// adversary is an Adversary at work. Its methods need no lock.
type adversary struct {
	Adversary
	seed maphash.Seed // of the digests
}

func newAdversary(a Adversary) *adversary {
	return &adversary{Adversary: a, seed: maphash.MakeSeed()}
}

// prepare decides what is to happen to o, which is about to be submitted by c.
func (a *adversary) prepare(o *op, c Call) {
	if a.Fault != nil {
		o.fault = a.Fault(c)
	}
	if o.kind == hostFunc {
		return
	}
	dice := mix(mix(a.Seed+mix(o.stream.number)) + o.stream.count)
	if a.Delay > 0 {
		o.cost = time.Duration(dice % uint64(a.Delay+1))
	}
	if a.Reorder {
		o.rank = mix(dice)
	}
}

// mix is splitmix64's output function (Steele, Lea and Flood, 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// begin is the start of o.
func (a *adversary) begin(o *op) {
	if a.CheckInputs {
		a.each(o, func(_ int, mem []byte, digest *uint64) error {
			*digest = maphash.Bytes(a.seed, mem)
			return nil
		})
	}
	if !a.Poison {
		return
	}
	switch o.kind {
	case copyD2D:
		if o.used[0] != o.used[1] { // one allocation's ranges may overlap
			fill(o.dst, PoisonByte)
		}
	case copyH2D, copyD2H, copyPeer, memset:
		fill(o.dst, PoisonByte)
	case launch:
		args := &o.launch.Args
		for i := range args.Len() {
			if args.Arg(i).Access == driver.Out {
				fill(args.Bytes(i), PoisonByte)
			}
		}
	}
}

// end is the end of o, after its body.
func (a *adversary) end(o *op) error {
	if !a.CheckInputs {
		return nil
	}
	return a.each(o, func(argument int, mem []byte, digest *uint64) error {
		if *digest == maphash.Bytes(a.seed, mem) {
			return nil
		}
		return &Race{Argument: argument, Bytes: int64(len(mem))}
	})
}

// each calls f for each range that o only reads, until one call fails.
func (a *adversary) each(o *op, f func(argument int, mem []byte, digest *uint64) error) error {
	switch o.kind {
	case copyD2D:
		if o.used[0] == o.used[1] {
			return nil
		}
		return f(-1, o.src, &o.digest)
	case copyH2D, copyD2H, copyPeer:
		return f(-1, o.src, &o.digest)
	case launch:
		args := &o.launch.Args
		for i := range args.Len() {
			if args.Arg(i).Access != driver.In {
				continue
			}
			if err := f(i, args.Bytes(i), &o.launch.digests[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
