//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"runtime"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/driver"
)

// onCThread calls the C function fn with user as a thread that is not Go's.
func onCThread(t *testing.T, fn, user uintptr) {
	create, err := purego.Dlsym(purego.RTLD_DEFAULT, "pthread_create")
	if err != nil {
		t.Skipf("no threads to be had without Go's runtime: %v", err)
	}
	join, err := purego.Dlsym(purego.RTLD_DEFAULT, "pthread_join")
	require.NoError(t, err)
	thread := new([2]uintptr)
	var pins runtime.Pinner
	pins.Pin(thread)
	defer pins.Unpin()
	r, _, _ := purego.SyscallN(create, uintptr(unsafe.Pointer(thread)), 0, fn, user)
	require.Zero(t, r)
	purego.SyscallN(join, thread[0], 0)
}

// A host function that panics, or ends its goroutine, ends neither the process nor the
// driver's thread: it is a fault, found by the next call, with the stack.
func TestAHostFunctionThatFails(t *testing.T) {
	own := errors.New("the user's own")
	var nowhere *int
	nowhereErr := errors.New("nil pointer dereference")
	for name, c := range map[string]struct {
		f    func()
		want error // nil for a Goexit
	}{
		"panic":       {func() { panic(own) }, own},
		"bad pointer": {func() { *nowhere = 1 }, nowhereErr},
		"Goexit":      {runtime.Goexit, nil},
		"FailNow":     {func() { new(testing.T).SkipNow() }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f, d := openFake(t, Options{})
			h, err := d.NewStream(driver.StreamConfig{Name: "work"})
			require.NoError(t, err)
			e := newEvent(t, d)
			var fn, user uintptr
			f.does("cuLaunchHostFunc", func(a []uintptr) result { fn, user = a[1], a[2]; return success })
			ran := false
			require.NoError(t, d.HostFunc(h, func() { ran = true; c.f() }))
			// Whoever is waiting when it happens hears of it too.
			f.does("cuEventQuery", func([]uintptr) result { return notReady })
			f.does("cuEventSynchronize", func([]uintptr) result { onCThread(t, fn, user); return success })
			fault := d.SynchronizeEvent(t.Context(), e)
			require.True(t, ran)
			require.ErrorIs(t, fault, device.ErrFault)
			require.ErrorContains(t, fault, `a host function on stream "work"`)
			var typed *device.Error
			require.ErrorAs(t, fault, &typed)
			require.Equal(t, "HostFunc", typed.Op)
			require.True(t, typed.Async)
			var stack []byte
			if c.want == nil {
				exit := new(device.Goexit)
				require.ErrorAs(t, fault, &exit)
				stack = exit.Stack
			} else {
				p := new(device.Panic)
				require.ErrorAs(t, fault, &p)
				require.ErrorContains(t, p, c.want.Error())
				stack = p.Stack
			}
			require.Contains(t, string(stack), "hostfunc_test.go")
			require.Same(t, fault, d.Record(e, h))
			_, err = d.StreamDone(h)
			require.Same(t, fault, err)
			require.Same(t, fault, d.HostFunc(h, func() {}))
		})
	}
}
