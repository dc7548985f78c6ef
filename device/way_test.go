package device_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/device/order"
)

// A fabric is what lies between two devices. Copies report success and bring other bytes.
type fabric struct {
	spoil  string         // "drops", "zeroes", "shifts"; empty for what is sound
	from   driver.Device  // copies from here alone
	above  int64          // and longer than this
	zeroes driver.Address // memory of from

	routes   bool   // the driver can go through the host
	hostToo  bool   // where it changes bytes as well
	why      string // it does so
	hopeless error  // what it says instead
}

// crooked is a device in a fabric.
type crooked struct {
	*cpu.Device
	*fabric
}

func (c crooked) Unwrap() driver.Device { return c.Device }

func (c crooked) CopyPeer(s driver.Stream, dst, src driver.Place, bytes int64) error {
	if driver.Unwrap(src.Device) != c.from || bytes <= c.above {
		return c.Device.CopyPeer(s, dst, src, bytes)
	}
	const shift = 64
	switch c.spoil {
	case "drops":
		return nil
	case "zeroes":
		src.Address = c.zeroes
	case "shifts":
		src.Address += shift
		bytes -= shift
	}
	return c.Device.CopyPeer(s, dst, src, bytes)
}

// router is one whose driver can go through the host.
type router struct{ crooked }

func (r router) Way(driver.Device) driver.Way {
	if r.why != "" {
		return driver.Way{Kind: device.ThroughHost, Why: r.why}
	}
	return driver.Way{Kind: device.PCIe, Rank: 2}
}

func (r router) Stage(_ driver.Device, why string) error {
	if r.hopeless != nil {
		return r.hopeless
	}
	if r.why = why; !r.hostToo {
		r.spoil = ""
	}
	return nil
}

// connecting makes two devices with f between them, and checks when the test ends that
// nothing is left on them and that all work was ordered.
func connecting(t *testing.T, f *fabric) (a, b *device.Device) {
	checker := order.New(order.Options{})
	var devices [2]*device.Device
	var drivers [2]*cpu.Device
	for i := range devices {
		drv, err := cpu.New(cpu.Options{Index: i, Adversary: &cpu.Adversary{LateRead: true, Reorder: true}})
		require.NoError(t, err)
		drivers[i] = drv
		c := crooked{drv, f}
		if f.routes {
			devices[i] = device.New(checker.Wrap(router{c}))
		} else {
			devices[i] = device.New(checker.Wrap(c))
		}
	}
	var err error
	f.from = drivers[0]
	f.zeroes, err = drivers[0].Alloc(4 << 20)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, checker.Err())
		require.NoError(t, drivers[0].Free(f.zeroes))
		for _, d := range devices {
			u := d.Usage()
			u.Allocations = 0
			require.Zero(t, u)
			require.NoError(t, d.Close())
		}
	})
	return devices[0], devices[1]
}

func TestConnect(t *testing.T) {
	a, b := connecting(t, &fabric{routes: true})
	for _, pair := range [][2]*device.Device{{a, b}, {b, a}} {
		way, err := pair[0].Connect(t.Context(), pair[1])
		require.NoError(t, err)
		require.Equal(t, device.Way{Kind: device.PCIe, Rank: 2}, way)
		require.Contains(t, pair[0].Notes(), "copies to "+pair[1].Name()+" go over PCIe")
	}
	way, err := a.Connect(t.Context(), a)
	require.NoError(t, err)
	require.Equal(t, device.SameMemory, way.Kind)
	_, err = a.Connect(t.Context(), nil)
	require.ErrorIs(t, err, device.ErrInvalid)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = a.Connect(ended, b)
	require.ErrorIs(t, err, context.Canceled)

	a, b = connecting(t, &fabric{})
	way, err = a.Connect(t.Context(), b)
	require.NoError(t, err)
	require.Equal(t, device.UnknownWay, way.Kind)
}

// A way that changes bytes, in one direction only and above some length only, is found,
// whichever device is asked.
func TestConnectFindsAWayThatChangesBytes(t *testing.T) {
	for _, spoil := range []string{"drops", "zeroes", "shifts"} {
		for _, above := range []int64{0, 64 << 10} {
			for _, reverse := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s above %d, reverse=%v", spoil, above, reverse), func(t *testing.T) {
					connect := func(f fabric) (device.Way, []*device.Device, error) {
						f.spoil, f.above = spoil, above
						a, b := connecting(t, &f)
						if reverse {
							a, b = b, a
						}
						way, err := a.Connect(t.Context(), b)
						return way, []*device.Device{a, b}, err
					}
					const found = "copied from cpu to cpu:1 in a stream of"
					_, _, err := connect(fabric{})
					require.ErrorIs(t, err, device.ErrCorrupt)
					require.ErrorContains(t, err, found)
					_, _, err = connect(fabric{routes: true, hostToo: true})
					require.ErrorIs(t, err, device.ErrCorrupt)
					_, _, err = connect(fabric{routes: true, hopeless: device.ErrUnsupported})
					require.ErrorIs(t, err, device.ErrCorrupt)
					require.ErrorIs(t, err, device.ErrUnsupported)

					way, devices, err := connect(fabric{routes: true})
					require.NoError(t, err)
					require.Equal(t, device.ThroughHost, way.Kind)
					require.Contains(t, way.Why, found)
					for _, d := range devices {
						require.Contains(t, d.Notes(), way.Why)
					}
				})
			}
		}
	}
}
