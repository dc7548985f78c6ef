package meter_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/device/meter"
	"github.com/leat-go/leat/device/order"
)

// eager is a device whose copies back are done by the time at which the call returns
// that submits them: whatever wait is missing, every byte is right.
type eager struct{ driver.Device }

func (d eager) CopyD2H(s driver.Stream, dst []byte, src driver.Address) error {
	return errors.Join(d.Device.CopyD2H(s, dst, src), d.SynchronizeStream(context.Background(), s))
}

// A value is not shown before the wait for it.
func TestAMissingEdgeIsNamed(t *testing.T) {
	drv, err := cpu.New(cpu.Options{})
	require.NoError(t, err)
	checker := order.New(order.Options{ListOnly: true})
	tap := devicetest.NewTap(checker.Wrap(eager{drv}))
	dev := device.New(tap)
	s, err := dev.NewStream(device.StreamOptions{Name: "compute"})
	require.NoError(t, err)
	loss, err := dev.Alloc(1)
	require.NoError(t, err)
	m, err := meter.New[uint8](dev)
	require.NoError(t, err)
	push := func(value byte) {
		require.NoError(t, s.Memset(loss.View(), value))
		require.NoError(t, m.Push(s, loss.View()))
		require.NoError(t, drv.Synchronize(t.Context())) // which the checker doesn't see
		got, _, err := m.Latest()
		require.NoError(t, err)
		require.Equal(t, value, got)
	}
	for i := range byte(40) {
		push(i)
	}
	require.NoError(t, checker.Err())
	tap.Arm(devicetest.Rule{Op: devicetest.Record, Event: "arrived", Nth: 1, Swallow: true})
	push(41)
	require.Len(t, checker.Reports(), 1)
	require.Equal(t, "compute", checker.Reports()[0].First.Stream)
	require.Equal(t, "AtRest", checker.Reports()[0].Second.Op)
	require.NoError(t, s.Synchronize(t.Context()))
	require.NoError(t, errors.Join(m.Close(), loss.Close(), s.Close(), dev.Close()))
}

// What Close has waited for is done for the whole program: the memory that was read may
// be written by any stream.
func TestCloseOrdersWhatFollows(t *testing.T) {
	drv, err := cpu.New(cpu.Options{})
	require.NoError(t, err)
	checker := order.New(order.Options{ListOnly: true})
	dev := device.New(checker.Wrap(drv))
	s, err := dev.NewStream(device.StreamOptions{Name: "compute"})
	require.NoError(t, err)
	other, err := dev.NewStream(device.StreamOptions{Name: "other"})
	require.NoError(t, err)
	loss, err := dev.Alloc(1)
	require.NoError(t, err)
	m, err := meter.New[uint8](dev)
	require.NoError(t, err)
	require.NoError(t, s.Memset(loss.View(), 1))
	require.NoError(t, m.Push(s, loss.View()))
	require.NoError(t, m.Close())
	require.NoError(t, other.Memset(loss.View(), 2))
	require.NoError(t, checker.Err())
	require.NoError(t, dev.Synchronize(t.Context()))
	require.NoError(t, errors.Join(loss.Close(), s.Close(), other.Close(), dev.Close()))
}
