//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cuda/latch"
)

// faultIn names, in the environment, what a process of its own is to do: a fault
// ends the device for the process that has it.
const faultIn = "LEAT_TEST_FAULT"

func TestMain(m *testing.M) {
	var child func() error
	switch os.Getenv(faultIn) {
	case "":
		os.Exit(m.Run())
	case "later":
		child = faultFoundLater
	case "sync":
		child = faultFoundAtTheCall
	case "open":
		child = func() error { _, err := Open(Options{}); fmt.Println(err); return nil }
	case "panic":
		child = func() error { return hostFunctionFails(func() { panic("in a host function") }) }
	case "goexit":
		child = func() error { return hostFunctionFails(runtime.Goexit) }
	}
	if err := child(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

func TestGPUFault(t *testing.T) {
	require.NoError(t, openOrSkip(t, Options{}).Close())
	for how, environment := range map[string]string{
		"later": "LEAT_SYNC=0", "sync": "LEAT_SYNC=1", "panic": "LEAT_SYNC=0", "goexit": "LEAT_SYNC=0",
	} {
		t.Run(how, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0])
			cmd.Env = append(os.Environ(), faultIn+"="+how, environment)
			text, err := cmd.CombinedOutput()
			t.Logf("%s", text)
			require.NoError(t, ctx.Err(), "it hung")
			require.NoError(t, err)
		})
	}
}

func faultFoundLater() error {
	dev, s, e, err := faultObjects()
	if err != nil {
		return err
	}
	if err := errors.Join(latch.Fault(s), s.Record(e), s.HostFunc(func() {})); err != nil {
		return fmt.Errorf("the submitting calls reported it: %w", err)
	}
	fault := e.Synchronize(context.Background())
	fmt.Println(fault)
	var found *device.Error
	if !errors.As(fault, &found) || found.Err != device.ErrFault || !found.Async || found.Op != "SynchronizeEvent" {
		return fmt.Errorf("the fault is %+v", found)
	}
	return sameEverywhere(dev, s, e, fault)
}

func faultFoundAtTheCall() error {
	dev, s, e, err := faultObjects()
	if err != nil {
		return err
	}
	fault := latch.Fault(s)
	fmt.Println(fault)
	var found *device.Error
	if !errors.As(fault, &found) || found.Err != device.ErrFault || found.Async || found.Op != "Launch" {
		return fmt.Errorf("the fault is %+v", found)
	}
	return sameEverywhere(dev, s, e, fault)
}

// hostFunctionFails runs f on the driver's thread, which must end neither that nor the
// process.
func hostFunctionFails(f func()) error {
	dev, s, e, err := faultObjects()
	if err != nil {
		return err
	}
	if err := errors.Join(s.HostFunc(f), s.Record(e)); err != nil {
		return fmt.Errorf("the submitting calls reported it: %w", err)
	}
	fault := e.Synchronize(context.Background())
	fmt.Println(fault)
	var found *device.Error
	if !errors.As(fault, &found) || !errors.Is(fault, device.ErrFault) || found.Op != "HostFunc" {
		return fmt.Errorf("the fault is %+v", found)
	}
	return sameEverywhere(dev, s, e, fault)
}

func faultObjects() (*device.Device, *device.Stream, *device.Event, error) {
	dev, err := Open(Options{})
	if err != nil {
		return nil, nil, nil, err
	}
	s, err := dev.NewStream(device.StreamOptions{Name: "faulty"})
	if err != nil {
		return nil, nil, nil, err
	}
	e, err := dev.NewEvent(device.EventOptions{BlockingSync: true})
	return dev, s, e, err
}

// sameEverywhere checks that every later call returns the fault at once, from any
// goroutine, and that Close returns.
func sameEverywhere(dev *device.Device, s *device.Stream, e *device.Event, fault error) error {
	var callers sync.WaitGroup
	failed := make(chan error, 64)
	for range cap(failed) {
		callers.Go(func() {
			_, alloc := dev.Alloc(1)
			_, done := e.Done()
			for op, err := range map[string]error{
				"Record": s.Record(e), "Alloc": alloc, "Done": done,
				"stream": s.Synchronize(context.Background()), "device": dev.Synchronize(context.Background()),
			} {
				if err != fault {
					failed <- fmt.Errorf("%s: %v", op, err)
					return
				}
			}
		})
	}
	callers.Wait()
	close(failed)
	for err := range failed {
		return err
	}
	return dev.Close()
}
