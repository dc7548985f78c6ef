package devicetest

import (
	"errors"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
)

func graphNodes(f *fixture) {
	f.graphs()
	a, b := f.stream("a"), f.stream("b")
	fork, join := f.event("fork"), f.event("join")
	v, h := f.buffer(256), f.host(256)
	step := func(by uint32, at int64, value byte) func() {
		return func() {
			f.do(a.CopyH2D(v, h))
			f.do(a.Record(fork))
			f.do(b.Wait(fork))
			f.do(a.Launch(add(v.Slice(at, 64), by)))
			f.do(b.Memset(v.Slice(192, 64), value))
			f.do(b.Record(join))
			f.do(a.Wait(join))
			f.do(a.HostFunc(func() {}))
		}
	}
	g := f.capture(a, step(7, 0, 1))
	nodes := g.Nodes()
	require.Len(f, nodes, 4)
	var kinds []device.NodeKind
	for _, n := range nodes {
		kinds = append(kinds, n.Kind)
		require.Empty(f, n.Opaque)
	}
	require.Equal(f, []device.NodeKind{device.CopyNode, device.KernelNode, device.MemsetNode, device.HostNode}, kinds)
	up, kernel, memset := nodes[0], nodes[1], nodes[2]
	require.Equal(f, "CopyH2D", up.Op)
	require.Equal(f, v.Address(), up.Dst)
	require.Equal(f, int64(256), up.Bytes)
	require.Equal(f, increment.Name, kernel.Kernel)
	require.Equal(f, [3]uint32{1, 1, 1}, kernel.Grid)
	require.Equal(f, [3]uint32{128, 1, 1}, kernel.Block)
	require.Len(f, kernel.Args, 3)
	require.Equal(f, []byte{7, 0, 0, 0}, kernel.Args[2])
	require.Equal(f, v.Address()+192, memset.Dst)
	require.Equal(f, byte(1), memset.Value)
	require.Empty(f, up.After)
	require.Equal(f, []int{0}, kernel.After)
	require.Equal(f, []int{0}, memset.After)
	require.Equal(f, []int{1, 2}, nodes[3].After)

	require.Empty(f, g.Diff(f.capture(a, step(7, 0, 1))), "the same step")
	for name, c := range map[string]struct {
		other *device.Graph
		want  []string
	}{
		"scalar":  {f.capture(a, step(8, 0, 1)), []string{`kernel "leat_devicetest_increment": argument 2: 0x7 (int32 7`, "0x8"}},
		"address": {f.capture(a, step(7, 64, 1)), []string{`kernel "leat_devicetest_increment": argument 0`}},
		"memset":  {f.capture(a, step(7, 0, 2)), []string{"node 2, Memset: the value: 1, then 2"}},
	} {
		diff := g.Diff(c.other)
		require.Len(f, diff, 1, name)
		require.False(f, diff[0].Shape, name)
		for _, text := range c.want {
			require.ErrorContains(f, diff[0], text, name)
		}
	}
	scalar := g.Diff(f.capture(a, step(8, 0, 1)))[0]
	require.Equal(f, 2, scalar.Argument)
	require.Equal(f, 1, scalar.Node)
}

func graphUpdate(f *fixture) {
	f.graphs()
	s, v, w := f.stream("s"), f.buffer(64), f.buffer(64)
	f.do(s.Memset(v, 0))
	f.do(s.Memset(w, 0))
	x := f.exec(s, func() { f.do(s.Launch(add(v, 1))) })
	f.do(x.Launch(s))
	g, err := s.Capture(func() error { return s.Launch(add(w, 20)) })
	f.do(err)
	release := f.hold(s)
	f.do(x.Launch(s))
	f.do(x.Update(g)) // what was launched before keeps its parameters
	f.do(g.Close())
	f.do(x.Launch(s))
	release()
	require.Equal(f, all(2, 64), f.read(s, v))
	require.Equal(f, all(20, 64), f.read(s, w))
	require.Equal(f, []byte{20, 0, 0, 0}, x.Nodes()[0].Args[2])
}

func graphUpdateShape(f *fixture) {
	f.graphs()
	s, other, v := f.stream("s"), f.stream("other"), f.buffer(64)
	fork, join := f.event("fork"), f.event("join")
	f.do(s.Memset(v, 0))
	f.synchronize(s)
	two := func() {
		f.do(s.Launch(add(v, 1)))
		f.do(s.Launch(add(v, 2)))
	}
	x := f.exec(s, two)
	for name, c := range map[string]struct {
		body func()
		want string
	}{
		"more nodes": {func() { two(); two() }, "the number of nodes: 2, then 4"},
		"other work": {func() { f.do(s.Launch(add(v, 1))); f.do(s.Memset(v, 1)) }, `node 1, kernel "leat_devicetest_increment": the work`},
		"other order": {func() {
			f.do(s.Record(fork))
			f.do(other.Wait(fork))
			f.do(s.Launch(add(v.Slice(0, 1), 1)))
			f.do(other.Launch(add(v.Slice(1, 1), 2)))
			f.do(other.Record(join))
			f.do(s.Wait(join))
		}, `the nodes that it waits for: [0], then []`},
	} {
		err := x.Update(f.capture(s, c.body))
		require.ErrorIs(f, err, device.ErrInvalid, name)
		require.ErrorContains(f, err, c.want, name)
		diff := new(device.Difference)
		require.ErrorAs(f, err, &diff, name)
		require.True(f, diff.Shape, name)
	}
	f.do(x.Launch(s))
	require.Equal(f, all(3, 64), f.read(s, v), "the exec is as it was")
}

func graphHolds(f *fixture) {
	f.graphs()
	s := f.stream("s")
	b, err := f.dev.Alloc(64)
	f.do(err)
	h, err := f.dev.AllocHost(64, device.HostOptions{})
	f.do(err)
	g, err := s.Capture(func() error {
		return errors.Join(s.CopyH2D(b.View(), h.Bytes()), s.Launch(add(b.View(), 1)))
	})
	f.do(err)
	refused := func(when string) {
		f.Helper()
		for _, close := range []func() error{b.Close, h.Close} {
			err := close()
			require.ErrorIs(f, err, device.ErrInvalid, when)
			require.ErrorContains(f, err, "graph", when)
		}
	}
	refused("by the graph")
	x, err := g.Instantiate()
	f.do(err)
	f.do(g.Close())
	refused("by its exec")
	f.do(x.Launch(s))
	f.synchronize(s)
	require.Equal(f, int64(1), f.dev.Usage().Execs)
	f.do(x.Close())
	f.do(x.Close())
	f.do(b.Close())
	f.do(h.Close())
}
