package prefetch_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A call that frees something fails, each in turn: Close says so, and frees all the
// rest.
func TestAFailingFreeIsReportedAndTheRestIsFreed(t *testing.T) {
	boom := errors.New("boom")
	for _, s := range shapes {
		for _, op := range []devicetest.Op{devicetest.FreeEvent, devicetest.Free, devicetest.FreeHost, devicetest.FreeStream} {
			t.Run(fmt.Sprintf("%s/%v", s.name, op), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					for nth := int64(1); ; nth++ {
						data := canary{n: 24, width: 8}
						r := newRig(t, data, adversarial(time.Millisecond), 2, loader.Options{Workers: 2}, s.options(data))
						n, err := r.rest(s.mapped, 0)
						require.NoError(t, err)
						require.Equal(t, 12, n)
						armed := r.tap.Arm(devicetest.Rule{Op: op, Nth: nth, Err: boom})
						err = r.pf.Close()
						r.tap.Disarm()
						if armed.Fired() == 0 {
							require.NoError(t, err)
							require.Greater(t, nth, int64(1))
							return
						}
						require.ErrorIs(t, err, boom)
						left := r.dev.Usage()
						one := map[devicetest.Op]int64{
							devicetest.FreeEvent: left.Events - r.before.Events, devicetest.Free: left.Buffers - r.before.Buffers,
							devicetest.FreeHost: left.HostBuffers - r.before.HostBuffers, devicetest.FreeStream: left.Streams - r.before.Streams,
						}
						for of, n := range one {
							want := int64(0)
							if of == op {
								want = 1
							}
							require.Equal(t, want, n, "%v", of)
						}
						require.NoError(t, r.pf.Close(), "once is enough")
					}
				})
			})
		}
	}
}

// Each allocation that the first Map makes fails in turn: the range says so, nothing
// is left of it, and the next goes through.
func TestAFailingAllocationOfMapLeavesNothing(t *testing.T) {
	for _, op := range []devicetest.Op{devicetest.AllocHost, devicetest.Alloc, devicetest.NewEvent, devicetest.NewStream} {
		t.Run(op.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, canary{n: 24, width: 8}, adversarial(time.Millisecond), 2, loader.Options{Workers: 2}, prefetch.Options{})
				before := r.dev.Usage()
				for nth := int64(1); ; nth++ {
					armed := r.tap.Arm(devicetest.Rule{Op: op, Nth: nth, Err: device.ErrOutOfMemory})
					n, err := r.rest(true, 0)
					r.tap.Disarm()
					if armed.Fired() == 0 {
						require.NoError(t, err)
						require.Equal(t, 12, n)
						break
					}
					require.ErrorIs(t, err, device.ErrOutOfMemory)
					require.Zero(t, n)
					after := r.dev.Usage()
					after.Allocations = before.Allocations
					require.Equal(t, before, after, "nth=%d", nth)
				}
				r.close()
			})
		})
	}
}

func TestACloneThatFailsLeavesNothing(t *testing.T) {
	boom := errors.New("boom")
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 24, width: 8}, adversarial(time.Millisecond), 2, loader.Options{Workers: 2},
			prefetch.Options{Streams: prefetch.Streams{Compute: 2}})
		before := r.dev.Usage()
		for b, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err)
			for _, rule := range []devicetest.Rule{{Op: devicetest.Alloc}, {Op: devicetest.CopyD2D, Nth: 1}, {Op: devicetest.CopyD2D, Nth: 2}} {
				rule.Err = boom
				r.tap.Arm(rule)
				_, err := b.Clone()
				require.ErrorIs(t, err, boom)
				r.tap.Disarm()
			}
		}
		after := r.dev.Usage()
		after.Allocations = before.Allocations
		require.Equal(t, before, after)
		r.close()
	})
}
