package cpu_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
)

var errUser = errors.New("the user's own")

func kernel(name string, f func()) *device.Launch {
	return &device.Launch{Kernel: &device.Kernel{Name: name, Go: func(*device.Args) { f() }}, Grid: [3]uint32{1}, Block: [3]uint32{1}}
}

// both runs a test on a plain and on a modelled device.
func both(t *testing.T, test func(r *rig)) {
	for name, o := range map[string]cpu.Options{"plain": {}, "modelled": {Model: slowModel()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(open(t, o)) })
		})
	}
}

func TestPanicOfAKernel(t *testing.T) {
	both(t, func(r *rig) {
		s, e, recorded := r.stream("s"), r.event("e"), make(chan struct{})
		r.do(s.Launch(kernel("bad", func() { <-recorded; panic(errUser) })), s.Record(e))
		close(recorded)
		err := e.Synchronize(background)
		require.ErrorIs(r.t, err, device.ErrFault)
		require.ErrorIs(r.t, err, errUser)
		require.ErrorContains(r.t, err, `kernel "bad" on stream "s"`)
		var p *cpu.Panic
		require.ErrorAs(r.t, err, &p)
		require.Contains(r.t, string(p.Stack), "TestPanicOfAKernel")
		require.Regexp(r.t, `panic: .* \(at .*cpu/fault_test\.go:\d+\)`, err.Error())
		require.NotContains(r.t, fmt.Sprintf("%v", err), "\n")
		require.Contains(r.t, fmt.Sprintf("%+v", err), string(p.Stack))
		r.close()
	})
}

func TestPanicOfAHostFunction(t *testing.T) {
	both(t, func(r *rig) {
		s := r.stream("s")
		r.do(s.HostFunc(func() { panic("in a host function") }))
		require.ErrorIs(r.t, s.Synchronize(background), device.ErrFault)
		r.close()
	})
}

// t.FailNow in a host function ends its goroutine: nobody may hang.
func TestGoexit(t *testing.T) {
	both(t, func(r *rig) {
		s, other := r.stream("s"), r.stream("other")
		r.do(other.HostFunc(func() {}), s.HostFunc(runtime.Goexit))
		err := s.Synchronize(background)
		require.ErrorIs(r.t, err, device.ErrFault)
		var exit *cpu.Goexit
		require.ErrorAs(r.t, err, &exit)
		require.Contains(r.t, string(exit.Stack), "runtime.Goexit")
		r.close()
	})
	both(t, func(r *rig) {
		s := r.stream("s")
		r.do(s.Launch(kernel("exits", runtime.Goexit)))
		err := s.Synchronize(background)
		require.ErrorIs(r.t, err, device.ErrFault)
		require.ErrorContains(r.t, err, "exits")
		require.Regexp(r.t, `runtime\.Goexit was called`, err.Error())
		require.NotContains(r.t, err.Error(), "\n")
		var exit *cpu.Goexit
		require.ErrorAs(r.t, err, &exit)
		require.Contains(r.t, string(exit.Stack), "runtime.Goexit")
		r.close()
	})
}

// Goroutines that wait when the device faults get the fault; work on other engines
// that was running ends without anybody hearing of it.
func TestFaultWakesEverybody(t *testing.T) {
	both(t, func(r *rig) {
		s, other, e := r.stream("s"), r.stream("other"), r.event("e")
		latch := make(chan struct{})
		r.do(other.HostFunc(func() { <-latch }), other.Record(e))
		results := make(chan error)
		go func() { results <- e.Synchronize(background) }()
		go func() { results <- other.Synchronize(background) }()
		go func() { results <- r.Synchronize(background) }()
		synctest.Wait()
		r.do(s.Launch(kernel("bad", func() { panic("bad") })))
		for range 3 {
			require.ErrorIs(r.t, <-results, device.ErrFault)
		}
		require.ErrorIs(r.t, other.Record(e), device.ErrFault)
		close(latch)
		synctest.Wait()
		r.close()
	})
}

func TestCloseWaitsForWhatRuns(t *testing.T) {
	both(t, func(r *rig) {
		s := r.stream("s")
		latch := make(chan struct{})
		var ran []string
		r.do(s.HostFunc(func() { <-latch; ran = append(ran, "running") }))
		r.do(s.HostFunc(func() { ran = append(ran, "queued") }))
		synctest.Wait()
		waiting := make(chan error)
		go func() { waiting <- s.Synchronize(background) }()
		synctest.Wait()
		closed := make(chan error)
		go func() { closed <- r.Close() }()
		require.ErrorIs(r.t, <-waiting, device.ErrClosed)
		synctest.Wait()
		select {
		case err := <-closed:
			r.t.Fatal("Close came back while a host function ran:", err)
		default:
		}
		close(latch)
		var leak *cpu.LeakError
		require.ErrorAs(r.t, <-closed, &leak)
		require.Equal(r.t, cpu.Live{Streams: 1, Buffers: 1, Bytes: 256, HostBuffers: 1, HostBytes: 256}, leak.Live)
		require.ErrorContains(r.t, leak, "closed with 1 stream, 1 device buffer (256 bytes)")
		require.Equal(r.t, []string{"running"}, ran)
		require.Len(r.t, r.host, 256)
		r.host[0] = 1 // host memory is still there
		require.NoError(r.t, r.Close())
	})
}

func TestCancelledWaitLeavesNothingBehind(t *testing.T) {
	both(t, func(r *rig) {
		s, e := r.stream("s"), r.event("e")
		latch := make(chan struct{})
		r.do(s.HostFunc(func() { <-latch }), s.Record(e))
		for range 1000 {
			ctx, cancel := context.WithCancelCause(background)
			cancel(errUser)
			require.ErrorIs(r.t, e.Synchronize(ctx), errUser)
		}
		close(latch)
		r.do(s.Synchronize(background))
		r.close()
	})
}

// A second Close at the same time returns when the first does, and what it does: whoever comes
// back from either may take down what the device's work uses.
func TestEveryCloseWaits(t *testing.T) {
	both(t, func(r *rig) {
		s := r.stream("s")
		ended := false
		r.do(s.HostFunc(func() { time.Sleep(1000 * ms); ended = true }))
		r.do(s.Close())
		synctest.Wait()
		errs := make(chan error, 3)
		for range cap(errs) {
			go func() {
				err := r.Close()
				if !ended {
					err = errors.Join(err, errors.New("it returned before the work's end"))
				}
				errs <- err
			}()
		}
		var leaks int
		for range cap(errs) {
			if err := <-errs; err != nil {
				var leak *cpu.LeakError
				require.ErrorAs(r.t, err, &leak)
				require.NotContains(r.t, err.Error(), "before the work's end")
				leaks++
			}
		}
		require.Equal(r.t, cap(errs), leaks, "those that waited for one report what it does")
		require.NoError(r.t, r.Close())
	})
}
