package prefetch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// A copy from memory that isn't pinned blocks the uploader for as long as compute works:
// leaving a range, Quiesce and Close wait for it no longer than CloseTimeout, and what it may
// read and write is freed when it has ended.
func TestACopyFromPageableMemoryKeepsTheLimit(t *testing.T) {
	link := cpu.Link{BytesPerSecond: 1e9}
	for _, per := range []int{1, 3} {
		for _, then := range []string{"Close", "range", "Seek", "Quiesce", "Close with a lease", "range, Close", "Release, Close"} {
			t.Run(fmt.Sprint(per, then), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ld, err := loader.New(canary{n: 64, width: 8}, 1, loader.Options{Workers: 1})
					require.NoError(t, err)
					drv, err := cpu.New(cpu.Options{PinnedBytes: 1, Model: &cpu.Model{ComputeEngines: 1, H2D: link, D2H: link, Pageable: link}})
					require.NoError(t, err)
					tap := devicetest.NewTap(drv)
					dev := device.New(tap)
					compute, err := dev.NewStream(device.StreamOptions{})
					require.NoError(t, err)
					pf, err := prefetch.New(compute, ld, prefetch.Options{BatchesPerCopy: per, CloseTimeout: 100 * time.Millisecond, Memory: prefetch.Memory{Pageable: true}})
					require.NoError(t, err)
					require.Equal(t, "pageable", pf.Plan().HostMemory)
					rd, err := pf.Open(t.Context())
					require.NoError(t, err)
					var held prefetch.Batch
					n := 0
					for ; ; n++ {
						ctx, cancel := context.WithTimeout(t.Context(), time.Second)
						b, err := rd.Next(ctx)
						cancel()
						if errors.Is(err, context.DeadlineExceeded) {
							break // the uploader is in the copy
						}
						require.NoError(t, err)
						if n == 0 {
							require.NoError(t, compute.Launch(cpu.Busy(time.Hour)))
						}
						if (then == "Close with a lease" || then == "Release, Close") && n == 2 {
							held = b
						} else {
							b.Release()
						}
					}
					start := time.Now()
					limited := func(err error) *prefetch.CloseError {
						t.Helper()
						var left *prefetch.CloseError
						require.ErrorAs(t, err, &left)
						require.ErrorContains(t, err, "pageable")
						require.True(t, left.HostSlots)
						require.Equal(t, 100*time.Millisecond, time.Since(start))
						start = time.Now()
						return left
					}
					require.NoError(t, rd.Close())
					switch then {
					case "range":
						ctx, cancel := context.WithCancel(t.Context())
						cancel()
						for _, err := range pf.Batches(ctx) { // which stops the producers
							require.ErrorIs(t, err, context.Canceled)
						}
						start = time.Now()
						_, err := pf.Open(t.Context())
						limited(err)
						require.NoError(t, compute.Synchronize(t.Context()))
						at := n
						for b, err := range pf.Batches(t.Context()) {
							require.NoError(t, err, "once the copy has ended all goes on")
							require.Equal(t, at, b.Position().Batch)
							at++
						}
						require.Equal(t, 64, at)
						require.NoError(t, pf.Close())
					case "range, Close":
						ctx, cancel := context.WithCancel(t.Context())
						cancel()
						for _, err := range pf.Batches(ctx) {
							require.ErrorIs(t, err, context.Canceled)
						}
						start = time.Now()
						err := pf.Close()
						limited(err)
						require.Equal(t, 1, strings.Count(err.Error(), "pageable"), "it is one copy: %v", err)
					case "Release, Close":
						boom := errors.New("boom")
						tap.Arm(devicetest.Rule{Op: devicetest.Record, Err: boom})
						held.Release()
						tap.Disarm()
						err := pf.Close()
						limited(err)
						require.ErrorIs(t, err, boom)
					case "Quiesce":
						ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
						require.ErrorIs(t, pf.Quiesce(ctx), context.DeadlineExceeded)
						cancel()
						require.Equal(t, 30*time.Millisecond, time.Since(start))
						start = time.Now()
						limited(pf.Quiesce(t.Context()))
						limited(pf.Close())
					case "Seek":
						before := pf.State()
						limited(pf.Seek(0, 0))
						require.Equal(t, before, pf.State())
						fallthrough
					default:
						left := limited(pf.Close())
						require.NotZero(t, dev.Usage().HostBuffers)
						if then == "Close with a lease" {
							require.Len(t, left.Leased, 1)
							held.Release()
						}
					}
					require.NoError(t, compute.Synchronize(t.Context()))
					time.Sleep(time.Second) // the copy and the reaper
					require.Equal(t, device.Usage{Streams: 1, Allocations: dev.Usage().Allocations}, dev.Usage())
				})
			})
		}
	}
}

// With a Transform behind copies that block their caller, a wait for both knows which of
// them it is that takes so long: a Transform that does not return is no copy, and a copy that
// outlasts the Transform's grace does not end the wait.
func TestATransformBehindPageableCopies(t *testing.T) {
	link := cpu.Link{BytesPerSecond: 1e9}
	for _, stuck := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			data, goOn := canary{n: 40, width: 8}, make(chan struct{})
			po := prefetch.Options{Depth: 5, CloseTimeout: time.Minute, Memory: prefetch.Memory{Pageable: true}, Transform: passOn(cpuSpin, 0, data)}
			if stuck {
				po.CloseTimeout, po.Transform = 100*time.Millisecond, stuckTransform(data, goOn)
			}
			ld, err := loader.New(data, 2, graceful)
			require.NoError(t, err)
			drv, err := cpu.New(cpu.Options{PinnedBytes: 1, Model: &cpu.Model{ComputeEngines: 2, H2D: link, D2H: link, Pageable: link}})
			require.NoError(t, err)
			tap := devicetest.NewTap(drv)
			dev := device.New(tap)
			compute, err := dev.NewStream(device.StreamOptions{})
			require.NoError(t, err)
			pf, err := prefetch.New(compute, ld, po)
			require.NoError(t, err)
			rd, err := pf.Open(t.Context())
			require.NoError(t, err)
			var held prefetch.Batch
			for n := range 4 {
				b, err := rd.Next(t.Context())
				require.NoError(t, err)
				if n == 0 && !stuck {
					require.NoError(t, compute.Launch(cpu.Busy(10*time.Second)))
				}
				if held = b; n < 3 {
					b.Release()
				}
			}
			time.Sleep(time.Second / 2)
			start := time.Now()
			err = pf.Quiesce(t.Context())
			if stuck {
				require.ErrorAs(t, err, new(*loader.StuckError))
				require.Equal(t, time.Second, time.Since(start))
				close(goOn)
				held.Release()
			} else {
				require.NoError(t, err)
				require.Greater(t, time.Since(start), time.Second)
				held.Release() // the uploader has a slot again
				calls := tap.Calls()
				time.Sleep(time.Minute)
				require.Equal(t, calls, tap.Calls())
			}
			require.NoError(t, rd.Close())
			require.NoError(t, pf.Close())
			require.NoError(t, compute.Close())
			require.NoError(t, dev.Close())
		})
	}
}
