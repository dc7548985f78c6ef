package device_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/driver"
)

// Everything that the driver allocates is counted once, and nothing that it doesn't.
func TestEachAllocationIsCounted(t *testing.T) {
	d, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	allocates := func(n int64, what func() (interface{ Close() error }, error)) {
		t.Helper()
		before := d.Usage()
		thing, err := what()
		require.NoError(t, err)
		require.Equal(t, before.Allocations+n, d.Usage().Allocations)
		require.NoError(t, thing.Close())
		after := d.Usage()
		after.Allocations = before.Allocations
		require.Equal(t, before, after)
	}
	allocates(1, func() (interface{ Close() error }, error) { return d.Alloc(8) })
	allocates(0, func() (interface{ Close() error }, error) { return d.Alloc(0) })
	allocates(1, func() (interface{ Close() error }, error) { return d.AllocHost(8, device.HostOptions{}) })
	allocates(0, func() (interface{ Close() error }, error) { return d.AllocHost(0, device.HostOptions{}) })
	allocates(1, func() (interface{ Close() error }, error) {
		return d.RegisterHost(make([]byte, 8), device.HostOptions{})
	})
	allocates(1, func() (interface{ Close() error }, error) { return d.NewStream(device.StreamOptions{}) })
	allocates(1, func() (interface{ Close() error }, error) { return d.NewEvent(device.EventOptions{}) })
	require.NoError(t, d.Close())
}

// described is a driver with properties of its own.
type described struct {
	driver.Device
	props driver.Properties
}

func (d described) Properties() driver.Properties { return d.props }

func TestNotesAreTheDriversAndThenTheProgramsOwn(t *testing.T) {
	d, err := cpu.New(cpu.Options{})
	require.NoError(t, err)
	props := d.Properties()
	props.Notes, props.Description = []string{"the driver's"}, "a product"
	dev := device.New(described{d, props})
	require.Equal(t, "cpu (a product)", dev.String())
	var writing sync.WaitGroup
	for i := range 8 {
		writing.Go(func() {
			dev.Note(fmt.Sprint("note ", i))
			_ = dev.Notes()
		})
	}
	writing.Wait()
	notes := dev.Notes()
	require.Len(t, notes, 9)
	require.Equal(t, "the driver's", notes[0])
	notes[0] = "changed"
	require.Equal(t, "the driver's", dev.Notes()[0], "the caller's copy is its own")

	props.Description = ""
	require.Equal(t, "cpu", device.New(described{d, props}).String())
	require.NoError(t, dev.Close())
}

// No byte is shared by memory of none, of two devices, or that only touches.
func TestViewsOverlapByTheByte(t *testing.T) {
	d, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	other, err := cpu.Open(cpu.Options{Index: 1})
	require.NoError(t, err)
	at := func(d *device.Device, addr device.Address, n int64) device.View { return d.ViewOf(addr, n) }
	for _, c := range []struct {
		v, w device.View
		want bool
	}{
		{at(d, 100, 10), at(d, 109, 1), true},
		{at(d, 100, 10), at(d, 110, 1), false},
		{at(d, 100, 10), at(d, 99, 1), false},
		{at(d, 100, 10), at(d, 100, 10), true},
		{at(d, 100, 10), at(d, 105, 0), false},
		{at(d, 100, 10), at(other, 105, 1), false},
		{at(d, 100, 1), at(d, 100, 1), true},
	} {
		require.Equal(t, c.want, c.v.Overlaps(c.w), "%v %v", c.v, c.w)
		require.Equal(t, c.want, c.w.Overlaps(c.v), "%v %v", c.v, c.w)
	}
	require.NoError(t, d.Close())
	require.NoError(t, other.Close())
}

func TestTheTimeBetweenEventsOfTwoDevicesIsRefused(t *testing.T) {
	var events []*device.Event
	for index := range 2 {
		d, err := cpu.Open(cpu.Options{Index: index})
		require.NoError(t, err)
		s, err := d.NewStream(device.StreamOptions{})
		require.NoError(t, err)
		e, err := d.NewEvent(device.EventOptions{Timing: true})
		require.NoError(t, err)
		require.NoError(t, s.Record(e))
		require.NoError(t, e.Synchronize(t.Context()))
		events = append(events, e)
		t.Cleanup(func() {
			require.NoError(t, e.Close())
			require.NoError(t, s.Close())
			require.NoError(t, d.Close())
		})
	}
	_, err := device.Elapsed(events[0], events[1])
	require.ErrorIs(t, err, device.ErrInvalid)
	require.ErrorContains(t, err, "the event belongs to another device")
}
