//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
)

// A fakeGraphs is the part of a fake driver that captures: it follows streams and events
// as the driver's documents say, keeps nodes and their parameters, and runs none but the
// host functions, one after another.
type fakeGraphs struct {
	f *fake

	mu       sync.Mutex
	captures map[uintptr]*fakeCapture // by stream
	events   map[uintptr]*fakeMark
	graphs   map[uintptr][]*fakeNode
	execs    map[uintptr][]*fakeNode
	launches int
	pins     runtime.Pinner
}

type fakeCapture struct {
	origin  uintptr
	nodes   []*fakeNode
	deps    map[uintptr][]*fakeNode // by stream
	invalid bool
}

// fakeMark is a Record in a capture.
type fakeMark struct {
	capture *fakeCapture
	deps    []*fakeNode
}

type fakeNode struct {
	handle uintptr
	kind   int32
	deps   []*fakeNode

	kernel kernelParams
	memcpy memcpyParams
	memset memsetParams
	host   hostParams
}

func newFakeGraphs(t *testing.T, f *fake) *fakeGraphs {
	x := &fakeGraphs{f: f, captures: map[uintptr]*fakeCapture{}, events: map[uintptr]*fakeMark{},
		graphs: map[uintptr][]*fakeNode{}, execs: map[uintptr][]*fakeNode{}}
	t.Cleanup(x.pins.Unpin)
	for name, do := range map[string]func(a []uintptr) result{
		"cuStreamBeginCapture_v2": x.begin,
		"cuStreamEndCapture":      x.end,
		"cuStreamIsCapturing": func(a []uintptr) result {
			status := int32(0)
			if c := x.captures[a[0]]; c != nil && c.invalid {
				status = 2
			} else if c != nil {
				status = 1
			}
			write(a[1], status)
			return success
		},
		"cuStreamQuery":     x.ask,
		"cuEventRecord":     x.record,
		"cuStreamWaitEvent": x.wait,
		"cuMemcpyHtoDAsync_v2": func(a []uintptr) result {
			n := &fakeNode{kind: nodeMemcpy}
			n.memcpy = memcpyParams{src: memcpyEnd{memory: memoryHost, host: a[1]}, dst: memcpyEnd{memory: memoryDevice, device: a[0]}, width: a[2], height: 1, depth: 1}
			return x.add(a[3], n)
		},
		"cuMemcpyDtoHAsync_v2": func(a []uintptr) result {
			n := &fakeNode{kind: nodeMemcpy}
			n.memcpy = memcpyParams{src: memcpyEnd{memory: memoryUnified, device: a[1]}, dst: memcpyEnd{memory: memoryUnified, device: a[0]}, width: a[2], height: 1, depth: 1}
			return x.add(a[3], n)
		},
		"cuMemsetD8Async": func(a []uintptr) result {
			n := &fakeNode{kind: nodeMemset}
			n.memset = memsetParams{dst: a[0], value: uint32(a[1]), elementSize: 1, width: a[2], height: 1}
			return x.add(a[3], n)
		},
		"cuLaunchHostFunc": func(a []uintptr) result {
			return x.add(a[0], &fakeNode{kind: nodeHost, host: hostParams{fn: a[1], user: a[2]}})
		},
		"cuLaunchKernel":             x.kernel,
		"cuGraphGetNodes":            func(a []uintptr) result { return x.list(x.graphs[a[0]], a) },
		"cuGraphNodeGetDependencies": func(a []uintptr) result { return x.list(x.node(a[0]).deps, a) },
		"cuGraphNodeGetType":         func(a []uintptr) result { write(a[1], x.node(a[0]).kind); return success },
		"cuGraphMemcpyNodeGetParams": func(a []uintptr) result { write(a[1], x.node(a[0]).memcpy); return success },
		"cuGraphMemsetNodeGetParams": func(a []uintptr) result { write(a[1], x.node(a[0]).memset); return success },
		"cuGraphHostNodeGetParams":   func(a []uintptr) result { write(a[1], x.node(a[0]).host); return success },
		"cuGraphKernelNodeGetParams_v2": func(a []uintptr) result {
			write(a[1], x.node(a[0]).kernel)
			return success
		},
		"cuGraphInstantiateWithFlags": func(a []uintptr) result {
			h := f.handle()
			x.execs[h] = x.graphs[a[1]]
			write(a[0], h)
			return success
		},
		"cuGraphExecUpdate_v2": func(a []uintptr) result { x.execs[a[0]] = x.graphs[a[1]]; return success },
		"cuGraphDestroy":       func(a []uintptr) result { delete(x.graphs, a[0]); return success },
		"cuGraphExecDestroy":   func(a []uintptr) result { delete(x.execs, a[0]); return success },
	} {
		f.does(name, func(a []uintptr) result {
			x.mu.Lock()
			defer x.mu.Unlock()
			return do(a)
		})
	}
	f.does("cuGraphLaunch", x.launch)
	return x
}

func (x *fakeGraphs) begin(a []uintptr) result {
	require.Equal(x.f.t, uintptr(captureThreadLocal), a[1])
	if x.captures[a[0]] != nil {
		return illegalState
	}
	x.captures[a[0]] = &fakeCapture{origin: a[0], deps: map[uintptr][]*fakeNode{}}
	return success
}

func (x *fakeGraphs) end(a []uintptr) result {
	c := x.captures[a[0]]
	switch {
	case c == nil:
		return illegalState
	case c.origin != a[0]:
		c.invalid = true
		return captureUnmatched
	}
	for s, o := range x.captures {
		if o == c {
			delete(x.captures, s)
		}
	}
	write(a[1], uintptr(0))
	if c.invalid {
		return 901
	}
	for _, n := range c.nodes {
		waitedFor := slices.ContainsFunc(c.nodes, func(o *fakeNode) bool { return slices.Contains(o.deps, n) })
		if !waitedFor && !slices.Contains(c.deps[a[0]], n) {
			return 904
		}
	}
	h := x.f.handle()
	slices.Reverse(c.nodes) // the order is not promised
	x.graphs[h] = c.nodes
	write(a[1], h)
	return success
}

// ask is what no captured stream allows.
func (x *fakeGraphs) ask(a []uintptr) result {
	c := x.captures[a[0]]
	if c == nil {
		return success
	}
	c.invalid = true
	return 900
}

func (x *fakeGraphs) record(a []uintptr) result {
	c := x.captures[a[1]]
	if c != nil && c.invalid {
		return 901
	}
	delete(x.events, a[0])
	if c != nil {
		x.events[a[0]] = &fakeMark{c, slices.Clone(c.deps[a[1]])}
	}
	return success
}

func (x *fakeGraphs) wait(a []uintptr) result {
	c, m := x.captures[a[0]], x.events[a[1]]
	switch {
	case m == nil && c == nil:
		return success
	case m == nil:
		c.invalid = true
		return 905
	case c != nil && c != m.capture:
		c.invalid, m.capture.invalid = true, true
		return 902
	}
	x.captures[a[0]] = m.capture
	for _, n := range m.deps {
		if deps := m.capture.deps[a[0]]; !slices.Contains(deps, n) {
			m.capture.deps[a[0]] = append(deps, n)
		}
	}
	return success
}

func (x *fakeGraphs) add(stream uintptr, n *fakeNode) result {
	c := x.captures[stream]
	if c == nil {
		return success
	}
	if c.invalid {
		return 901
	}
	n.handle = x.f.handle()
	n.deps = c.deps[stream]
	c.deps[stream] = []*fakeNode{n}
	c.nodes = append(c.nodes, n)
	return success
}

// kernel copies the parameters, as the driver does.
func (x *fakeGraphs) kernel(a []uintptr) result {
	n := &fakeNode{kind: nodeKernel}
	n.kernel = kernelParams{function: a[0], sharedBytes: uint32(a[7])}
	for i := range 3 {
		n.kernel.grid[i], n.kernel.block[i] = uint32(a[1+i]), uint32(a[4+i])
	}
	given := at[[2]uintptr](a[9])
	values := &[2]uint64{*at[uint64](given[0]), uint64(*at[uint32](given[1]))}
	params := new([maxParams]unsafe.Pointer)
	params[0], params[1] = unsafe.Pointer(&values[0]), unsafe.Pointer(&values[1])
	x.pins.Pin(values)
	x.pins.Pin(params)
	n.kernel.params = params
	return x.add(a[8], n)
}

func (x *fakeGraphs) node(h uintptr) *fakeNode {
	for _, nodes := range x.graphs {
		for _, n := range nodes {
			if n.handle == h {
				return n
			}
		}
	}
	x.f.t.Errorf("no node %#x", h)
	return new(fakeNode)
}

// list is the driver's way to list handles: with no array it says how many.
func (x *fakeGraphs) list(nodes []*fakeNode, a []uintptr) result {
	if a[1] != 0 {
		for i, n := range nodes {
			write(a[1]+uintptr(8*i), n.handle)
		}
	}
	write(a[2], uint64(len(nodes)))
	return success
}

// launch runs the host functions on a thread that is not Go's.
func (x *fakeGraphs) launch(a []uintptr) result {
	x.mu.Lock()
	x.launches++
	nodes := slices.Clone(x.execs[a[0]])
	x.mu.Unlock()
	for _, n := range slices.Backward(nodes) {
		if n.kind == nodeHost {
			onCThread(x.f.t, n.host.fn, n.host.user)
		}
	}
	return success
}

// fakeDevice is a device over a fake driver with graphs, closed when the test ends.
func fakeDevice(t *testing.T) (*fakeGraphs, *gpu, *device.Device) {
	f, s := newFake(t)
	x := newFakeGraphs(t, f)
	d, err := open(s, Options{}, nil)
	require.NoError(t, err)
	dev := device.New(d)
	t.Cleanup(func() {
		require.Zero(t, alive(dev.Usage()))
		require.NoError(t, dev.Close())
		require.Empty(t, hostFuncs.queued)
		require.Empty(t, x.graphs)
		require.Empty(t, x.execs)
		f.requireNoContext()
	})
	return x, d, dev
}
