package driver_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/driver"
)

// step is a graph of three nodes.
func step() []driver.Node {
	return []driver.Node{
		{Kind: driver.CopyNode, Op: "CopyH2D", Dst: 0x100, Src: 0x900, Bytes: 64},
		{Kind: driver.KernelNode, Op: "Launch", Kernel: "adam", Grid: [3]uint32{4, 1, 1}, Block: [3]uint32{128, 1, 1}, SharedBytes: 16,
			Args: [][]byte{{0, 1, 0, 0, 0, 0, 0, 0}, {0, 0, 0x80, 0x3f}}, After: []int{0}},
		{Kind: driver.MemsetNode, Op: "Memset", Dst: 0x200, Bytes: 8, Value: 1, After: []int{0, 1}},
	}
}

// Every parameter and every part of the shape is compared, and told with both values.
func TestDifferencesAreNamed(t *testing.T) {
	require.Empty(t, driver.Compare(step(), step()))
	for name, c := range map[string]struct {
		change   func(g []driver.Node)
		argument int
		shape    bool
		want     string
	}{
		"scalar":      {func(g []driver.Node) { g[1].Args[1] = []byte{0, 0, 0, 0x40} }, 1, false, `node 1, kernel "adam": argument 1: 0x3f800000 (int32 1065353216, float32 1), then 0x40000000 (int32 1073741824, float32 2)`},
		"address":     {func(g []driver.Node) { g[1].Args[0][1] = 2 }, 0, false, `argument 0: 0x100 (int64 256,`},
		"grid":        {func(g []driver.Node) { g[1].Grid[0] = 5 }, -1, false, `the grid: [4 1 1], then [5 1 1]`},
		"block":       {func(g []driver.Node) { g[1].Block[1] = 2 }, -1, false, `the block: [128 1 1], then [128 2 1]`},
		"shared":      {func(g []driver.Node) { g[1].SharedBytes = 0 }, -1, false, `the bytes of shared memory: 16, then 0`},
		"source":      {func(g []driver.Node) { g[0].Src = 0x901 }, -1, false, `node 0, CopyH2D: the source: 0x900, then 0x901`},
		"destination": {func(g []driver.Node) { g[0].Dst = 0x101 }, -1, false, `the destination: 0x100, then 0x101`},
		"length":      {func(g []driver.Node) { g[2].Bytes = 9 }, -1, false, `node 2, Memset: the length: 8, then 9`},
		"value":       {func(g []driver.Node) { g[2].Value = 255 }, -1, false, `the value: 1, then 255`},
		"opaque":      {func(g []driver.Node) { g[1].Opaque = "no sizes" }, -1, false, `parameters that can't be compared: read, then no sizes`},
		"kernel":      {func(g []driver.Node) { g[1].Kernel = "sgd" }, -1, true, `the work: kernel "adam", then kernel "sgd"`},
		"kind":        {func(g []driver.Node) { g[2] = driver.Node{Kind: driver.EmptyNode, After: g[2].After} }, -1, true, `the work: Memset, then empty`},
		"direction":   {func(g []driver.Node) { g[0].Op = "CopyD2D" }, -1, true, `the work: CopyH2D, then CopyD2D`},
		"order":       {func(g []driver.Node) { g[2].After = []int{0} }, -1, true, `the nodes that it waits for: [0 1], then [0]`},
		"arguments":   {func(g []driver.Node) { g[1].Args = g[1].Args[:1] }, -1, true, `the number of arguments: 2, then 1`},
		"size":        {func(g []driver.Node) { g[1].Args[1] = make([]byte, 8) }, 1, true, `the size of argument 1: 4, then 8`},
	} {
		t.Run(name, func(t *testing.T) {
			other := step()
			c.change(other)
			all := driver.Compare(step(), other)
			require.Len(t, all, 1)
			require.ErrorContains(t, all[0], c.want)
			require.Equal(t, c.argument, all[0].Argument)
			require.Equal(t, c.shape, all[0].Shape)
			first := driver.FirstShape(all)
			require.Equal(t, c.shape, first != nil)
		})
	}
}

// Several differences are all told; of graphs with unequally many nodes only the numbers
// and where they part.
func TestDifferencesAreListed(t *testing.T) {
	other := step()
	other[0].Src, other[1].Args[1] = 0x901, []byte{1, 0, 0, 0}
	require.Len(t, driver.Compare(step(), other), 2)

	longer := append(step()[:1:1], step()...)
	all := driver.Compare(step(), longer)
	require.Len(t, all, 2)
	require.EqualError(t, all[0], "the number of nodes: 3, then 4")
	require.ErrorContains(t, all[1], `node 1, kernel "adam": the work`)
	require.Len(t, driver.Compare(step(), nil), 1)

	err := driver.ShapeError("UpdateExec", "cpu", all[1])
	require.ErrorIs(t, err, driver.ErrInvalid)
	diff := new(driver.Difference)
	require.ErrorAs(t, err, &diff)
	require.Same(t, all[1], diff)
	require.ErrorContains(t, err, "cpu: UpdateExec: invalid value: the graph has another shape: node 1")
}

func TestValuesForPeople(t *testing.T) {
	require.Equal(t, "0xbf800000 (int32 -1082130432, float32 -1)", driver.Value([]byte{0, 0, 0x80, 0xbf}))
	require.Equal(t, "0xffffffffffffffff (int64 -1, float64 NaN)", driver.Value([]byte{255, 255, 255, 255, 255, 255, 255, 255}))
	require.Equal(t, "0102", driver.Value([]byte{1, 2}))
	require.Regexp(t, "^0{64}$", driver.Value(make([]byte, 32)))
	require.Regexp(t, `^0{64}… \(40 bytes\)$`, driver.Value(make([]byte, 40)))
	require.Empty(t, driver.Value(nil))
}

// Each CaptureError is ErrCapture and no other, and says something of its own.
func TestCaptureErrorsAreToldApart(t *testing.T) {
	seen := map[string]bool{}
	for e := driver.CaptureUnsupported; e <= driver.CaptureActive; e++ {
		require.ErrorIs(t, e, driver.ErrCapture)
		require.NotErrorIs(t, e, driver.ErrUnsupported)
		require.NotEmpty(t, e.Error())
		require.False(t, seen[e.Error()])
		seen[e.Error()] = true
		for other := driver.CaptureUnsupported; other <= driver.CaptureActive; other++ {
			if other != e {
				require.NotErrorIs(t, e, other)
			}
		}
	}
	require.Equal(t, "driver.CaptureError(0)", driver.CaptureError(0).Error())
	require.Equal(t, "driver.CaptureError(200)", driver.CaptureError(200).Error())
	require.Equal(t, "kernel driver.NodeKind(99)", fmt.Sprint(driver.KernelNode, " ", driver.NodeKind(99)))
}
