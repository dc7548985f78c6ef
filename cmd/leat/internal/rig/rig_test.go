package rig_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/cmd/leat/internal/rig"
	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
)

func open(t *testing.T) (*device.Device, *devicetest.Tap) {
	drv, err := cpu.New(cpu.Options{})
	require.NoError(t, err)
	tap := devicetest.NewTap(drv)
	return device.New(tap), tap
}

// everything makes one of each and returns the first failure.
func everything(r *rig.Rig) error {
	r.Stream("s")
	r.Event("e")
	r.Alloc(100)
	r.AllocHost(100, device.HostOptions{})
	return r.Err()
}

func TestCloseFreesEverythingLastFirst(t *testing.T) {
	dev, _ := open(t)
	r := rig.New(dev)
	require.NoError(t, everything(r))
	var order []int
	for i := range 3 {
		r.Owns(func() error { order = append(order, i); return nil })
	}
	require.NoError(t, r.Close())
	require.Equal(t, []int{2, 1, 0}, order)
	require.NoError(t, dev.Close(), "the device tells of what is left")
}

func TestTheFirstFailureIsKeptAndNothingIsMadeAfterIt(t *testing.T) {
	failure := errors.New("refused")
	for _, op := range []devicetest.Op{devicetest.NewStream, devicetest.NewEvent, devicetest.Alloc, devicetest.AllocHost} {
		dev, tap := open(t)
		tap.Arm(devicetest.Rule{Op: op, Err: failure})
		r := rig.New(dev)
		require.ErrorIs(t, everything(r), failure)
		made := dev.Usage().Allocations
		require.ErrorIs(t, everything(r), failure)
		require.Equal(t, made, dev.Usage().Allocations)
		require.NoError(t, r.Close())
		require.NoError(t, dev.Close())
	}
}

func TestCloseTellsWhatCouldNotBeFreed(t *testing.T) {
	dev, tap := open(t)
	r := rig.New(dev)
	require.NoError(t, everything(r))
	failure := errors.New("refused")
	armed := tap.Arm(devicetest.Rule{Op: devicetest.FreeHost, Nth: 1, Err: failure})
	require.ErrorIs(t, r.Close(), failure)
	require.EqualValues(t, 1, armed.Fired())
	require.Zero(t, dev.Usage().Streams, "the others are freed all the same")
}
