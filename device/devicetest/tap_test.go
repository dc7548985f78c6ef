package devicetest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/device/driver"
)

func tapped(t *testing.T, o cpu.Options) (*device.Device, *devicetest.Tap) {
	d, err := cpu.New(o)
	require.NoError(t, err)
	tap := devicetest.NewTap(d)
	return device.New(tap), tap
}

// A Tap with no rules is a driver like the one beneath it.
func TestTapConforms(t *testing.T) {
	devicetest.Run(t, func(t *testing.T) *device.Device {
		dev, _ := tapped(t, cpu.Options{})
		return dev
	}, devicetest.Options{Peer: func(t *testing.T) *device.Device {
		dev, _ := tapped(t, cpu.Options{Index: 1})
		return dev
	}})
}

// So is one with a rule that never fires.
func TestArmedTapConforms(t *testing.T) {
	devicetest.Run(t, func(t *testing.T) *device.Device {
		dev, tap := tapped(t, cpu.Options{Model: &cpu.Model{}})
		for _, op := range devicetest.Ops() {
			tap.Arm(devicetest.Rule{Op: op, Nth: 1 << 40, Swallow: true})
		}
		tap.Arm(devicetest.Rule{Op: devicetest.Wait, Event: "no such event", Swallow: true})
		return dev
	}, devicetest.Options{Bubble: true, Peer: func(t *testing.T) *device.Device {
		dev, err := cpu.Open(cpu.Options{Index: 1, Model: &cpu.Model{}}) // one that is no Tap
		require.NoError(t, err)
		return dev
	}})
}

// handover writes 1 and then 2 on one stream, slowly, and reads on another, which
// waits for the event of the second write.
func handover(t *testing.T, dev *device.Device) (read byte, err error) {
	ctx := context.Background()
	writer, err := dev.NewStream(device.StreamOptions{Name: "writer"})
	require.NoError(t, err)
	reader, err := dev.NewStream(device.StreamOptions{Name: "reader"})
	require.NoError(t, err)
	first, err := dev.NewEvent(device.EventOptions{Name: "first"})
	require.NoError(t, err)
	second, err := dev.NewEvent(device.EventOptions{Name: "second"})
	require.NoError(t, err)
	b, err := dev.Alloc(1)
	require.NoError(t, err)
	h, err := dev.AllocHost(1, device.HostOptions{})
	require.NoError(t, err)
	errs := []error{
		writer.Memset(b.View(), 1),
		writer.Record(first),
		reader.Wait(first),
		reader.Launch(cpu.Busy(2 * time.Millisecond)),
		writer.Launch(cpu.Busy(5 * time.Millisecond)),
		writer.Memset(b.View(), 2),
		writer.Record(second),
		reader.Wait(second),
		reader.CopyD2H(h.Bytes(), b.View()),
		dev.Synchronize(ctx),
	}
	read = h.Bytes()[0]
	require.NoError(t, errors.Join(writer.Close(), reader.Close(), first.Close(), second.Close(), b.Close(), h.Close(), dev.Close()))
	return read, errors.Join(errs...)
}

var twoKernels = cpu.Options{Model: &cpu.Model{ComputeEngines: 2}}

func TestTapCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev, tap := tapped(t, twoKernels)
		read, err := handover(t, dev)
		require.NoError(t, err)
		require.Equal(t, byte(2), read)
		require.Equal(t, map[devicetest.Op]int64{
			devicetest.NewStream: 2, devicetest.NewEvent: 2, devicetest.Alloc: 1, devicetest.AllocHost: 1,
			devicetest.Memset: 2, devicetest.Record: 2, devicetest.Wait: 2, devicetest.Launch: 2,
			devicetest.CopyD2H: 1, devicetest.Synchronize: 1, devicetest.FreeStream: 2, devicetest.FreeEvent: 2,
			devicetest.Free: 1, devicetest.FreeHost: 1, devicetest.Close: 1,
		}, tap.Calls())
		require.EqualValues(t, 2, tap.Count(devicetest.Wait))
	})
}

func TestTapSwallows(t *testing.T) {
	for name, c := range map[string]struct {
		rule devicetest.Rule
		read byte
	}{
		"the wait that matters, by number":     {devicetest.Rule{Op: devicetest.Wait, Nth: 2}, 1},
		"the wait that matters, by event":      {devicetest.Rule{Op: devicetest.Wait, Event: "second"}, 1},
		"the record that matters":              {devicetest.Rule{Op: devicetest.Record, Event: "second", Nth: 1}, 1},
		"the other wait":                       {devicetest.Rule{Op: devicetest.Wait, Nth: 1}, 2},
		"every wait of the reader":             {devicetest.Rule{Op: devicetest.Wait, Stream: "reader"}, 1},
		"the second write":                     {devicetest.Rule{Op: devicetest.Memset, Nth: 2}, 1},
		"the writer's kernel, by name and all": {devicetest.Rule{Op: devicetest.Launch, Kernel: "busy", Stream: "writer"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dev, tap := tapped(t, twoKernels)
				c.rule.Swallow = true
				armed := tap.Arm(c.rule)
				read, err := handover(t, dev)
				require.NoError(t, err)
				require.Equal(t, c.read, read)
				require.NotZero(t, armed.Fired())
				require.GreaterOrEqual(t, armed.Matched(), armed.Fired())
			})
		})
	}
}

func TestTapRuleThatMatchesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev, tap := tapped(t, twoKernels)
		third := tap.Arm(devicetest.Rule{Op: devicetest.Wait, Nth: 3, Swallow: true})
		writer := tap.Arm(devicetest.Rule{Op: devicetest.Wait, Stream: "writer", Swallow: true})
		read, err := handover(t, dev)
		require.NoError(t, err)
		require.Equal(t, byte(2), read)
		require.Equal(t, []int64{0, 2, 0, 0}, []int64{third.Fired(), third.Matched(), writer.Fired(), writer.Matched()})
	})
}

func TestTapFailsEveryOp(t *testing.T) {
	mine := errors.New("mine")
	for _, op := range devicetest.Ops() {
		dev, tap := tapped(t, cpu.Options{})
		tap.Arm(devicetest.Rule{Op: op, Nth: 2, Err: mine})
		for n := range 3 {
			err := call(tap, op)
			if n != 1 {
				require.NotErrorIs(t, err, mine, "%v", op)
				continue
			}
			require.ErrorIs(t, err, mine, "%v", op)
			var e *device.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, op.String(), e.Op)
			require.Equal(t, "cpu", e.Device)
		}
		require.EqualValues(t, 3, tap.Count(op), "%v", op)
		tap.Disarm()
		_ = dev.Close() // what the calls made is not freed
	}
}

// call makes one call of op with arguments that mean nothing.
func call(d *devicetest.Tap, op devicetest.Op) (err error) {
	ctx := context.Background()
	switch op {
	case devicetest.Memory:
		_, _, err = d.Memory()
	case devicetest.Synchronize:
		err = d.Synchronize(ctx)
	case devicetest.Close:
		err = d.Close()
	case devicetest.NewStream:
		_, err = d.NewStream(driver.StreamConfig{})
	case devicetest.AdoptStream:
		_, err = d.AdoptStream(1)
	case devicetest.FreeStream:
		err = d.FreeStream(1)
	case devicetest.StreamDone:
		_, err = d.StreamDone(1)
	case devicetest.SynchronizeStream:
		err = d.SynchronizeStream(ctx, 1)
	case devicetest.NewEvent:
		_, err = d.NewEvent(driver.EventConfig{})
	case devicetest.FreeEvent:
		err = d.FreeEvent(1)
	case devicetest.Record:
		err = d.Record(1, 1)
	case devicetest.Wait:
		err = d.Wait(1, 1)
	case devicetest.EventDone:
		_, err = d.EventDone(1)
	case devicetest.SynchronizeEvent:
		err = d.SynchronizeEvent(ctx, 1)
	case devicetest.Elapsed:
		_, err = d.Elapsed(1, 1)
	case devicetest.Alloc:
		_, err = d.Alloc(1)
	case devicetest.Free:
		err = d.Free(1)
	case devicetest.AllocHost:
		_, err = d.AllocHost(1, driver.HostConfig{})
	case devicetest.FreeHost:
		err = d.FreeHost([]byte{1})
	case devicetest.RegisterHost:
		err = d.RegisterHost([]byte{1}, driver.HostConfig{})
	case devicetest.UnregisterHost:
		err = d.UnregisterHost([]byte{1})
	case devicetest.HostAddress:
		_, err = d.HostAddress([]byte{1})
	case devicetest.CopyH2D:
		err = d.CopyH2D(1, 1, []byte{1})
	case devicetest.CopyD2H:
		err = d.CopyD2H(1, []byte{1}, 1)
	case devicetest.CopyD2D:
		err = d.CopyD2D(1, 1, 1, 1)
	case devicetest.CopyPeer:
		err = d.CopyPeer(1, driver.Place{Device: d, Address: 1}, driver.Place{Device: d, Address: 1}, 1)
	case devicetest.Memset:
		err = d.Memset(1, 1, 1, 1)
	case devicetest.HostFunc:
		err = d.HostFunc(1, func() {})
	case devicetest.Launch:
		err = d.Launch(1, cpu.Busy(0))
	case devicetest.BeginCapture:
		err = d.BeginCapture(1)
	case devicetest.EndCapture:
		_, err = d.EndCapture(1)
	case devicetest.Capturing:
		_, err = d.Capturing(1)
	case devicetest.GraphNodes:
		_, err = d.GraphNodes(1)
	case devicetest.FreeGraph:
		err = d.FreeGraph(1)
	case devicetest.Instantiate:
		_, err = d.Instantiate(1)
	case devicetest.FreeExec:
		err = d.FreeExec(1)
	case devicetest.LaunchGraph:
		err = d.LaunchGraph(1, 1)
	case devicetest.UpdateExec:
		err = d.UpdateExec(1, 1)
	}
	return err
}

func TestTapDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev, tap := tapped(t, cpu.Options{})
		tap.Arm(devicetest.Rule{Op: devicetest.Alloc, Delay: time.Second})
		tap.Arm(devicetest.Rule{Op: devicetest.Alloc, Nth: 2, Delay: time.Minute, Err: errors.New("late")})
		begin := time.Now()
		b, err := dev.Alloc(1)
		require.NoError(t, err)
		require.Equal(t, time.Second, time.Since(begin))
		_, err = dev.Alloc(1)
		require.ErrorContains(t, err, "late")
		require.Equal(t, time.Minute+2*time.Second, time.Since(begin))
		require.NoError(t, errors.Join(b.Close(), dev.Close()))
	})
}

func TestOpNames(t *testing.T) {
	require.Equal(t, "SynchronizeStream", devicetest.SynchronizeStream.String())
	require.Equal(t, "Launch", devicetest.Launch.String())
	require.Equal(t, "devicetest.Op(200)", devicetest.Op(200).String())
	require.Len(t, devicetest.Ops(), 38)
}
