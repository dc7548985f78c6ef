package prefetch_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/device/order"
)

// orders are the reports on a test's devices: there must be none.
type orders struct {
	checker  *order.Checker
	expected bool
}

// watch has the order of all accesses on d checked. What a Tap around it swallows does
// not reach the checker. What is found shows in what it does, too: calls go on.
func watch(t *testing.T, d driver.Device) (*orders, driver.Device) {
	if w, ok := d.(*order.Device); ok { // of the environment's; one is enough
		d = w.Unwrap()
	}
	o := &orders{checker: order.New(order.Options{ListOnly: true})}
	t.Cleanup(func() {
		if !o.expected {
			require.NoError(t, o.checker.Err())
		}
	})
	return o, o.checker.Wrap(d)
}

// found are the reports, which the test expects.
func (o *orders) found() []*order.Error {
	o.expected = true
	return o.checker.Reports()
}
