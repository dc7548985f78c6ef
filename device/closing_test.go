package device_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/driver"
)

// A thing is something that Close ends, and what it counts as in Usage.
type thing struct {
	name  string
	close func() error
}

// things are one of each kind on d.
func things(t *testing.T, d *device.Device) []thing {
	s, err := d.NewStream(device.StreamOptions{})
	require.NoError(t, err)
	e, err := d.NewEvent(device.EventOptions{})
	require.NoError(t, err)
	h, err := d.AllocHost(8, device.HostOptions{})
	require.NoError(t, err)
	empty, err := d.AllocHost(0, device.HostOptions{})
	require.NoError(t, err)
	r, err := d.RegisterHost(make([]byte, 8), device.HostOptions{})
	require.NoError(t, err)
	j, err := d.NewJunction()
	require.NoError(t, err)
	return []thing{
		{"Stream", s.Close}, {"Event", e.Close}, {"Buffer", buffer(t, d, 8).Close}, {"empty Buffer", buffer(t, d, 0).Close},
		{"HostBuffer", h.Close}, {"empty HostBuffer", empty.Close}, {"registered HostBuffer", r.Close}, {"Junction", j.Close},
	}
}

// The driver may have given the handle to another by the second Close, so it isn't asked.
func TestASecondCloseDoesNothing(t *testing.T) {
	d, drv, s := openReckless(t)
	require.NoError(t, s.Close())
	all := things(t, d)
	for _, x := range all {
		require.NoError(t, x.close(), x.name)
	}
	u := d.Usage()
	u.Allocations = 0
	require.Equal(t, device.Usage{}, u)
	drv.calls = 0
	for range 2 {
		for _, x := range all {
			require.NoError(t, x.close(), x.name)
		}
	}
	require.Zero(t, drv.calls)
	u = d.Usage()
	u.Allocations = 0
	require.Equal(t, device.Usage{}, u, "nothing is counted twice")
}

// What was closed is used no more: its handle may be another's by then.
func TestUseAfterCloseIsRefused(t *testing.T) {
	d, drv, s := openReckless(t)
	e, err := d.NewEvent(device.EventOptions{Name: "e"})
	require.NoError(t, err)
	live, err := d.NewStream(device.StreamOptions{})
	require.NoError(t, err)
	running, err := d.NewEvent(device.EventOptions{})
	require.NoError(t, err)
	j, err := d.NewJunction()
	require.NoError(t, err)
	b := buffer(t, d, 8)
	h, err := d.AllocHost(8, device.HostOptions{})
	require.NoError(t, err)
	for _, closing := range []func() error{s.Close, e.Close, j.Close, b.Close, h.Close} {
		require.NoError(t, closing())
	}
	drv.calls = 0
	for name, call := range map[string]func() error{
		"Stream.Record":      func() error { return s.Record(running) },
		"Stream.Wait":        func() error { return s.Wait(running) },
		"Stream.Done":        func() error { _, err := s.Done(); return err },
		"Stream.Idle":        func() error { _, err := s.Idle(); return err },
		"Stream.Synchronize": func() error { return s.Synchronize(t.Context()) },
		"Stream.HostFunc":    func() error { return s.HostFunc(func() {}) },
		"Stream.Launch":      func() error { return s.Launch(launch()) },
		"Event.Done":         func() error { _, err := e.Done(); return err },
		"Event.Synchronize":  func() error { return e.Synchronize(t.Context()) },
		"Record":             func() error { return live.Record(e) },
		"Wait":               func() error { return live.Wait(e) },
		"Elapsed":            func() error { _, err := device.Elapsed(e, running); return err },
		"Fork":               func() error { return j.Fork(live, live) },
		"Memset":             func() error { return live.Memset(b.View(), 1) },
		"HostBuffer.View":    func() error { _, err := h.View(); return err },
	} {
		err := call()
		require.ErrorIs(t, err, device.ErrInvalid, name)
		require.ErrorContains(t, err, "closed before", name)
	}
	require.Zero(t, drv.calls)
}

// slow is a driver in which what frees something waits, and then fails if told to.
type slow struct {
	driver.Device
	wait chan error
}

func (s *slow) FreeStream(driver.Stream) error { return <-s.wait }
func (s *slow) FreeEvent(driver.Event) error   { return <-s.wait }
func (s *slow) Free(driver.Address) error      { return <-s.wait }
func (s *slow) FreeHost([]byte) error          { return <-s.wait }
func (s *slow) UnregisterHost([]byte) error    { return <-s.wait }
func (s *slow) Close() error                   { return <-s.wait }

// Whoever closes something while another does gets the same answer at the same time, and
// what could not be freed can be closed again.
func TestACloseDuringAnotherWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := cpu.New(cpu.Options{})
		require.NoError(t, err)
		drv := &slow{Device: d, wait: make(chan error)}
		dev := device.New(drv)
		all := things(t, dev)
		all = append(all, thing{"Device", dev.Close})
		refused := errors.New("refused")
		for _, x := range all {
			if x.name == "empty Buffer" || x.name == "empty HostBuffer" {
				continue // the driver is not asked
			}
			for _, answer := range []error{refused, nil} {
				const closers = 3
				results := make(chan error, closers)
				for range closers {
					go func() { results <- x.close() }()
				}
				synctest.Wait()
				require.Empty(t, results, "%s: all wait", x.name)
				drv.wait <- answer // one alone receives it
				synctest.Wait()
				require.Len(t, results, closers, x.name)
				for range closers {
					require.Equal(t, answer, <-results, x.name)
				}
			}
			require.NoError(t, x.close(), x.name)
		}
	})
}

// In use again after a Close that failed.
func TestWhatCouldNotBeClosedIsStillInUse(t *testing.T) {
	d, err := cpu.New(cpu.Options{})
	require.NoError(t, err)
	drv := &slow{Device: d, wait: make(chan error, 1)}
	dev := device.New(drv)
	s, err := dev.NewStream(device.StreamOptions{})
	require.NoError(t, err)
	b := buffer(t, dev, 8)
	before := dev.Usage()
	for _, closing := range []func() error{s.Close, b.Close} {
		drv.wait <- device.ErrFault
		require.ErrorIs(t, closing(), device.ErrFault)
	}
	require.Equal(t, before, dev.Usage())
	require.NoError(t, s.Memset(b.View(), 1))
	require.NoError(t, s.Synchronize(t.Context()))
	var leak *cpu.LeakError
	require.ErrorAs(t, d.Close(), &leak)
	require.Equal(t, cpu.Live{Streams: 1, Buffers: 1, Bytes: 8}, leak.Live)
}
