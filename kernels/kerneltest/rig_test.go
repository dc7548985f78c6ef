package kerneltest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
)

var module = &device.Module{Name: "test", PTX: `
.visible .entry double_all(
	.param .u64 double_all_param_0,
	.param .u64 double_all_param_1,
	.param .f32 double_all_param_2
)
{
	ret;
}`}

func TestLaunchesMustFitThePTX(t *testing.T) {
	r := CPU(t)
	kernel := &device.Kernel{Name: "double_all", Module: module, Go: func(a *device.Args) {
		copy(a.Bytes(0), a.Bytes(1))
	}}
	launch := func(k *device.Kernel, threads uint32, args func(a *device.Args)) error {
		l := device.Launch{Kernel: k, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{threads, 1, 1}}
		args(&l.Args)
		return r.Stream.Launch(&l)
	}
	out, in := r.Alloc(8), r.Upload([]byte("abcdefgh"))
	memory := func(a *device.Args) { out.Out(a); in.In(a) }
	good := func(a *device.Args) { memory(a); a.AddFloat32(2) }

	require.NoError(t, launch(kernel, 32, good))
	require.Equal(t, "abcdefgh", string(r.Download(out)))
	require.ErrorContains(t, launch(kernel, 32, memory), "2 arguments, its PTX has 3 parameters")
	require.ErrorContains(t, launch(kernel, 32, func(a *device.Args) { memory(a); a.AddUint64(2) }), "argument 2 has 8 bytes, its PTX parameter 4")
	require.ErrorContains(t, launch(kernel, 2000, good), "Block is [2000 1 1]")
	require.ErrorContains(t, launch(kernel, 0, good), "Block is [0 1 1], want at least 1 in x")
	require.ErrorContains(t, launch(&device.Kernel{Name: "other", Module: module}, 32, good), "other is not an entry point of module test")
	require.ErrorContains(t, launch(&device.Kernel{Name: "other"}, 32, good), "other has no PTX")
}

// A kernel that leaves bytes of an Out argument as they were shows the poison.
func TestOutMeansEveryByte(t *testing.T) {
	r := CPU(t)
	lazy := &device.Kernel{Name: "double_all", Module: module, Go: func(a *device.Args) { a.Bytes(0)[0] = 1 }}
	out, in := r.Alloc(2), r.Alloc(2)
	l := device.Launch{Kernel: lazy, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	out.Out(&l.Args)
	in.In(&l.Args)
	l.Args.AddFloat32(0)
	require.NoError(t, r.Stream.Launch(&l))
	require.Equal(t, []byte{1, cpu.PoisonByte}, r.Download(out))
}
