package devicetest

import (
	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
)

// incrementPTX adds a number to every byte. One block of any number of threads.
const incrementPTX = `.version 6.0
.target sm_70
.address_size 64

.visible .entry leat_devicetest_increment(
	.param .u64 mem,
	.param .u64 bytes,
	.param .u32 by
)
{
	.reg .pred %p<2>;
	.reg .b32 %r<6>;
	.reg .b64 %rd<6>;

	ld.param.u64 %rd1, [mem];
	ld.param.u64 %rd2, [bytes];
	ld.param.u32 %r1, [by];
	cvta.to.global.u64 %rd1, %rd1;
	mov.u32 %r2, %tid.x;
	mov.u32 %r3, %ntid.x;
	cvt.u64.u32 %rd3, %r2;
	cvt.u64.u32 %rd4, %r3;
loop:
	setp.ge.u64 %p1, %rd3, %rd2;
	@%p1 bra done;
	add.u64 %rd5, %rd1, %rd3;
	ld.global.u8 %r4, [%rd5];
	add.u32 %r5, %r4, %r1;
	st.global.u8 [%rd5], %r5;
	add.u64 %rd3, %rd3, %rd4;
	bra loop;
done:
	ret;
}
`

// increment is the suite's own kernel, so that it stands on no other package's.
var increment = &device.Kernel{
	Name:   "leat_devicetest_increment",
	Module: device.RegisterModule(&device.Module{Name: "devicetest", PTX: incrementPTX}),
	Go: func(a *device.Args) {
		for i := range a.Bytes(0) {
			a.Bytes(0)[i] += byte(a.Uint32(2))
		}
	},
}

// add is a launch of increment on v.
func add(v device.View, by uint32) *device.Launch {
	l := &device.Launch{Kernel: increment, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{128, 1, 1}}
	v.InOut(&l.Args)
	l.Args.AddUint64(uint64(v.Size()))
	l.Args.AddUint32(by)
	return l
}

func kernelOrder(f *fixture) {
	s, v, h := f.stream("s"), f.buffer(1000), f.host(1000)
	f.do(s.Memset(v, 0))
	want := byte(0)
	for i := range 100 {
		f.do(s.Launch(add(v, uint32(i))))
		want += byte(i)
		if i%10 == 0 {
			want = byte(i)
			f.do(s.Memset(v, want))
		}
	}
	f.do(s.CopyD2H(h, v))
	f.synchronize(s)
	require.Equal(f, all(want, 1000), h)
}

func kernelArguments(f *fixture) {
	s, v, h := f.stream("s"), f.buffer(64), f.host(64)
	f.do(s.Memset(v, 1))
	release := f.hold(s)
	l := add(v, 1)
	f.do(s.Launch(l))
	*l = *add(v.Slice(0, 32), 5)
	f.do(s.Launch(l))
	*l = device.Launch{}
	f.do(s.CopyD2H(h, v))
	release()
	f.synchronize(s)
	require.Equal(f, append(all(7, 32), all(2, 32)...), h)
}

func kernelHostMemory(f *fixture) {
	s := f.stream("s")
	b, err := f.dev.AllocHost(8192, device.HostOptions{})
	require.NoError(f, err)
	v, err := b.View()
	require.NoError(f, err)
	copy(b.Bytes(), all(1, 8192))
	f.do(s.Launch(add(v.Slice(100, 50), 3)))
	f.synchronize(s)
	want := all(1, 8192)
	copy(want[100:], all(4, 50))
	require.Equal(f, want, b.Bytes())
	f.do(b.Close())

	mem := all(1, 4096)
	r, err := f.dev.RegisterHost(mem, device.HostOptions{})
	require.NoError(f, err)
	v, err = r.View()
	require.NoError(f, err)
	f.do(s.Launch(add(v, 1)))
	f.synchronize(s)
	require.Equal(f, all(2, 4096), mem)
	f.do(r.Close())
}

// A kernel in the other kind of device's form alone is refused before anything runs, by
// CheckKernels as by Launch, with what to do; the stream goes on.
func kernelUnsupported(f *fixture) {
	s, v, h := f.stream("s"), f.buffer(8), f.host(8)
	missing := &device.Kernel{Name: "missing", Go: increment.Go}
	if f.dev.Properties().Kind == "cpu" {
		missing = &device.Kernel{Name: "missing", Module: increment.Module}
	}
	f.do(s.Memset(v, 1))
	for _, k := range []*device.Kernel{{Name: "nothing"}, missing} {
		l := add(v, 1)
		l.Kernel = k
		for name, err := range map[string]error{"Launch": s.Launch(l), "CheckKernels": f.dev.CheckKernels(increment, k)} {
			require.ErrorIs(f, err, device.ErrUnsupported, name)
			require.ErrorContains(f, err, k.Name, name)
			require.ErrorContains(f, err, "set Kernel.", name)
			var e *device.Error
			require.ErrorAs(f, err, &e)
			require.Equal(f, f.dev.Name(), e.Device)
			require.False(f, e.Async)
		}
	}
	require.ErrorIs(f, s.Launch(&device.Launch{}), device.ErrInvalid)
	require.ErrorIs(f, f.dev.CheckKernels(nil), device.ErrInvalid)
	f.do(f.dev.CheckKernels())
	f.do(f.dev.CheckKernels(increment, increment))
	f.do(s.CopyD2H(h, v))
	f.synchronize(s)
	require.Equal(f, all(1, 8), h, "nothing ran")
}

func kernelOutOfRange(f *fixture) {
	if f.opts.UncheckedRanges {
		f.Skip("this driver doesn't check ranges")
	}
	s, v := f.stream("s"), f.buffer(256)
	for name, view := range map[string]device.View{
		"past the end":     f.dev.ViewOf(v.Address()+1, 256),
		"before the start": f.dev.ViewOf(v.Address()-1, 256),
		"null":             f.dev.ViewOf(0, 1),
		"negative":         f.dev.ViewOf(v.Address(), -1),
	} {
		err := s.Launch(add(view, 1))
		require.ErrorIs(f, err, device.ErrInvalid, name)
		require.ErrorContains(f, err, increment.Name, name)
		require.ErrorContains(f, err, "argument 0", name)
	}
	f.do(s.Launch(add(v.Slice(0, 0), 1)))
	f.synchronize(s)
}
