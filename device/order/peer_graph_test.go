package order_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/order"
)

// A replayer replays a captured step, whose result a second device fetches.
type replayer struct {
	*rig
	stream  *device.Stream
	step    *device.Exec
	made    *device.Buffer // by the step
	foreign *device.Buffer // the other's
	ready   *device.Event  // behind a launch
	fetched *device.Event  // behind a copy of the other's
}

// replayers are two of them on devices of one Checker.
func replayers(t *testing.T) [2]*replayer {
	checker := order.New(order.Options{})
	var pair [2]*replayer
	for i := range pair {
		drv, err := cpu.New(cpu.Options{Index: i})
		require.NoError(t, err)
		r := &rig{t: t, checker: checker, dev: device.New(checker.Wrap(drv))}
		t.Cleanup(func() { _ = r.dev.Close() })
		p := &replayer{rig: r, stream: r.stream("s"), made: r.buffer(64), foreign: r.buffer(64), ready: r.event("ready"), fetched: r.event("fetched")}
		p.step = r.exec(p.stream, func() error { return writes(p.stream, p.made.View()) })
		pair[i] = p
	}
	return pair
}

// lap is a lap of both without the call of a device that is called missing, and its error.
func lap(pair [2]*replayer, number int, missing string) error {
	var calls []func() error
	call := func(i int, name string, f func() error) {
		if fmt.Sprintf("%s of %d", name, i) != missing {
			calls = append(calls, f)
		}
	}
	for i, r := range pair {
		if number > 0 {
			call(i, "wait for fetched", func() error { return r.stream.Wait(pair[1-i].fetched) })
		}
		call(i, "launch", func() error { return r.step.Launch(r.stream) })
		call(i, "record of ready", func() error { return r.stream.Record(r.ready) })
	}
	for i, r := range pair {
		call(i, "wait for ready", func() error { return r.stream.Wait(pair[1-i].ready) })
		call(i, "copy", func() error { return r.stream.CopyPeer(r.foreign.View(), pair[1-i].made.View()) })
		call(i, "record of fetched", func() error { return r.stream.Record(r.fetched) })
	}
	for _, f := range calls {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// The edges between the replays of two devices are events of each lap: one that is left
// out, so that the one of the lap before stands in for it, is reported with both places.
func TestReplaysOfTwoDevicesAreOrderedLapByLap(t *testing.T) {
	for _, missing := range []string{"", "wait for fetched of 0", "wait for fetched of 1", "record of ready of 0", "record of ready of 1",
		"wait for ready of 0", "wait for ready of 1", "record of fetched of 0", "record of fetched of 1"} {
		t.Run(missing, func(t *testing.T) {
			pair := replayers(t)
			for number := range 4 {
				require.NoError(t, lap(pair, number, ""))
			}
			err := lap(pair, 4, missing)
			if err == nil {
				err = lap(pair, 5, "") // the record of fetched is for the next lap
			}
			if missing == "" {
				require.NoError(t, err)
				return
			}
			report := pair[0].reported(err)
			require.NotEqual(t, report.First.Device, report.Second.Device)
			require.ElementsMatch(t, []string{"LaunchGraph", "CopyPeer"}, []string{report.First.Op, report.Second.Op})
		})
	}
}
