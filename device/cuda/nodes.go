package cuda

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"github.com/leat-go/leat/device/driver"
)

// Types of nodes, CUgraphNodeType.
const (
	nodeKernel = 0
	nodeMemcpy = 1
	nodeMemset = 2
	nodeHost   = 3
	nodeEmpty  = 5
)

// Types of memory, CUmemorytype.
const (
	memoryHost    = 1
	memoryDevice  = 2
	memoryUnified = 4
)

// The structures below are those of the driver's header on 64-bit systems, checked
// against it and against independent bindings. The driver writes them into a group's text.

// kernelParams is a CUDA_KERNEL_NODE_PARAMS_v2, of which drivers before CUDA 12.0 know all
// but the last two fields.
type kernelParams struct {
	function    uintptr
	grid, block [3]uint32
	sharedBytes uint32
	params      *[maxParams]unsafe.Pointer // memory of the node's
	_           uintptr                    // extra
	kernel      uintptr                    // where function is 0
	_           uintptr                    // context
}

// maxParams bounds a kernel's parameters: 4 bytes each, 32 KiB in all.
const maxParams = 8192

// memcpyEnd is one side of a CUDA_MEMCPY3D.
type memcpyEnd struct {
	x, y, z, _ uintptr // … and the level of detail
	memory     uint32
	_          uint32
	host       uintptr
	device     uintptr
	_, _       uintptr // an array, and what is reserved
	pitch, _   uintptr // … and the height
}

// memcpyParams is a CUDA_MEMCPY3D.
type memcpyParams struct {
	src, dst             memcpyEnd
	width, height, depth uintptr
}

// memsetParams is a CUDA_MEMSET_NODE_PARAMS.
type memsetParams struct {
	dst, _             uintptr // … and the pitch
	value, elementSize uint32
	width, height      uintptr
}

// hostParams is a CUDA_HOST_NODE_PARAMS.
type hostParams struct{ fn, user uintptr }

// The driver writes them into group.text.
var (
	_ [len(group{}.text) - int(unsafe.Sizeof(memcpyParams{}))]byte
	_ [len(group{}.text) - int(unsafe.Sizeof(kernelParams{}))]byte
)

// read is what the getter fn says of a node, as a T in the group's memory.
func read[T any](g *group, fn, node uintptr) (*T, result) {
	clear(g.text[:])
	r := g.call(fn, node, g.buffer())
	return (*T)(unsafe.Pointer(&g.text[0])), r
}

// readGraph reads all nodes of a graph.
func (g *group) readGraph(h uintptr) (*graph, error) {
	all, err := g.list(g.gpu.cu.graphGetNodes, h)
	if err != nil {
		return nil, err
	}
	after := make([][]int, len(all))
	for i, node := range all {
		behind, err := g.list(g.gpu.cu.graphNodeGetDependencies, node)
		if err != nil {
			return nil, err
		}
		for _, b := range behind {
			after[i] = append(after[i], slices.Index(all, b))
		}
	}
	made := new(graph)
	order := topological(after)
	place := make([]int, len(order))
	for i, n := range order {
		place[n] = i
	}
	for _, n := range order {
		node, number := g.readNode(all[n])
		for _, b := range after[n] {
			node.After = append(node.After, place[b])
		}
		slices.Sort(node.After)
		made.nodes = append(made.nodes, node)
		if number != 0 {
			made.funcs = append(made.funcs, number)
		}
	}
	return made, nil
}

// topological is an order of nodes in which each is behind those that it waits for, and
// otherwise as before: the driver lists them as they were made, but doesn't promise to.
func topological(after [][]int) []int {
	order := make([]int, 0, len(after))
	placed := make([]bool, len(after))
	for len(order) < len(after) {
		n := slices.IndexFunc(after, func([]int) bool { return false })
		for i := range after {
			if !placed[i] && !slices.ContainsFunc(after[i], func(b int) bool { return b >= 0 && !placed[b] }) {
				n = i
				break
			}
		}
		if n < 0 { // a circle, which no graph has
			return order
		}
		placed[n] = true
		order = append(order, n)
	}
	return order
}

// list is what fn lists for a graph or a node: handles, of which it first says how many.
func (g *group) list(fn, of uintptr) ([]uintptr, error) {
	if r := g.call(fn, of, 0, g.result0()); r != success {
		return nil, g.failure(r, foundEarlier)
	}
	n := g.out[0]
	if n == 0 {
		return nil, nil
	}
	all := make([]uintptr, n)
	var pins runtime.Pinner
	defer pins.Unpin()
	pins.Pin(&all[0])
	g.out[0] = n
	if r := g.call(fn, of, uintptr(unsafe.Pointer(&all[0])), uintptr(unsafe.Pointer(&g.out[0]))); r != success {
		return nil, g.failure(r, foundEarlier)
	}
	return all[:min(n, g.out[0])], nil
}

// readNode is a node as callers see it, and the number of the host function that it is.
func (g *group) readNode(h uintptr) (n driver.Node, number uintptr) {
	r := g.call(g.gpu.cu.graphNodeGetType, h, g.result0())
	kind := g.number(0)
	if r != success {
		n.Opaque = g.unread(r)
		return n, 0
	}
	switch kind {
	case nodeKernel:
		g.readKernel(h, &n)
	case nodeMemcpy:
		g.readMemcpy(h, &n)
	case nodeMemset:
		g.readMemset(h, &n)
	case nodeHost:
		number = g.readHost(h, &n)
	case nodeEmpty:
		n.Kind = driver.EmptyNode
	default:
		n.Opaque = fmt.Sprintf("nodes of CUDA's type %d can't be read", kind)
	}
	return n, number
}

func (g *group) unread(r result) string {
	return fmt.Sprintf("the driver does not tell them (CUDA error %d)", r)
}

func (g *group) readMemcpy(h uintptr, n *driver.Node) {
	n.Kind, n.Op = driver.CopyNode, "CopyD2D"
	p, r := read[memcpyParams](g, g.gpu.cu.graphMemcpyNodeGetParams, h)
	if r != success {
		n.Opaque = g.unread(r)
		return
	}
	src, srcHost, ok := g.gpu.end(&p.src)
	dst, dstHost, also := g.gpu.end(&p.dst)
	switch {
	case srcHost && !dstHost:
		n.Op = "CopyH2D"
	case dstHost && !srcHost:
		n.Op = "CopyD2H"
	}
	n.Src, n.Dst, n.Bytes = src, dst, int64(p.width)
	if !ok || !also || p.height > 1 || p.depth > 1 {
		n.Opaque = "copies of arrays, and of more than one row, can't be compared"
	}
}

// end is the address of one side of a copy, and whether it is the host's.
func (d *gpu) end(e *memcpyEnd) (p driver.Address, host, ok bool) {
	switch e.memory {
	case memoryHost:
		return driver.Address(e.host + e.x), true, e.y == 0 && e.z == 0
	case memoryDevice, memoryUnified:
		p := e.device + e.x
		return driver.Address(p), d.pinned.hasAddress(p), e.y == 0 && e.z == 0
	}
	return 0, false, false
}

func (g *group) readMemset(h uintptr, n *driver.Node) {
	n.Kind, n.Op = driver.MemsetNode, "Memset"
	p, r := read[memsetParams](g, g.gpu.cu.graphMemsetNodeGetParams, h)
	if r != success {
		n.Opaque = g.unread(r)
		return
	}
	n.Dst, n.Value = driver.Address(p.dst), byte(p.value)
	n.Bytes = int64(p.width) * int64(p.elementSize)
	repeated := uint64(p.value) == uint64(n.Value)*0x01010101>>(32-8*min(p.elementSize, 4))
	if p.height > 1 || p.elementSize == 0 || !repeated {
		n.Opaque = "memsets of more than one row, or of more than one byte's value, can't be compared"
	}
}

func (g *group) readHost(h uintptr, n *driver.Node) (number uintptr) {
	n.Kind, n.Op = driver.HostNode, "HostFunc"
	p, r := read[hostParams](g, g.gpu.cu.graphHostNodeGetParams, h)
	switch {
	case r != success:
		n.Opaque = g.unread(r)
	case p.fn != hostFuncEntry():
		n.Opaque = "the host function is another library's"
	default:
		return p.user
	}
	return 0
}

func (g *group) readKernel(h uintptr, n *driver.Node) {
	n.Kind, n.Op = driver.KernelNode, "Launch"
	text, r := read[kernelParams](g, g.gpu.cu.graphKernelNodeGetParams, h)
	if r != success {
		n.Opaque = g.unread(r)
		return
	}
	p := *text // the group's memory is used again
	n.Grid, n.Block, n.SharedBytes = p.grid, p.block, p.sharedBytes
	name, sizes, known := g.signature(&p)
	n.Kernel = name
	switch {
	case !known:
		n.Opaque = "the driver does not tell the sizes of the kernel's parameters"
	case len(sizes) > 0 && p.params == nil:
		n.Opaque = "the kernel's parameters were given as one block"
	default:
		for i, size := range sizes {
			n.Args = append(n.Args, slices.Clone(unsafe.Slice((*byte)(p.params[i]), size)))
		}
	}
}

// signature is a kernel's name and the sizes of its parameters: from the PTX if it was
// launched here, else from the driver if that tells.
func (g *group) signature(p *kernelParams) (name string, sizes []int, known bool) {
	if name, sizes, known = g.gpu.kernels.signature(p.function); known {
		return name, sizes, true
	}
	cu := g.gpu.cu
	handle, getName, getParam := p.function, cu.funcGetName, cu.funcGetParamInfo
	if handle == 0 {
		handle, getName, getParam = p.kernel, cu.kernelGetName, cu.kernelGetParamInfo
	}
	if name == "" && getName != 0 && g.call(getName, g.result0(), handle) == success {
		name = cString(g.pointer())
	}
	if getParam == 0 {
		return name, nil, false
	}
	for i := range maxParams {
		switch r := g.call(getParam, handle, uintptr(i), g.result0(), g.result1()); r {
		case success:
			sizes = append(sizes, int(g.size(1)))
		case invalidValue: // there is no such parameter
			return name, sizes, true
		default:
			return name, nil, false
		}
	}
	return name, nil, false
}

// signature is that of a kernel of these modules. It is not known if a parameter is
// neither of 4 nor of 8 bytes.
func (k *kernels) signature(handle uintptr) (name string, sizes []int, known bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, m := range k.modules {
		for name, fn := range m.entries {
			if fn.handle != handle {
				continue
			}
			for _, size := range fn.params {
				if size == 0 {
					return name, nil, false
				}
				sizes = append(sizes, int(size))
			}
			return name, sizes, true
		}
	}
	return "", nil, false
}
