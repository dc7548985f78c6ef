package cpu

import (
	"math"
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/driver"
)

// Direction is which way a copy goes.
type Direction uint8

// The directions of copies. A memset counts as D2D; Peer is from one device to
// another.
const (
	H2D Direction = iota
	D2H
	D2D
	Peer
)

// String is "H2D", "D2H", "D2D" or "Peer".
func (d Direction) String() string {
	return [...]string{"H2D", "D2H", "D2D", "Peer"}[d]
}

// A Link is a way for data to travel. The zero value takes no time.
type Link struct {
	// BytesPerSecond is the rate of a long copy; 0 means infinite.
	BytesPerSecond float64
	// Latency is added to every copy.
	Latency time.Duration
}

// Time is how long a copy of that many bytes takes, to the nanosecond.
func (l Link) Time(bytes int64) time.Duration {
	if l.BytesPerSecond == 0 {
		return l.Latency
	}
	return l.Latency + time.Duration(math.Round(float64(bytes)/l.BytesPerSecond*1e9))
}

// A Model says what an accelerator is made of and how long things take on it. The
// zero value has one engine for each direction and one for compute, and takes no
// time; so a test states only the times that it is about.
type Model struct {
	// Name describes the card in Properties.
	Name string
	// MemoryBytes is the card's memory; 0 means all of the machine's.
	MemoryBytes int64
	// CopyEngines is how many copies run at once in each direction. 0 means 1.
	CopyEngines int
	// SharedCopyEngines makes the CopyEngines serve both directions together, as
	// the one engine of many consumer cards does.
	SharedCopyEngines bool
	// ComputeEngines is how many kernels run at once. 0 means 1: a kernel worth
	// modelling fills its card.
	ComputeEngines int
	// H2D, D2H and D2D are the links that copies travel. D2D is also what a memset
	// writes through.
	H2D, D2H, D2D Link
	// Peer is the link to other devices, whichever way the data goes. A copy takes
	// that of the device whose stream it is in, and has it to itself: copies of one
	// device take turns, those of different devices overlap.
	Peer Link
	// Pageable is the link, in both directions, of host memory that is not pinned.
	// Unless it is the zero Link a copy from or to such memory blocks the caller
	// until it is done, as on a GPU.
	Pageable Link
	// CopyTime, if not nil, replaces the links. It must not call the device.
	CopyTime func(way Direction, bytes int64) time.Duration
	// KernelLatency is the time of every kernel, before what KernelTime adds.
	KernelLatency time.Duration
	// KernelTime, if not nil, is how long a kernel takes. It must not call the
	// device, and borrows l for the call. Busy states its own time.
	KernelTime func(l *driver.Launch) time.Duration
	// GraphLatency is the time of every launch of a graph, before its first node. 0 means
	// KernelLatency: one launch's for all of the graph's kernels.
	GraphLatency time.Duration
	// NodeLatency is the time of every kernel in a graph, in place of KernelLatency.
	NodeLatency time.Duration
}

func (m *Model) validate() []error {
	var errs []error
	refuse := func(name string, value any, want string) {
		errs = append(errs, &device.OptionError{Option: "Model." + name, Value: value, Want: want})
	}
	for _, f := range []struct {
		name  string
		value int64
	}{{"MemoryBytes", m.MemoryBytes}, {"CopyEngines", int64(m.CopyEngines)}, {"ComputeEngines", int64(m.ComputeEngines)}} {
		if f.value < 0 {
			refuse(f.name, f.value, "0 or more")
		}
	}
	for _, f := range []struct {
		name    string
		latency time.Duration
	}{
		{"H2D.Latency", m.H2D.Latency}, {"D2H.Latency", m.D2H.Latency}, {"D2D.Latency", m.D2D.Latency},
		{"Peer.Latency", m.Peer.Latency}, {"Pageable.Latency", m.Pageable.Latency}, {"KernelLatency", m.KernelLatency},
		{"GraphLatency", m.GraphLatency}, {"NodeLatency", m.NodeLatency},
	} {
		if f.latency < 0 {
			refuse(f.name, f.latency, "0 or more")
		}
	}
	for _, f := range []struct {
		name string
		rate float64
	}{
		{"H2D", m.H2D.BytesPerSecond}, {"D2H", m.D2H.BytesPerSecond}, {"D2D", m.D2D.BytesPerSecond},
		{"Peer", m.Peer.BytesPerSecond}, {"Pageable", m.Pageable.BytesPerSecond},
	} {
		if !(f.rate >= 0) || math.IsInf(f.rate, 0) {
			refuse(f.name+".BytesPerSecond", f.rate, "0 or more, and finite")
		}
	}
	return errs
}

// duration is how long o occupies its engine.
func (m *Model) duration(o *op) time.Duration {
	if m.blocks(o) && m.CopyTime == nil {
		return m.Pageable.Time(int64(len(o.dst)))
	}
	switch o.kind {
	case copyH2D:
		return m.copyTime(H2D, int64(len(o.dst)))
	case copyD2H:
		return m.copyTime(D2H, int64(len(o.dst)))
	case copyD2D, memset:
		return m.copyTime(D2D, int64(len(o.dst)))
	case copyPeer:
		return m.copyTime(Peer, int64(len(o.dst)))
	case launch:
		if o.inGraph {
			return m.NodeLatency + m.kernelTime(&o.launch.Launch)
		}
		return m.KernelLatency + m.kernelTime(&o.launch.Launch)
	case launchGraph:
		return m.graphLatency()
	}
	return 0
}

// blocks reports whether submitting o blocks the caller.
func (m *Model) blocks(o *op) bool {
	switch {
	case m == nil || m.Pageable == Link{}:
		return false
	case o.kind == copyH2D:
		return !o.used[1].isPinned()
	case o.kind == copyD2H:
		return !o.used[0].isPinned()
	}
	return false
}

func (m *Model) copyTime(way Direction, bytes int64) time.Duration {
	if m.CopyTime != nil {
		return max(0, m.CopyTime(way, bytes))
	}
	return [...]Link{m.H2D, m.D2H, m.D2D, m.Peer}[way].Time(bytes)
}

func (m *Model) kernelTime(l *driver.Launch) time.Duration {
	if l.Kernel == busy {
		return busyTime(&l.Args)
	}
	if m.KernelTime == nil {
		return 0
	}
	return max(0, m.KernelTime(l))
}
