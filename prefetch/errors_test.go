package prefetch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// userError is an error type of somebody else's.
type userError struct{ sample int }

func (e *userError) Error() string { return fmt.Sprintf("sample %d is corrupt", e.sample) }

// failing reads all samples but those.
func failing(bad ...int) func(context.Context, int) error {
	return func(_ context.Context, i int) error {
		if slices.Contains(bad, i) {
			return &userError{i}
		}
		return nil
	}
}

func TestAnErrorComesBehindTheBatchesBeforeIt(t *testing.T) {
	for _, bad := range []int{0, 49, 50, 70, 99} {
		for _, depth := range []int{1, 4} {
			t.Run(fmt.Sprintf("sample=%d/depth=%d", bad, depth), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					data := canary{n: 100, width: 4, read: func(_ context.Context, i int) error {
						if i == bad {
							return &userError{i}
						}
						return nil
					}}
					r := newRig(t, data, adversarial(time.Millisecond), 10, loader.Options{Workers: 3}, prefetch.Options{Depth: depth})
					for range 2 { // ranging again comes to the same sample again
						var all []reading
						var errs []error
						for b, err := range r.pf.Batches(t.Context()) {
							if err != nil {
								errs = append(errs, err)
								continue
							}
							all = append(all, r.read(b, 0))
						}
						require.Len(t, errs, 1)
						var mine *userError
						require.ErrorAs(t, errs[0], &mine)
						require.Equal(t, bad, mine.sample)
						var where *loader.Error
						require.ErrorAs(t, errs[0], &where)
						require.Equal(t, bad/10, where.Batch)
						require.EqualValues(t, bad, where.Sample)
						require.NoError(t, r.dev.Synchronize(t.Context()))
						for _, got := range all {
							require.NoError(t, r.verify(got))
						}
						require.EqualValues(t, bad/10*10, r.pf.State().Position)
					}
					r.close()
				})
			})
		}
	}
}

func TestEOFOfASampleIsAnErrorAndAPanicHasItsStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := canary{n: 20, width: 4, read: func(_ context.Context, i int) error {
			switch i {
			case 7:
				return io.EOF
			case 3:
				panic("no such sample")
			}
			return nil
		}}
		r := newRig(t, data, cpu.Options{}, 2, loader.Options{Workers: 2}, prefetch.Options{})
		err := r.epochs(1, 0)
		var p *loader.PanicError
		require.ErrorAs(t, err, &p)
		require.Contains(t, string(p.Stack), "errors_test.go")
		require.NoError(t, r.pf.Seek(0, 4))
		err = r.epochs(1, 0)
		require.ErrorIs(t, err, io.EOF)
		r.close()
	})
}

func TestAProducerThatIgnoresItsContextCannotHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := canary{n: 20, width: 4, read: func(_ context.Context, i int) error {
			if i == 7 {
				time.Sleep(time.Hour)
			}
			return nil
		}}
		r := newRig(t, data, cpu.Options{}, 2, loader.Options{Workers: 2, GracePeriod: time.Second}, prefetch.Options{})
		rd, err := r.pf.Open(t.Context())
		require.NoError(t, err)
		for range 3 {
			b, err := rd.Next(t.Context())
			require.NoError(t, err)
			b.Release()
		}
		synctest.Wait()
		start := time.Now()
		err = r.pf.Close()
		require.LessOrEqual(t, time.Since(start), time.Second)
		var stuck *loader.StuckError
		require.ErrorAs(t, err, &stuck)
		require.EqualValues(t, 7, stuck.Sample)
		require.Equal(t, 1, r.pf.Stats().Pool.Quarantined)
		require.Equal(t, r.before.HostBuffers+1, r.dev.Usage().HostBuffers, "its slot keeps its memory")
		time.Sleep(2 * time.Hour) // the sample's goroutine ends at last
	})
}

func TestAStallIsReportedWithItsSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := canary{n: 100, width: 4, read: func(ctx context.Context, i int) error {
			if i == 37 {
				<-ctx.Done()
			}
			return nil
		}}
		r := newRig(t, data, cpu.Options{}, 2, loader.Options{Workers: 2, StallTimeout: time.Second}, prefetch.Options{})
		err := r.epochs(1, 0)
		var stall *loader.StallError
		require.ErrorAs(t, err, &stall)
		require.Contains(t, err.Error(), "37")
		r.close()
	})
}

// Each driver call fails in turn, at the first, a middle and the last batch: one
// clear error, nothing hangs, nothing leaks, and the pipeline goes on after it.
func TestAnyFailingCallIsOneClearError(t *testing.T) {
	boom := errors.New("boom")
	calls := []struct {
		op    devicetest.Op
		event string
	}{
		{devicetest.CopyH2D, ""}, {devicetest.Record, "copied"}, {devicetest.Record, "ready"}, {devicetest.Record, "consumed"},
		{devicetest.Wait, "ready"}, {devicetest.Wait, "consumed"}, {devicetest.Record, "started"}, {devicetest.Record, "reached"},
		{devicetest.SynchronizeEvent, "copied"}, {devicetest.EventDone, "copied"},
	}
	const batches = 12
	for _, c := range calls {
		for _, nth := range []int64{1, 6, batches} {
			t.Run(fmt.Sprintf("%v%s/nth=%d", c.op, c.event, nth), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, canary{n: 2 * batches, width: 8}, adversarial(time.Millisecond),
						2, loader.Options{Shuffle: true, Workers: 2}, prefetch.Options{Depth: 2, Timing: true})
					armed := r.tap.Arm(devicetest.Rule{Op: c.op, Event: c.event, Nth: nth, Err: boom})
					err := r.epochs(1, 2*time.Millisecond)
					if armed.Fired() == 0 {
						require.NoError(t, err)
						require.Less(t, armed.Matched(), nth, "there was no such call")
					}
					for b, err := range r.pf.Batches(t.Context()) { // what the last range couldn't report
						if err != nil {
							require.ErrorIs(t, err, boom)
							break
						}
						_ = b
					}
					r.tap.Disarm()
					require.NoError(t, r.dev.Synchronize(t.Context()))
					require.NoError(t, r.pf.Seek(0, 0))
					require.NoError(t, r.epochs(1, 0))
					r.close()
				})
			})
		}
	}
}

// Each allocating call fails in turn: New says so and leaves nothing.
func TestAFailingAllocationLeavesNothing(t *testing.T) {
	ld, err := loader.New(canary{n: 10, width: 4}, 2, plain)
	require.NoError(t, err)
	for _, op := range []devicetest.Op{devicetest.AllocHost, devicetest.Alloc, devicetest.NewEvent, devicetest.NewStream} {
		for nth := int64(1); ; nth++ {
			drv, err := cpu.New(cpu.Options{})
			require.NoError(t, err)
			tap := devicetest.NewTap(drv)
			dev := device.New(tap)
			compute, err := dev.NewStream(device.StreamOptions{})
			require.NoError(t, err)
			before := dev.Usage()
			armed := tap.Arm(devicetest.Rule{Op: op, Nth: nth, Err: device.ErrOutOfMemory})
			pf, err := prefetch.New(compute, ld, prefetch.Options{Timing: true})
			if armed.Fired() == 0 {
				require.NoError(t, err)
				require.Greater(t, nth, int64(1))
				require.NoError(t, pf.Close())
				break
			}
			if err == nil && (op == devicetest.AllocHost || op == devicetest.NewEvent) { // smaller pieces serve
				require.NoError(t, pf.Close())
			} else {
				require.ErrorIs(t, err, device.ErrOutOfMemory)
			}
			after := dev.Usage()
			after.Allocations = before.Allocations
			require.Equal(t, before, after, "%v %d", op, nth)
		}
	}
}

func TestADeviceFaultIsReportedAsItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 40, width: 8}, adversarial(time.Millisecond), 2, loader.Options{Workers: 2}, prefetch.Options{})
		bad := &device.Kernel{Name: "bad", Go: func(*device.Args) { panic("out of range") }}
		var failed error
		for b, err := range r.pf.Batches(t.Context()) {
			if err != nil {
				failed = err
				break
			}
			err := r.compute.Launch(&device.Launch{Kernel: bad, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}})
			if err != nil {
				failed = err
				break
			}
			time.Sleep(time.Millisecond)
			_ = b
		}
		require.ErrorIs(t, failed, device.ErrFault)
		start := time.Now()
		require.ErrorIs(t, r.pf.Close(), device.ErrFault)
		require.LessOrEqual(t, time.Since(start), 5*time.Second)
	})
}

func TestEveryBadOptionAtOnce(t *testing.T) {
	ld, err := loader.New(canary{n: 10, width: 4}, 2, plain)
	require.NoError(t, err)
	_, err = prefetch.NewHost(ld, prefetch.Options{Depth: -2, CloseTimeout: -7, Streams: prefetch.Streams{Max: -4}, Memory: prefetch.Memory{HostSlots: -1, MinHostSlots: -3, PinnedBytes: -5, DeviceBytes: -6}})
	for _, field := range []string{"Depth is -2", "HostSlots is -1", "MinHostSlots is -3", "Streams.Max is -4",
		"PinnedBytes is -5", "DeviceBytes is -6", "CloseTimeout is -7ns"} {
		require.ErrorContains(t, err, field)
	}
	_, err = prefetch.New(nil, ld, prefetch.Options{})
	require.ErrorContains(t, err, "NewHost")
	_, err = prefetch.NewHost(nil, prefetch.Options{})
	require.ErrorContains(t, err, "loader")
	const far = min(1<<40, math.MaxInt) // whose bookkeeping alone would exhaust memory
	_, err = prefetch.NewHost(ld, prefetch.Options{Depth: far, BatchesPerCopy: far, Streams: prefetch.Streams{Max: far, Compute: far}, Memory: prefetch.Memory{HostSlots: far}})
	for _, field := range []string{"Depth", "HostSlots", "Streams.Max", "BatchesPerCopy", "Streams.Compute"} {
		require.ErrorContains(t, err, fmt.Sprintf("%s is %d", field, far))
	}
}
