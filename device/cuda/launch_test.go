//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/driver"
)

const testPTX = `
// .entry commented(.param .u64 x)
.version 6.0
.target sm_70
.visible .entry scale(
	.param .u64 scale_param_0,
	.param .u32 scale_param_1
)
{ ret; }
.entry nothing() { ret; }
.entry bare { ret; }
.visible .entry mixed(.param .f32 a, .param .align 8 .b8 b[16], .param .u64 .ptr .global .align 1 c, .param .u8 d) { ret; }
`

func TestEntryPoints(t *testing.T) {
	require.Equal(t, map[string][]uint8{
		"scale":   {8, 4},
		"nothing": {},
		"bare":    {},
		"mixed":   {4, 0, 8, 0},
	}, entryPoints(testPTX))
}

// loadKernel makes a kernel whose module d loads at its first launch.
func loadKernel(t *testing.T, d *gpu) *driver.Kernel {
	k := &driver.Kernel{Name: "scale", Module: &driver.Module{Name: "test", PTX: testPTX}}
	_, err := d.function("Launch", k)
	require.NoError(t, err)
	return k
}

func TestLaunchArguments(t *testing.T) {
	f, d := openFake(t, Options{})
	s, k := newStream(t, d), loadKernel(t, d)
	l := &driver.Launch{Kernel: k, Grid: [3]uint32{5, 6}, Block: [3]uint32{128, 2, 3}, SharedBytes: 64}
	l.Args.AddMemory(0xabc00, 16, driver.InOut)
	l.Args.AddFloat32(1.5)
	f.reset()
	var first uint64
	var second float32
	f.does("cuLaunchKernel", func(a []uintptr) result {
		params := *at[[2]uintptr](a[9])
		first, second = *at[uint64](params[0]), *at[float32](params[1])
		return success
	})
	require.NoError(t, d.Launch(s, l))
	require.Equal(t, []string{"cuLaunchKernel"}, f.callNames(), "the function was looked up before")
	a := f.recorded()[0].args
	fn, err := d.function("Launch", k)
	require.NoError(t, err)
	require.Equal(t, []uintptr{fn.handle, 5, 6, 1, 128, 2, 3, 64, uintptr(s)}, a[:9])
	require.Zero(t, a[10])
	require.Equal(t, uint64(0xabc00), first)
	require.Equal(t, float32(1.5), second)
}

func TestLaunchChecks(t *testing.T) {
	f, d := openFake(t, Options{})
	s, k := newStream(t, d), loadKernel(t, d)
	f.reset()
	launch := func(change func(*driver.Launch)) error {
		l := &driver.Launch{Kernel: k, Grid: [3]uint32{1}, Block: [3]uint32{1}}
		l.Args.AddMemory(0xabc00, 16, driver.InOut)
		l.Args.AddUint32(1)
		change(l)
		return d.Launch(s, l)
	}
	for text, change := range map[string]func(*driver.Launch){
		"takes 2 arguments, not 3":       func(l *driver.Launch) { l.Args.AddUint32(1) },
		"argument 1 has 8 bytes, want 4": func(l *driver.Launch) { l.Args.Reset(); l.Args.AddUint64(1); l.Args.AddUint64(1) },
		"at least one of each":           func(l *driver.Launch) { l.Grid[0] = 0 },
		`no entry point "other"`:         func(l *driver.Launch) { l.Kernel = &driver.Kernel{Name: "other", Module: k.Module} },
	} {
		err := launch(change)
		require.ErrorIs(t, err, driver.ErrInvalid, text)
		require.ErrorContains(t, err, text)
	}
	goOnly := &driver.Kernel{Name: "go only", Go: func(*driver.Args) {}}
	for op, err := range map[string]error{
		"Launch":      launch(func(l *driver.Launch) { l.Kernel = goOnly }),
		"CheckKernel": d.CheckKernel(goOnly),
	} {
		require.ErrorIs(t, err, driver.ErrUnsupported)
		require.ErrorContains(t, err, `"go only" has no PTX`)
		require.ErrorContains(t, err, "or open the CPU device, which runs its Go function")
		require.ErrorContains(t, err, op)
	}
	neither := d.CheckKernel(&driver.Kernel{Name: "neither"})
	require.ErrorIs(t, neither, driver.ErrUnsupported)
	require.NotContains(t, neither.Error(), "CPU device")
	require.ErrorIs(t, launch(func(l *driver.Launch) { l.Kernel = nil }), driver.ErrInvalid)
	require.ErrorIs(t, d.CheckKernel(nil), driver.ErrInvalid)
	require.NoError(t, d.CheckKernel(k))
	require.Empty(t, f.callNames())
}

// CheckKernel loads a module that came after Open, so that the first launch does not, and
// says what is wrong with it.
func TestCheckKernelLoadsALateModule(t *testing.T) {
	f, d := openFake(t, Options{})
	s := newStream(t, d)
	k := &driver.Kernel{Name: "nothing", Module: &driver.Module{Name: "late", PTX: testPTX}}
	f.reset()
	require.NoError(t, d.CheckKernel(k))
	require.Contains(t, f.callNames(), "cuModuleLoadDataEx")
	require.Contains(t, d.Properties().Notes, `module "late" was registered after the device was opened, and loaded at its first use`)
	f.reset()
	require.NoError(t, d.Launch(s, &driver.Launch{Kernel: k, Grid: [3]uint32{1}, Block: [3]uint32{1}}))
	require.Equal(t, []string{"cuLaunchKernel"}, f.callNames())

	err := d.CheckKernel(&driver.Kernel{Name: "misspelt", Module: k.Module})
	require.ErrorIs(t, err, driver.ErrInvalid)
	require.ErrorContains(t, err, `no entry point "misspelt"`)
	f.fail("cuModuleLoadDataEx", 222)
	err = d.CheckKernel(&driver.Kernel{Name: "any", Module: &driver.Module{Name: "newer", PTX: testPTX}})
	require.ErrorIs(t, err, driver.ErrUnsupported)
	f.fail("cuCtxPushCurrent_v2", 700)
	require.ErrorIs(t, d.CheckKernel(&driver.Kernel{Name: "any", Module: &driver.Module{Name: "other", PTX: testPTX}}), driver.ErrFault)
	require.ErrorIs(t, d.CheckKernel(k), driver.ErrFault, "nothing runs any more")
}

// A module that the driver can't compile is an error with the compiler's words.
func TestJITLog(t *testing.T) {
	f, d := openFake(t, Options{})
	f.does("cuModuleLoadDataEx", func(a []uintptr) result {
		require.Equal(t, uintptr(4), a[2])
		require.Equal(t, [4]uint32{3, 4, 5, 6}, *at[[4]uint32](a[3]))
		values := *at[[4]uintptr](a[4])
		require.Equal(t, []uintptr{jitLogBytes, jitLogBytes}, []uintptr{values[1], values[3]})
		writeText(values[2], "ptxas application ptx input, line 5; fatal : Parsing error\x00")
		image := unsafe.Slice(at[byte](a[1]), len(testPTX)+1)
		require.Equal(t, testPTX+"\x00", string(image))
		return 218
	})
	_, err := d.function("Launch", &driver.Kernel{Name: "scale", Module: &driver.Module{Name: "broken", PTX: testPTX}})
	require.ErrorIs(t, err, driver.ErrInvalid)
	require.ErrorContains(t, err, `module "broken"`)
	require.ErrorContains(t, err, "line 5; fatal : Parsing error")
}

// Every module is loaded when the device opens, with every entry point.
func TestModulesLoadAtOpen(t *testing.T) {
	f, table := newFake(t)
	m := &driver.Module{Name: "test", PTX: testPTX}
	d, err := open(table, Options{}, []*driver.Module{m})
	require.NoError(t, err)
	s := newStream(t, d)
	require.Contains(t, f.callNames(), "cuModuleLoadDataEx")
	f.reset()
	l := &driver.Launch{Kernel: &driver.Kernel{Name: "nothing", Module: m}, Grid: [3]uint32{1}, Block: [3]uint32{1}}
	require.NoError(t, d.Launch(s, l))
	require.Equal(t, []string{"cuLaunchKernel"}, f.callNames())
	require.NoError(t, d.Close())
	require.Contains(t, f.callNames(), "cuModuleUnload")
}

func TestOpenGivesTheContextBackIfAModuleFails(t *testing.T) {
	for _, failing := range []string{"cuModuleLoadDataEx", "cuModuleGetFunction"} {
		f, s := newFake(t)
		f.fail(failing, 222)
		_, err := open(s, Options{}, []*driver.Module{{Name: "any", PTX: testPTX}})
		require.ErrorIs(t, err, driver.ErrUnsupported)
		require.Contains(t, f.callNames(), "cuDevicePrimaryCtxRelease_v2")
		f.requireNoContext()
	}
}
