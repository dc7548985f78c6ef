//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/driver"
)

func TestOptionsNameEveryMistake(t *testing.T) {
	_, err := Open(Options{Index: -1, UUID: "0123"})
	require.ErrorContains(t, err, "Index is -1")
	require.ErrorContains(t, err, "since UUID names the GPU")
	require.ErrorIs(t, err, device.ErrInvalid)
	var e *device.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, []string{"Open", "cuda:0123"}, []string{e.Op, e.Device})
	var first *device.OptionError
	require.ErrorAs(t, err, &first)
	require.Equal(t, device.OptionError{Option: "Index", Value: -1, Want: "0 or more"}, *first)
	require.ErrorContains(t, err, "UUID is \"0123\"")
}

func TestOpenWithoutADriver(t *testing.T) {
	if _, err := load(); err == nil {
		t.Skip("this machine has an NVIDIA driver")
	}
	_, err := Open(Options{})
	var e *device.Error
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, device.ErrUnavailable)
	require.Equal(t, "cuda:0", e.Device)
	require.ErrorIs(t, err, ErrNoDriver)
	require.ErrorContains(t, err, "libcuda.so.1")
	require.Equal(t, 1, strings.Count(err.Error(), ErrNoDriver.Error()))

	_, err = List()
	require.ErrorIs(t, err, device.ErrUnavailable)
}

func TestProperties(t *testing.T) {
	_, d := openFake(t, Options{Index: 1})
	p := d.Properties()
	require.Equal(t, "cuda:1", driver.DeviceName(p))
	require.Equal(t, "Fake H200", p.Description)
	require.Equal(t, "GPU-01234567-89ab-cdef-fedc-ba9876543231", p.UUID)
	require.Equal(t, int64(140<<30), p.TotalBytes)
	require.Equal(t, 3, p.CopyEngines)
	require.Equal(t, []int{9, 0}, []int{p.ComputeMajor, p.ComputeMinor})
	require.Equal(t, "FFFF:FF:1F.0", p.PCI)
	require.Equal(t, []int{0, -5}, []int{p.LowestPriority, p.HighestPriority})
	free, total, err := d.Memory()
	require.NoError(t, err)
	require.Equal(t, []int64{100 << 30, 140 << 30}, []int64{free, total})
}

func TestOpenByUUID(t *testing.T) {
	_, d := openFake(t, Options{UUID: "GPU-01234567-89AB-cdef-fedc-ba9876543231"})
	require.Equal(t, 1, d.Properties().Index)

	_, s := newFake(t)
	_, err := open(s, Options{UUID: "GPU-0"}, nil)
	require.ErrorIs(t, err, driver.ErrUnavailable)
	require.ErrorContains(t, err, "among the 2")
}

func TestListMakesNoContext(t *testing.T) {
	f, s := newFake(t)
	all, err := list(s)
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.NotEqual(t, all[0].UUID, all[1].UUID)
	require.NotContains(t, f.callNames(), "cuDevicePrimaryCtxRetain")
}

// Whatever keeps the driver from starting is the reason in an ErrUnavailable, so
// that a caller can go on without a GPU.
func TestReasonsForNoDevice(t *testing.T) {
	cases := []struct {
		name   string
		spoil  func(*fake)
		reason string
	}{
		{"no device", func(f *fake) { f.fail("cuInit", noDevice) }, "sees no GPU"},
		{"mismatch", func(f *fake) { f.fail("cuInit", 803) }, "different versions"},
		{"unknown", func(f *fake) { f.fail("cuInit", 999) }, "kernel modules"},
		{"none visible", func(f *fake) {
			f.does("cuDeviceGetCount", func(a []uintptr) result { write(a[0], int32(0)); return success })
		}, "CUDA_VISIBLE_DEVICES"},
		{"old", func(f *fake) {
			f.does("cuDriverGetVersion", func(a []uintptr) result { write(a[0], int32(10020)); return success })
		}, "supports CUDA 10.2"},
		{"exclusive", func(f *fake) { f.fail("cuDevicePrimaryCtxRetain", 46) }, "another process"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f, s := newFake(t)
			c.spoil(f)
			_, err := open(s, Options{}, nil)
			require.ErrorIs(t, err, driver.ErrUnavailable)
			require.ErrorContains(t, err, c.reason)
			f.requireNoContext()
		})
	}
	t.Run("full", func(t *testing.T) {
		f, s := newFake(t)
		f.fail("cuDevicePrimaryCtxRetain", outOfMemory)
		_, err := open(s, Options{}, nil)
		require.ErrorIs(t, err, driver.ErrOutOfMemory)
	})
}

func TestMissingSymbols(t *testing.T) {
	for _, sym := range new(symbols).table() {
		lookup := func(name string) (uintptr, error) {
			if name == sym.name || name == older[sym.name] {
				return 0, errors.New("undefined symbol")
			}
			return 1, nil
		}
		var s symbols
		err := s.find(lookup)
		if sym.without == required {
			require.ErrorContains(t, err, sym.name)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, []string{fmt.Sprintf("the driver lacks %s: %s", sym.name, sym.without)}, s.notes())
	}
}

func TestOlderNameServes(t *testing.T) {
	var s symbols
	require.NoError(t, s.find(func(name string) (uintptr, error) {
		if name == "cuDeviceGetUuid_v2" {
			return 0, errors.New("undefined symbol")
		}
		return uintptr(len(name)), nil
	}))
	require.Equal(t, uintptr(len("cuDeviceGetUuid")), s.deviceGetUUID)
	require.Empty(t, s.notes())
}

// A device opens without any one of the optional functions, says so, and what
// needs the function is unsupported rather than a crash.
func TestFeaturesSwitchOff(t *testing.T) {
	uses := map[string]func(*gpu) error{
		"cuEventElapsedTime":           func(d *gpu) error { _, err := d.Elapsed(1, 2); return err },
		"cuMemHostRegister_v2":         func(d *gpu) error { return d.RegisterHost(make([]byte, 1), driver.HostConfig{}) },
		"cuMemHostUnregister":          func(d *gpu) error { return d.RegisterHost(make([]byte, 1), driver.HostConfig{}) },
		"cuMemHostGetDevicePointer_v2": func(d *gpu) error { _, err := d.HostAddress(make([]byte, 1)); return err },
		"cuLaunchHostFunc":             func(d *gpu) error { return d.HostFunc(1, func() {}) },
		"cuMemcpyPeerAsync": func(d *gpu) error {
			other := &gpu{cu: d.cu, ctx: 1}
			return d.CopyPeer(1, driver.Place{Device: d, Address: 1}, driver.Place{Device: other, Address: 1}, 1)
		},
	}
	full := new(symbols).table()
	for i, sym := range full {
		if sym.without == required {
			continue
		}
		t.Run(sym.name, func(t *testing.T) {
			_, s := newFake(t)
			*s.table()[i].address = 0
			d, err := open(s, Options{}, nil)
			require.NoError(t, err)
			require.Contains(t, d.Properties().Notes, fmt.Sprintf("the driver lacks %s: %s", sym.name, sym.without))
			if use := uses[sym.name]; use != nil {
				require.ErrorIs(t, use(d), driver.ErrUnsupported)
			}
			mem, err := d.AllocHost(mappedFrom, driver.HostConfig{})
			require.NoError(t, err)
			require.NoError(t, d.FreeHost(mem))
			require.NoError(t, d.Close())
		})
	}
}

func TestCloseGivesBackWhatOpenTook(t *testing.T) {
	f, d := openFake(t, Options{Index: 1})
	f.reset()
	require.NoError(t, d.Close())
	names := f.callNames()
	require.Contains(t, names, "cuDevicePrimaryCtxRelease_v2")
	require.Equal(t, uintptr(1), f.recorded()[len(names)-1].args[0])
	require.NoError(t, d.Close(), "a second Close does nothing")
	require.Len(t, f.callNames(), len(names))
	_, err := d.Alloc(1)
	require.ErrorIs(t, err, driver.ErrClosed)
	_, err = d.NewStream(driver.StreamConfig{})
	require.ErrorIs(t, err, driver.ErrClosed)
}

// Close may be called any number of times, from anywhere: all return when the context
// has been given back, once.
func TestEveryCloseWaits(t *testing.T) {
	f, s := newFake(t)
	d, err := open(s, Options{}, nil)
	require.NoError(t, err)
	var released atomic.Int32
	entered, proceed := make(chan struct{}), make(chan struct{})
	f.does("cuDevicePrimaryCtxRelease_v2", func([]uintptr) result {
		close(entered)
		<-proceed
		released.Add(1)
		return success
	})
	first := make(chan error)
	go func() { first <- d.Close() }()
	<-entered
	time.AfterFunc(20*time.Millisecond, func() { close(proceed) })
	require.NoError(t, d.Close())
	require.EqualValues(t, 1, released.Load(), "the second Close returned before the first")
	require.NoError(t, <-first)
	require.NoError(t, d.Close())
}
