//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/driver"
)

// The driver writes these structures; their sizes and places are those of its header.
func TestLayoutsOfTheDriversStructures(t *testing.T) {
	for name, c := range map[string]struct{ got, want uintptr }{
		"CUDA_KERNEL_NODE_PARAMS_v2":      {unsafe.Sizeof(kernelParams{}), 72},
		"gridDimX":                        {unsafe.Offsetof(kernelParams{}.grid), 8},
		"blockDimX":                       {unsafe.Offsetof(kernelParams{}.block), 20},
		"sharedMemBytes":                  {unsafe.Offsetof(kernelParams{}.sharedBytes), 32},
		"kernelParams":                    {unsafe.Offsetof(kernelParams{}.params), 40},
		"kern":                            {unsafe.Offsetof(kernelParams{}.kernel), 56},
		"CUDA_MEMCPY3D":                   {unsafe.Sizeof(memcpyParams{}), 200},
		"srcMemoryType":                   {unsafe.Offsetof(memcpyEnd{}.memory), 32},
		"srcHost":                         {unsafe.Offsetof(memcpyEnd{}.host), 40},
		"srcDevice":                       {unsafe.Offsetof(memcpyEnd{}.device), 48},
		"srcPitch":                        {unsafe.Offsetof(memcpyEnd{}.pitch), 72},
		"dstXInBytes":                     {unsafe.Offsetof(memcpyParams{}.dst), 88},
		"WidthInBytes":                    {unsafe.Offsetof(memcpyParams{}.width), 176},
		"CUDA_MEMSET_NODE_PARAMS":         {unsafe.Sizeof(memsetParams{}), 40},
		"elementSize":                     {unsafe.Offsetof(memsetParams{}.elementSize), 20},
		"CUDA_HOST_NODE_PARAMS":           {unsafe.Sizeof(hostParams{}), 16},
		"CUgraphExecUpdateResultInfo":     {unsafe.Sizeof(updateInfo{}), 24},
		"CUgraphExecUpdateResultInfo's 2": {unsafe.Offsetof(updateInfo{}.node), 8},
	} {
		require.Equal(t, c.want, c.got, name)
	}
}

// A graphRig is a device over a fake driver, with streams, memory and a kernel.
type graphRig struct {
	*testing.T
	x      *fakeGraphs
	d      *gpu
	dev    *device.Device
	a, b   *device.Stream
	v      device.View
	h      []byte
	kernel *device.Kernel
}

func newGraphRig(t *testing.T) *graphRig {
	x, d, dev := fakeDevice(t)
	return &graphRig{t, x, d, dev, gpuStream(t, dev, "a"), gpuStream(t, dev, "b"), gpuBuffer(t, dev, 256), gpuHost(t, dev, 256), loadKernel(t, d)}
}

func (r *graphRig) do(errs ...error) { r.Helper(); require.NoError(r, errors.Join(errs...)) }

func (r *graphRig) scale(s *device.Stream, by float32) error {
	l := device.Launch{Kernel: r.kernel, Grid: [3]uint32{5}, Block: [3]uint32{64, 2}, SharedBytes: 16}
	r.v.InOut(&l.Args)
	l.Args.AddFloat32(by)
	return s.Launch(&l)
}

func (r *graphRig) capture(body func() error) *device.Graph {
	r.Helper()
	g, err := r.a.Capture(body)
	require.NoError(r, err)
	r.Cleanup(func() { require.NoError(r, g.Close()) })
	return g
}

// The nodes are what the driver says of them, in an order of ours.
func TestTheDriversNodesAreRead(t *testing.T) {
	r := newGraphRig(t)
	fork, join := gpuEvent(t, r.dev, device.EventOptions{}), gpuEvent(t, r.dev, device.EventOptions{})
	step := func(by float32) func() error {
		return func() error {
			return errors.Join(r.a.CopyH2D(r.v, r.h), r.a.Record(fork), r.b.Wait(fork), r.scale(r.a, by),
				r.b.Memset(r.v.Slice(0, 8), 7), r.b.Record(join), r.a.Wait(join), r.a.CopyD2H(r.h, r.v), r.a.HostFunc(func() {}))
		}
	}
	g := r.capture(step(1.5))
	nodes := g.Nodes()
	require.Len(t, nodes, 5)
	byOp := map[string]device.Node{}
	for i, n := range nodes {
		require.Empty(t, n.Opaque)
		for _, b := range n.After {
			require.Less(t, b, i)
		}
		byOp[n.Op] = n
	}
	up, kernel, memset, down, host := byOp["CopyH2D"], byOp["Launch"], byOp["Memset"], byOp["CopyD2H"], byOp["HostFunc"]
	require.Equal(t, device.Node{Kind: device.CopyNode, Op: "CopyH2D", Dst: r.v.Address(), Src: driver.Address(start(r.h)), Bytes: 256}, up)
	require.Equal(t, device.Node{Kind: device.MemsetNode, Op: "Memset", Dst: r.v.Address(), Bytes: 8, Value: 7, After: []int{0}}, memset)
	require.Equal(t, device.HostNode, host.Kind)
	require.Equal(t, "scale", kernel.Kernel)
	require.Equal(t, [][3]uint32{{5, 1, 1}, {64, 2, 1}}, [][3]uint32{kernel.Grid, kernel.Block})
	require.Equal(t, uint32(16), kernel.SharedBytes)
	require.Equal(t, []int{0}, kernel.After)
	require.Len(t, kernel.Args, 2)
	require.Equal(t, []byte{0, 0, 0xc0, 0x3f}, kernel.Args[1])
	require.Len(t, kernel.Args[0], 8)
	require.Equal(t, []int{1, 2}, down.After)
	require.Equal(t, driver.Address(start(r.h)), down.Dst)

	require.Empty(t, g.Diff(r.capture(step(1.5))))
	diff := g.Diff(r.capture(step(0.5)))
	require.Len(t, diff, 1)
	require.ErrorContains(t, diff[0], `kernel "scale": argument 1: 0x3fc00000 (int32 1069547520, float32 1.5), then 0x3f000000`)
}

// Host functions of a graph run at each launch, for as long as something can launch them.
func TestHostFunctionsOfAGraphAreKept(t *testing.T) {
	r := newGraphRig(t)
	var ran []string
	body := func(name string) func() error {
		return func() error { return r.a.HostFunc(func() { ran = append(ran, name) }) }
	}
	g, err := r.a.Capture(body("first"))
	r.do(err)
	require.Empty(t, ran)
	x, err := g.Instantiate()
	r.do(err, g.Close(), x.Launch(r.a), x.Launch(r.a))
	g, err = r.a.Capture(body("second"))
	r.do(err, x.Update(g), g.Close(), x.Launch(r.a))
	require.Equal(t, []string{"first", "first", "second"}, ran)
	require.Len(t, hostFuncs.queued, 2, "a launch in flight may yet call the first")
	r.do(x.Close())
	require.Empty(t, hostFuncs.queued)

	r.do(r.a.HostFunc(func() {}))
	require.Len(t, hostFuncs.queued, 1)
	for number := range hostFuncs.queued {
		runHostFunc(number)
	}
	_, err = r.a.Capture(func() error { return errors.Join(body("never")(), errors.New("own")) })
	require.EqualError(t, err, "own")
	_, err = r.a.Capture(func() error {
		_, err := r.a.Done()
		return errors.Join(body("never")(), ignore(err))
	})
	require.ErrorIs(t, err, device.CaptureInvalidated)
	require.Empty(t, hostFuncs.queued)
}

func ignore(error) error { return nil }

// LEAT_SYNC has nothing to wait for in a capture, and waits for a launch.
func TestSyncIsOffInACapture(t *testing.T) {
	r := newGraphRig(t)
	r.d.sync = true
	r.x.f.reset()
	g := r.capture(func() error { return r.scale(r.a, 1) })
	require.NotContains(t, r.x.f.callNames(), "cuStreamSynchronize")
	x, err := g.Instantiate()
	r.do(err, x.Launch(r.a), x.Close())
	require.Contains(t, r.x.f.callNames(), "cuStreamSynchronize")
}

func TestAFailedUpdateSaysWhy(t *testing.T) {
	r := newGraphRig(t)
	g := r.capture(func() error { return r.scale(r.a, 1) })
	x, err := g.Instantiate()
	r.do(err)
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	err = x.Update(r.capture(func() error { return errors.Join(r.scale(r.a, 1), r.scale(r.a, 1)) }))
	diff := new(device.Difference)
	require.ErrorAs(t, err, &diff)
	require.NotContains(t, r.x.f.callNames(), "cuGraphExecUpdate_v2")

	r.x.f.does("cuGraphExecUpdate_v2", func(a []uintptr) result {
		write(a[2], int32(8))
		return graphUpdateFailed
	})
	err = x.Update(g)
	require.ErrorIs(t, err, device.ErrInvalid)
	require.ErrorContains(t, err, "a node's attributes changed")
	r.x.f.does("cuGraphExecUpdate_v2", func([]uintptr) result { return success })
	r.do(x.Update(g), x.Launch(r.a))
}

// Kernels of other libraries are read if the driver tells the sizes of their parameters.
func TestKernelsOfOtherLibraries(t *testing.T) {
	r := newGraphRig(t)
	name := []byte("gemm\x00")
	r.x.pins.Pin(&name[0])
	// Its function is none that this device has loaded.
	foreign := func() error {
		r.d.kernels.mu.Lock()
		modules := r.d.kernels.modules
		r.d.kernels.modules = nil
		r.d.kernels.mu.Unlock()
		defer func() { r.d.kernels.modules = modules }()
		g, err := r.a.Capture(func() error { return r.scale(r.a, 1.5) })
		r.do(err)
		n := g.Nodes()[0]
		r.do(g.Close())
		require.Equal(t, "gemm", n.Kernel)
		if n.Opaque != "" {
			return errors.New(n.Opaque)
		}
		require.Len(t, n.Args, 2)
		require.Len(t, n.Args[0], 8)
		require.Equal(t, []byte{0, 0, 0xc0, 0x3f}, n.Args[1])
		return nil
	}
	r.x.f.does("cuFuncGetName", func(a []uintptr) result { write(a[0], unsafe.Pointer(&name[0])); return success })
	r.x.f.does("cuFuncGetParamInfo", func(a []uintptr) result {
		if a[1] > 1 {
			return invalidValue
		}
		write(a[2], uint64(8*a[1]))
		write(a[3], uint64(8-4*a[1]))
		return success
	})
	r.do(foreign())
	r.x.f.does("cuFuncGetParamInfo", func([]uintptr) result { return notSupported })
	require.ErrorContains(t, foreign(), "sizes of the kernel's parameters")
}

// Nodes that can't be read say so, and never compare as equal.
func TestNodesThatCantBeRead(t *testing.T) {
	r := newGraphRig(t)
	for name, c := range map[string]struct {
		call string
		does func(a []uintptr) result
		want string
	}{
		"another type":  {"cuGraphNodeGetType", func(a []uintptr) result { write(a[1], int32(13)); return success }, "type 13"},
		"no parameters": {"cuGraphMemsetNodeGetParams", func([]uintptr) result { return invalidValue }, "CUDA error 1"},
		"rows": {"cuGraphMemsetNodeGetParams", func(a []uintptr) result {
			write(a[1], memsetParams{dst: 1, elementSize: 1, width: 8, height: 2})
			return success
		}, "more than one row"},
		"words": {"cuGraphMemsetNodeGetParams", func(a []uintptr) result {
			write(a[1], memsetParams{dst: 1, value: 0x01020304, elementSize: 4, width: 8, height: 1})
			return success
		}, "more than one byte's value"},
	} {
		t.Run(name, func(t *testing.T) {
			r.x.f.mu.Lock()
			before := r.x.f.on[c.call]
			r.x.f.mu.Unlock()
			r.x.f.does(c.call, c.does)
			defer r.x.f.does(c.call, before)
			g, err := r.a.Capture(func() error { return r.a.Memset(r.v, 1) })
			r.do(err)
			require.Contains(t, g.Nodes()[0].Opaque, c.want)
			diff := g.Diff(g)
			require.Len(t, diff, 1)
			require.ErrorContains(t, diff[0], "can't be compared")
			r.do(g.Close())
		})
	}
}

// A driver that lacks what graphs need has none, and says which function.
func TestADriverWithoutGraphs(t *testing.T) {
	for _, sym := range new(symbols).table() {
		if sym.without != withoutGraphs {
			continue
		}
		_, s := newFake(t)
		for _, own := range s.table() {
			if own.name == sym.name {
				*own.address = 0
			}
		}
		d, err := open(s, Options{}, nil)
		require.NoError(t, err)
		dev := device.New(d)
		stream := gpuStream(t, dev, "s")
		_, err = stream.Capture(func() error { t.Error("captured"); return nil })
		require.ErrorIs(t, err, device.ErrUnsupported)
		require.ErrorContains(t, err, sym.name)
	}
}

func TestMemoryOfAGraphIsHeld(t *testing.T) {
	r := newGraphRig(t)
	b, err := r.dev.Alloc(64)
	r.do(err)
	g, err := r.a.Capture(func() error { return r.a.Memset(b.View().Slice(8, 8), 1) })
	r.do(err)
	require.ErrorIs(t, b.Close(), device.ErrInvalid)
	require.NotContains(t, r.x.f.callNames(), "cuMemFree_v2")
	r.do(g.Close(), b.Close())
}
