package cpu

import (
	"time"

	"github.com/leat-go/leat/device/driver"
)

// opKind is what an operation does. Its String is the driver call's name.
type opKind uint8

const (
	record opKind = iota
	wait
	copyH2D
	copyD2H
	copyD2D
	copyPeer
	memset
	launch
	hostFunc
	launchGraph // the time that it takes; the nodes are operations of their own
	opKinds
)

func (k opKind) String() string {
	return [opKinds]string{"Record", "Wait", "CopyH2D", "CopyD2H", "CopyD2D", "CopyPeer", "Memset", "Launch", "HostFunc", "LaunchGraph"}[k]
}

// computes reports whether operations of kind k run on the compute engines.
func (k opKind) computes() bool { return k == copyD2D || k == memset || k == launch }

// op is one operation of a stream. The stream's queue owns it until it is the
// head and runs; then the engine's goroutine does, until finish.
type op struct {
	kind   opKind
	stream *stream
	next   *op // in the stream's queue or the device's free list
	link   *op // in a list of ready operations

	seq       uint64        // order of submission on the device
	submitted time.Duration // when
	ready     time.Duration // when the stream reached it
	start     time.Duration // when an engine took it
	end       time.Duration
	cost      time.Duration // how long it occupies a modelled engine
	running   bool          // a goroutine is in its body, or about to be

	recording *recording
	dst, src  []byte
	to, from  driver.Address // of dst and src; the host's own for host memory
	used      [2]*allocation // what dst and src belong to; nil for pageable memory
	value     byte
	f         func()
	launch    *launching
	inGraph   bool // it is a node of a graph that was launched

	rank   uint64 // the adversary's choice of order
	digest uint64 // of src at the start
	fault  error  // the adversary's, to end the device with
}

// launching is the part of a Launch's operation that is too large to carry in
// every op.
type launching struct {
	driver.Launch
	used    [driver.MaxArgs]*allocation
	digests [driver.MaxArgs]uint64 // of the inputs at the start
	next    *launching
}

// opList is a list of ready operations. There are few: at most one a stream.
type opList struct{ first, last *op }

func (l *opList) push(o *op) {
	if l.last == nil {
		l.first = o
	} else {
		l.last.link = o
	}
	l.last = o
}

// take removes and returns the operation that before puts first among those that
// are ready by the limit, nil if there is none.
func (l *opList) take(limit time.Duration, before func(a, b *op) bool) *op {
	var best, bestPrev, prev *op
	for o := l.first; o != nil; prev, o = o, o.link {
		if o.ready <= limit && (best == nil || before(o, best)) {
			best, bestPrev = o, prev
		}
	}
	if best == nil {
		return nil
	}
	if bestPrev == nil {
		l.first = best.link
	} else {
		bestPrev.link = best.link
	}
	if l.last == best {
		l.last = bestPrev
	}
	best.link = nil
	return best
}

// newOp returns an operation for s. The caller holds the mutex.
func (d *Device) newOp(k opKind, s *stream) *op {
	o := d.freeOps
	if o == nil {
		o = new(op)
	} else {
		d.freeOps = o.next
	}
	*o = op{kind: k, stream: s}
	return o
}

func (d *Device) newLaunching() *launching {
	l := d.freeLaunchings
	if l == nil {
		return new(launching)
	}
	d.freeLaunchings = l.next
	l.next = nil
	return l
}

// release takes o, which no list holds any more, and lets go of what it uses.
func (d *Device) release(o *op) {
	for _, a := range o.used {
		_ = a.drop()
	}
	if l := o.launch; l != nil {
		for i := range l.Args.Len() {
			_ = l.used[i].drop()
		}
		*l = launching{next: d.freeLaunchings}
		d.freeLaunchings = l
	}
	if o.recording != nil {
		d.unref(o.recording)
	}
	*o = op{next: d.freeOps}
	d.freeOps = o
}

// body does what o is for: it runs on an engine's goroutine, without the mutex.
func (o *op) body() {
	switch o.kind {
	case copyH2D, copyD2H, copyD2D, copyPeer:
		copy(o.dst, o.src)
	case memset:
		fill(o.dst, o.value)
	case launch:
		o.launch.Kernel.Go(&o.launch.Args)
	case hostFunc:
		o.f()
	}
}

// fill sets every byte of mem, by doubling: copy is as fast as the machine gets.
func fill(mem []byte, value byte) {
	if len(mem) == 0 {
		return
	}
	const seed = 4096 // stays in the first-level cache
	head := mem[:min(seed, len(mem))]
	for i := range head {
		head[i] = value
	}
	for n := len(head); n < len(mem); n += copy(mem[n:], head) {
	}
}
