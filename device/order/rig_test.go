package order_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/order"
)

// A rig is a checked device that does nothing, and what a test makes on it.
type rig struct {
	t       *testing.T
	checker *order.Checker
	drv     *fake
	dev     *device.Device
}

func newRig(t *testing.T, o order.Options) *rig {
	drv := newFake(0, new(uintptr))
	c := order.New(o)
	return &rig{t, c, drv, device.New(c.Wrap(drv))}
}

// beside is a second device under the same Checker.
func (r *rig) beside() *rig {
	drv := newFake(1, r.drv.handles)
	return &rig{r.t, r.checker, drv, device.New(r.checker.Wrap(drv))}
}

func (r *rig) stream(name string) *device.Stream {
	s, err := r.dev.NewStream(device.StreamOptions{Name: name})
	require.NoError(r.t, err)
	return s
}

func (r *rig) event(name string) *device.Event {
	e, err := r.dev.NewEvent(device.EventOptions{Name: name})
	require.NoError(r.t, err)
	return e
}

func (r *rig) buffer(bytes int64) *device.Buffer {
	b, err := r.dev.Alloc(bytes)
	require.NoError(r.t, err)
	return b
}

func (r *rig) pinned(bytes int64) *device.HostBuffer {
	h, err := r.dev.AllocHost(bytes, device.HostOptions{})
	require.NoError(r.t, err)
	return h
}

func (r *rig) do(errs ...error) { r.t.Helper(); require.NoError(r.t, errors.Join(errs...)) }

// reported is the report that err must be.
func (r *rig) reported(err error) *order.Error {
	r.t.Helper()
	var report *order.Error
	require.ErrorAs(r.t, err, &report)
	var e *device.Error
	require.ErrorAs(r.t, err, &e)
	require.Equal(r.t, report.Second.Op, e.Op)
	return report
}

// kernel launches one that uses the memories in one way each.
func kernel(s *device.Stream, in, out []device.View) error {
	l := device.Launch{Kernel: anyKernel, Grid: [3]uint32{1}, Block: [3]uint32{1}}
	for _, v := range in {
		v.In(&l.Args)
	}
	for _, v := range out {
		v.Out(&l.Args)
	}
	return s.Launch(&l)
}

func reads(s *device.Stream, v ...device.View) error  { return kernel(s, v, nil) }
func writes(s *device.Stream, v ...device.View) error { return kernel(s, nil, v) }

var ctx = context.Background()
