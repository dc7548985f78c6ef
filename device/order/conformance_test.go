package order_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/device/order"
)

// A checked device keeps every promise of the one beneath.
func TestConformance(t *testing.T) {
	for name, o := range map[string]order.Options{"reports": {}, "list only": {ListOnly: true}} {
		t.Run(name, func(t *testing.T) {
			c := order.New(o)
			open := func(co cpu.Options) func(t *testing.T) *device.Device {
				return func(t *testing.T) *device.Device {
					d, err := cpu.New(co)
					require.NoError(t, err)
					return device.New(c.Wrap(d))
				}
			}
			devicetest.Run(t, open(cpu.Options{}), devicetest.Options{Peer: open(cpu.Options{Index: 1})})
			for _, e := range c.Reports() {
				t.Log(e)
			}
		})
	}
}
