package driver_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/driver"
)

func TestAnErrorReadsAsASentence(t *testing.T) {
	require.EqualError(t, &driver.Error{Device: "cuda:0", Op: "CopyH2D", Name: "CUDA_ERROR_ILLEGAL_ADDRESS", Async: true,
		Err: driver.ErrFault, Hint: "a kernel wrote past its buffer"},
		"cuda:0: CopyH2D found that earlier work had failed: CUDA_ERROR_ILLEGAL_ADDRESS: device fault (a kernel wrote past its buffer)")
	require.EqualError(t, &driver.Error{Device: "cpu", Op: "Alloc"}, "cpu: Alloc")
}

func TestGuardTellsHowItEnded(t *testing.T) {
	bad := errors.New("bad")
	require.NoError(t, driver.Guard(func() {}))

	err := driver.Guard(func() { panic(bad) })
	require.ErrorIs(t, err, bad)
	var panicked *driver.Panic
	require.ErrorAs(t, err, &panicked)
	require.Equal(t, bad, panicked.Value)
	require.Contains(t, string(panicked.Stack), "TestGuardTellsHowItEnded")

	err = driver.Guard(runtime.Goexit)
	var ended *driver.Goexit
	require.ErrorAs(t, err, &ended)
	require.Contains(t, string(ended.Stack), "Goexit")
}

// A panic is told in one line with its place, wherever it is wrapped; %+v has the stack.
func TestAPanicIsOneLineAndItsStackIsAskedFor(t *testing.T) {
	var args driver.Args
	args.AddUint32(1)
	for name, c := range map[string]struct {
		f    func()
		want string
	}{
		"panic":            {func() { panic("bad") }, "panic: bad"},
		"index":            {func() { _ = make([]int, 0)[args.Len()] }, "panic: runtime error: index out of range"},
		"Goexit":           {func() { runtime.Goexit() }, "runtime.Goexit was called"},
		"missing argument": {func() { args.Uint32(3) }, "panic: the kernel asks for argument 3, the launch has 1"},
	} {
		t.Run(name, func(t *testing.T) {
			cause := driver.Guard(c.f)
			for _, err := range []error{cause, &driver.Error{Device: "cuda:0", Op: "HostFunc", Err: cause}} {
				require.ErrorContains(t, err, c.want)
				require.Regexp(t, `\(at .*driver/driver_test\.go:\d+\)$`, err.Error())
				require.NotContains(t, err.Error(), "\n")
				require.Equal(t, err.Error(), fmt.Sprintf("%v", err))
				require.Regexp(t, `\n\ngoroutine \d+ `, fmt.Sprintf("%+v", err))
				require.Equal(t, err.Error(), fmt.Sprintf("%+s", err))
			}
		})
	}
}

func TestArgsAreBounded(t *testing.T) {
	var a driver.Args
	for range driver.MaxArgs {
		a.AddMemory(0, 4, driver.In)
	}
	require.Equal(t, driver.MaxArgs, a.Len())
	require.PanicsWithValue(t, fmt.Sprintf("driver: more than %d kernel arguments", driver.MaxArgs),
		func() { a.AddMemory(0, 4, driver.In) })
	a.Reset()
	require.Zero(t, a.Len())
	require.Panics(t, func() { a.Arg(0) })
}

func TestElementsOfMemoryAreAligned(t *testing.T) {
	var words [4]uint64
	mem := unsafe.Slice((*byte)(unsafe.Pointer(&words)), 32)
	of := func(mem []byte) *driver.Args {
		var a driver.Args
		a.AddMemory(0, int64(len(mem)), driver.In)
		a.Resolve(0, mem)
		return &a
	}
	require.Len(t, driver.Elements[uint32](of(mem[:10]), 0), 2, "what is left over is not the kernel's")
	require.Nil(t, driver.Elements[uint32](of(nil), 0))
	require.Nil(t, driver.Elements[struct{}](of(mem), 0))
	require.PanicsWithValue(t, "driver: argument 0 is not aligned for uint32", func() { driver.Elements[uint32](of(mem[1:9]), 0) })
}

// The first argument that can't be used is named, whatever follows.
func TestTheFirstBadArgumentIsNamed(t *testing.T) {
	var a driver.Args
	first, owner := errors.New("first"), new(int)
	for _, err := range []error{nil, first, errors.New("second"), nil} {
		a.AddMemory(0, 4, driver.In)
		a.OwnedBy(owner, err)
	}
	who, bad, err := a.Owner()
	require.Equal(t, owner, who)
	require.Equal(t, 1, bad)
	require.Equal(t, first, err)
}
