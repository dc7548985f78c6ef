package capture_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/capture"
)

// Each call that a replayed step depends on is left out in turn, from outside: the wait for
// the batch's copy and the mark that it was read, which stay outside of the graph, the copy
// of the parameters, and the launch. What the step computes must show it.
func TestEveryCallIsNeeded(t *testing.T) {
	const (
		ms      = time.Millisecond
		batches = 60
		n, size = batches * 4, 4
	)
	// The parameters have an engine of their own and take no time: else their copy would
	// stand behind the batch's and do what the wait for that does.
	model := func(in, compute time.Duration) *cpu.Model {
		return &cpu.Model{CopyEngines: 2, KernelTime: func(*driver.Launch) time.Duration { return compute },
			CopyTime: func(way cpu.Direction, bytes int64) time.Duration {
				if way == cpu.H2D && bytes > 8 {
					return in
				}
				return 0
			}}
	}
	for _, c := range []struct {
		name        string
		rule        devicetest.Rule
		in, compute time.Duration
	}{
		{"Wait(ready)", devicetest.Rule{Op: devicetest.Wait, Event: "ready", Stream: "compute"}, 6 * ms, ms},
		{"Record(ready)", devicetest.Rule{Op: devicetest.Record, Event: "ready", Stream: "copy"}, 6 * ms, ms},
		{"Record(consumed)", devicetest.Rule{Op: devicetest.Record, Event: "consumed", Stream: "compute"}, ms, 6 * ms},
		{"Wait(consumed)", devicetest.Rule{Op: devicetest.Wait, Event: "consumed", Stream: "copy"}, ms, 6 * ms},
		{"the parameters", devicetest.Rule{Op: devicetest.CopyH2D, Stream: "compute"}, ms, ms},
		{"the launch", devicetest.Rule{Op: devicetest.LaunchGraph}, ms, ms},
	} {
		for _, k := range []int64{0, 20, 24, 30} { // all of these are replays; with 0 none is left out
			t.Run(fmt.Sprintf("%s/k=%d", c.name, k), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, setting{n: n, batch: size, lo: loader.Options{Epochs: 1, Workers: 2},
						po: prefetch.Options{Depth: 2, BatchesPerCopy: 1, Memory: prefetch.Memory{HostSlots: 3}},
						co: cpu.Options{Model: model(c.in, c.compute), Adversary: &cpu.Adversary{Poison: true, LateRead: true}}})
					step := r.step(capture.Options{})
					c.rule.Swallow, c.rule.Nth = true, k
					if k == 0 {
						c.rule.Nth = 1 << 40
					}
					armed := r.tap.Arm(c.rule)
					steps, err := r.train(step, 0, -1)
					require.NoError(t, err)
					require.Positive(t, step.Report().Replays)
					got := r.digests(steps)
					if k == 0 {
						require.Zero(t, armed.Fired())
						require.Equal(t, r.expected(n, size, steps), got)
					} else {
						require.EqualValues(t, 1, armed.Fired())
						require.NotEqual(t, r.expected(n, size, steps), got, "the contents are right without this call")
					}
					r.tap.Disarm()
					r.close(step)
				})
			})
		}
	}
}

// blind is a device on which all captures of one number of nodes look like the first, so
// that comparisons find nothing.
type blind struct {
	*cpu.Device
	mu    sync.Mutex
	nodes map[int][]driver.Node
}

func (d *blind) GraphNodes(g driver.Graph) ([]driver.Node, error) {
	nodes, err := d.Device.GraphNodes(g)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.nodes[len(nodes)] == nil {
		d.nodes[len(nodes)] = nodes
	}
	return d.nodes[len(nodes)], err
}

// It is the comparison that keeps replays right: without it, a step with a scalar of its
// launch goes on with the first one's.
func TestTheComparisonIsNeeded(t *testing.T) {
	const batch, steps = 2, 60
	for _, sees := range []bool{true, false} {
		drv, err := cpu.New(cpu.Options{})
		require.NoError(t, err)
		c := setting{n: batch * steps, batch: batch, lo: loader.Options{Epochs: 1}, po: prefetch.Options{Depth: 1}}
		submits := func(r *rig, n *int) (func(*device.Stream, capture.Batch, device.View) error, *device.Buffer) {
			b := r.scratch(batch * width * 4)
			return r.scaled(b.View(), func() float32 { return float32(*n) }), b
		}
		want := logOf(t, c, steps, submits)
		c.driver = drv
		if !sees {
			c.driver = &blind{Device: drv, nodes: map[int][]driver.Node{}}
		}
		r := newRig(t, c)
		n := 0
		var scratch *device.Buffer
		r.submits, scratch = submits(r, &n)
		step := r.step(capture.Options{})
		for b, err := range r.pf.All(t.Context()) {
			require.NoError(t, err)
			require.NoError(t, step.Run(b, at(n)))
			n++
		}
		if sees {
			require.Equal(t, want, r.digests(n))
		} else {
			require.NotEqual(t, want, r.digests(n))
			require.Positive(t, step.Report().Replays)
		}
		require.NoError(t, step.Close())
		require.NoError(t, scratch.Close())
		r.close()
	}
}
