package meter_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/device/meter"
)

// A meter that can't be made leaves nothing behind.
func TestAMeterThatCannotBeMade(t *testing.T) {
	for _, rule := range []devicetest.Rule{
		{Op: devicetest.AllocHost, Err: errPush},
		{Op: devicetest.NewEvent, Nth: 1, Err: errPush},
		{Op: devicetest.NewEvent, Nth: 17, Err: errPush},
	} {
		g := newGauges(t)
		before := g.dev.Usage()
		g.tap.Arm(rule)
		_, err := meter.New[float32](g.dev)
		require.ErrorIs(t, err, errPush)
		after := g.dev.Usage()
		after.Allocations = before.Allocations
		require.Equal(t, before, after)
		g.tap.Disarm()
		g.close()
	}
}

// An error of asking for values is returned, and loses none of them.
func TestAnErrorOfAskingLosesNoValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGauges(t)
		for v := int64(1); v <= 16; v++ {
			g.mustPush(g.fast, v)
		}
		time.Sleep(time.Millisecond)
		g.tap.Arm(devicetest.Rule{Op: devicetest.EventDone, Err: errPush})
		_, _, err := g.meter.Latest()
		require.ErrorIs(t, err, errPush)
		require.ErrorIs(t, g.push(g.fast, 17), errPush)
		g.tap.Disarm()
		g.mustPush(g.fast, 18) // finds room by itself
		time.Sleep(time.Millisecond)
		g.shows(18)
		g.close()
	})
}

// A value costs no question when it is pushed, and one late stream costs one.
func TestALateStreamIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGauges(t)
		require.NoError(t, g.slow.Launch(cpu.Busy(time.Second)))
		asked := g.tap.Arm(devicetest.Rule{Op: devicetest.EventDone})
		for v := int64(1); v <= 12; v++ {
			g.mustPush(g.slow, v)
		}
		require.Zero(t, asked.Matched())
		g.shows(0)
		require.EqualValues(t, 1, asked.Matched())
		g.close()
	})
}

// The first Push fails, and what its copy leaves is no value.
func TestNothingIsShownOfAFirstPushThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGauges(t)
		g.tap.Arm(devicetest.Rule{Op: devicetest.Record, Nth: 1, Err: errPush})
		require.ErrorIs(t, g.push(g.fast, 100), errPush)
		time.Sleep(time.Millisecond)
		g.shows(0)
		g.mustPush(g.fast, 1)
		time.Sleep(time.Millisecond)
		g.shows(1)
		g.close()
	})
}

// While a stream of failed Pushes is busy its copies overwrite no other's value.
func TestAFailedPushOverwritesNoValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGauges(t)
		require.NoError(t, g.slow.Launch(cpu.Busy(time.Second)))
		g.tap.Arm(devicetest.Rule{Op: devicetest.Record, Stream: "slow", Err: errPush})
		for range 8 {
			require.ErrorIs(t, g.push(g.slow, 100), errPush)
		}
		for v := int64(1); v < 40; v++ {
			g.mustPush(g.fast, v)
			time.Sleep(time.Millisecond)
			g.shows(v)
		}
		require.NoError(t, g.slow.Synchronize(t.Context()))
		g.shows(39)
		g.close()
	})
}

// failing is a device whose copies back are made and return an error.
type failing struct {
	driver.Device
	err error
}

func (f *failing) CopyD2H(s driver.Stream, dst []byte, src driver.Address) error {
	if err := f.Device.CopyD2H(s, dst, src); err != nil {
		return err
	}
	return f.err
}

// Whether a copy was made shows in its error; in doubt its place is not used again
// before the stream has got there.
func TestACopyThatFailsMayHaveBeenMade(t *testing.T) {
	async, other := &driver.Error{Op: "CopyD2H", Async: true, Err: driver.ErrInvalid}, &driver.Error{Op: "CopyD2H", Err: driver.ErrOutOfMemory}
	for i, failure := range []*driver.Error{async, async, other, other} {
		pushes := 20 + i%2 // whichever of the places is shown at the end
		synctest.Test(t, func(t *testing.T) {
			drv, err := cpu.New(cpu.Options{Model: &cpu.Model{CopyEngines: 2, ComputeEngines: 2}, Adversary: &cpu.Adversary{LateRead: true}})
			require.NoError(t, err)
			f := &failing{Device: drv}
			tap := devicetest.NewTap(f)
			dev := device.New(tap)
			var streams [2]*device.Stream
			for i, name := range []string{"slow", "fast"} {
				streams[i], err = dev.NewStream(device.StreamOptions{Name: name})
				require.NoError(t, err)
			}
			memory, err := dev.Alloc(2)
			require.NoError(t, err)
			require.NoError(t, streams[1].CopyH2D(memory.View(), []byte{1, 100}))
			require.NoError(t, streams[1].Synchronize(t.Context()))
			m, err := meter.New[uint8](dev)
			require.NoError(t, err)

			require.NoError(t, streams[0].Launch(cpu.Busy(time.Second)))
			tap.Arm(devicetest.Rule{Op: devicetest.Record, Stream: "slow", Err: errPush})
			f.err = failure
			for range 4 {
				require.ErrorIs(t, m.Push(streams[0], memory.View().Slice(1, 1)), failure.Err)
			}
			f.err = nil
			for range pushes {
				require.NoError(t, m.Push(streams[1], memory.View().Slice(0, 1)))
				time.Sleep(time.Millisecond)
				_, _, err = m.Latest()
				require.NoError(t, err)
			}
			require.NoError(t, streams[0].Synchronize(t.Context()))
			value, _, err := m.Latest()
			require.NoError(t, err)
			require.EqualValues(t, 1, value)
			require.NoError(t, m.Close())
			require.NoError(t, memory.Close())
			require.NoError(t, streams[0].Close())
			require.NoError(t, streams[1].Close())
			require.NoError(t, dev.Close())
		})
	}
}

// Close waits for every stream, for one that is closed too, and for values whose Push
// failed.
func TestAMetersCloseWaitsForEveryStream(t *testing.T) {
	for name, push := range map[string]func(g *gauges){
		"one after the other": func(g *gauges) { g.mustPush(g.fast, 1); g.mustPush(g.slow, 2) },
		"closed meanwhile": func(g *gauges) {
			g.tap.Arm(devicetest.Rule{Op: devicetest.Record, Event: "arrived", Nth: 1, Err: errPush})
			require.ErrorIs(g.t, g.push(g.slow, 1), errPush)
			require.NoError(g.t, g.slow.Close())
		},
		"failed": func(g *gauges) {
			g.tap.Arm(devicetest.Rule{Op: devicetest.Record, Event: "arrived", Err: errPush})
			require.ErrorIs(g.t, g.push(g.fast, 1), errPush)
			require.ErrorIs(g.t, g.push(g.slow, 1), errPush)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGauges(t)
				require.NoError(t, g.slow.Launch(cpu.Busy(time.Second)))
				push(g)
				start := time.Now()
				g.close()
				require.Equal(t, time.Second, time.Since(start).Truncate(time.Millisecond))
			})
		})
	}
}

// Where the end of a copy can't be waited for, its memory is not freed, then or later.
func TestCloseFreesNothingThatMayBeInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGauges(t)
		g.tap.Arm(devicetest.Rule{Op: devicetest.Record, Nth: 1, Err: errPush})
		require.ErrorIs(t, g.push(g.slow, 1), errPush)
		g.tap.Arm(devicetest.Rule{Op: devicetest.SynchronizeStream, Nth: 1, Err: errPush})
		err := g.meter.Close()
		require.ErrorIs(t, err, errPush)
		require.ErrorContains(t, err, "nothing was freed")
		synctest.Wait()
		require.EqualValues(t, 1, g.dev.Usage().HostBuffers)
	})
}

// Each thing that can't be freed is told, but a device that has failed says so once.
func TestClosesThatFail(t *testing.T) {
	for op, n := range map[devicetest.Op]int{devicetest.FreeEvent: 17, devicetest.FreeHost: 1} {
		g := newGauges(t)
		g.tap.Arm(devicetest.Rule{Op: op, Err: errPush})
		err := g.meter.Close()
		require.ErrorIs(t, err, errPush)
		require.Equal(t, n, strings.Count(err.Error(), errPush.Error()))
		require.NoError(t, g.meter.Close())
	}
	g := newGauges(t)
	g.tap.Arm(devicetest.Rule{Op: devicetest.FreeEvent, Err: device.ErrFault})
	err := g.meter.Close()
	require.ErrorIs(t, err, device.ErrFault)
	require.NotContains(t, err.Error(), "\n")
}
