//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/driver"
)

func TestResultsBecomeErrors(t *testing.T) {
	cases := []struct {
		result   result
		sentinel error
		name     string
	}{
		{invalidValue, driver.ErrInvalid, "CUDA_ERROR_INVALID_VALUE"},
		{outOfMemory, driver.ErrOutOfMemory, ""},
		{400, driver.ErrInvalid, ""},
		{notSupported, driver.ErrUnsupported, ""},
		{900, driver.ErrCapture, ""},
		{700, driver.ErrFault, "CUDA_ERROR_ILLEGAL_ADDRESS"},
		{702, driver.ErrFault, ""},
		{719, driver.ErrFault, ""},
		{214, driver.ErrFault, ""},
	}
	for _, c := range cases {
		f, d := openFake(t, Options{})
		s := newStream(t, d)
		f.fail("cuMemcpyHtoDAsync_v2", c.result)
		err := d.CopyH2D(s, 0x100, make([]byte, 8))
		var e *driver.Error
		require.ErrorAs(t, err, &e)
		require.ErrorIs(t, err, c.sentinel)
		require.Equal(t, "CopyH2D", e.Op)
		require.Equal(t, "cuda:0", e.Device)
		require.Equal(t, int(c.result), e.Code)
		require.Equal(t, c.name, e.Name)
		require.Equal(t, c.sentinel == driver.ErrFault, e.Async)
	}
}

func TestUnknownResult(t *testing.T) {
	f, d := openFake(t, Options{})
	f.fail("cuMemFree_v2", 654)
	err := d.Free(1)
	require.ErrorContains(t, err, "CUDA error 654")
	_, err = d.Alloc(1)
	require.NoError(t, err, "the device is healthy")
}

// A fault is the answer to every later call, which doesn't reach the driver.
func TestAFaultEndsTheDevice(t *testing.T) {
	f, d := openFake(t, Options{})
	s := newStream(t, d)
	mem, err := d.AllocHost(mappedFrom, driver.HostConfig{})
	require.NoError(t, err)
	never := func() { t.Error("a host function ran after a fault") }
	require.NoError(t, d.HostFunc(s, never))
	e, err := d.NewEvent(driver.EventConfig{Name: "consumed of slot 2"})
	require.NoError(t, err)
	f.fail("cuEventQuery", 700)
	_, fault := d.EventDone(e)
	require.ErrorContains(t, fault, `on "consumed of slot 2"`)
	require.ErrorIs(t, fault, driver.ErrFault)
	require.ErrorContains(t, fault, "restart the process")
	require.ErrorContains(t, fault, "EventDone found that earlier work had failed")

	f.reset()
	ctx := t.Context()
	for name, do := range map[string]func() error{
		"Record":            func() error { return d.Record(e, s) },
		"Wait":              func() error { return d.Wait(s, e) },
		"CopyH2D":           func() error { return d.CopyH2D(s, 1, mem) },
		"HostFunc":          func() error { return d.HostFunc(s, never) },
		"Synchronize":       func() error { return d.Synchronize(ctx) },
		"SynchronizeStream": func() error { return d.SynchronizeStream(ctx, s) },
		"SynchronizeEvent":  func() error { return d.SynchronizeEvent(ctx, e) },
		"Alloc":             func() error { _, err := d.Alloc(1); return err },
		"Free":              func() error { return d.Free(1) },
		"AllocHost":         func() error { _, err := d.AllocHost(1, driver.HostConfig{}); return err },
		"FreeHost":          func() error { return d.FreeHost(mem) },
		"NewStream":         func() error { _, err := d.NewStream(driver.StreamConfig{}); return err },
		"FreeEvent":         func() error { return d.FreeEvent(e) },
		"FreeStream":        func() error { return d.FreeStream(s) },
		"Memory":            func() error { _, _, err := d.Memory(); return err },
	} {
		require.Same(t, fault, do(), name)
	}
	require.NoError(t, d.Close())
	require.Empty(t, f.callNames())
	require.Empty(t, hostFuncs.queued)
}

// A refused allocation says what was asked for and what there is, and the next
// call is healthy.
func TestARefusedAllocationIsNoFault(t *testing.T) {
	f, d := openFake(t, Options{})
	f.fail("cuMemAlloc_v2", outOfMemory)
	_, err := d.Alloc(1 << 50)
	require.ErrorIs(t, err, driver.ErrOutOfMemory)
	require.ErrorContains(t, err, "1125899906842624 bytes asked for, 107374182400 of 150323855360 free: fewer or smaller buffers")
	_, err = d.Alloc(1)
	require.NoError(t, err)
	for _, bytes := range []int64{0, -1} {
		_, err = d.Alloc(bytes)
		require.ErrorIs(t, err, driver.ErrInvalid)
	}
}

func TestSyncFindsTheCall(t *testing.T) {
	f, d := openFake(t, Options{Sync: true})
	s, e := newStream(t, d), newEvent(t, d)
	kernel := loadKernel(t, d)
	launch := &driver.Launch{Kernel: kernel, Grid: [3]uint32{1}, Block: [3]uint32{1}}
	launch.Args.AddMemory(0x100, 16, driver.InOut)
	launch.Args.AddUint32(1)
	for name, do := range map[string]func() error{
		"cuEventRecord":        func() error { return d.Record(e, s) },
		"cuStreamWaitEvent":    func() error { return d.Wait(s, e) },
		"cuMemcpyHtoDAsync_v2": func() error { return d.CopyH2D(s, 1, make([]byte, 1)) },
		"cuMemcpyDtoHAsync_v2": func() error { return d.CopyD2H(s, make([]byte, 1), 1) },
		"cuMemcpyDtoDAsync_v2": func() error { return d.CopyD2D(s, 1, 2, 3) },
		"cuMemsetD8Async":      func() error { return d.Memset(s, 1, 2, 3) },
		"cuLaunchHostFunc":     func() error { return d.HostFunc(s, func() {}) },
		"cuLaunchKernel":       func() error { return d.Launch(s, launch) },
	} {
		f.reset()
		require.NoError(t, do())
		require.Equal(t, []string{name, "cuStreamSynchronize"}, f.callNames())
		require.Equal(t, uintptr(s), f.recorded()[1].args[0])
	}
	f.fail("cuStreamSynchronize", 700)
	err := d.Launch(s, launch)
	var fault *driver.Error
	require.True(t, errors.As(err, &fault))
	require.Equal(t, "Launch", fault.Op)
	require.False(t, fault.Async, "the fault is this call's own")
	require.ErrorIs(t, fault, driver.ErrFault)
}

func TestHandlesThatAreNot(t *testing.T) {
	_, d := openFake(t, Options{})
	s, e := newStream(t, d), newEvent(t, d)
	require.NoError(t, d.FreeStream(s))
	require.NoError(t, d.FreeEvent(e))
	ctx := t.Context()
	for name, err := range map[string]error{
		"FreeStream":        d.FreeStream(s),
		"FreeEvent":         d.FreeEvent(e),
		"Record":            d.Record(e, newStream(t, d)),
		"Record on":         d.Record(newEvent(t, d), s),
		"Wait":              d.Wait(s, newEvent(t, d)),
		"Wait for":          d.Wait(newStream(t, d), e),
		"CopyH2D":           d.CopyH2D(s, 1, []byte{1}),
		"SynchronizeStream": d.SynchronizeStream(ctx, s),
		"SynchronizeEvent":  d.SynchronizeEvent(ctx, e),
		"FreeHost":          d.FreeHost(make([]byte, 1)),
		"UnregisterHost":    d.UnregisterHost(make([]byte, 1)),
		"CopyD2D":           d.CopyD2D(s, 1, 2, -1),
		"Memset":            d.Memset(s, 1, 2, -1),
	} {
		require.ErrorIs(t, err, driver.ErrInvalid, name)
	}
	_, err := d.StreamDone(s)
	require.ErrorIs(t, err, driver.ErrInvalid)
	_, err = d.EventDone(e)
	require.ErrorIs(t, err, driver.ErrInvalid)
}
