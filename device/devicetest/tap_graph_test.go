package devicetest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
)

// Two branches of a captured step write and read the same byte. Which of the edges
// between them are needed a mutation tells: without one the graph is another, or none.
func TestSwallowedEdgesChangeTheGraph(t *testing.T) {
	for name, c := range map[string]struct {
		rule  devicetest.Rule
		want  error // of the capture
		after [][]int
	}{
		"none":       {rule: devicetest.Rule{Op: devicetest.Wait, Event: "no such"}, after: [][]int{{}, {}, {0, 1}}},
		"the fork":   {rule: devicetest.Rule{Op: devicetest.Wait, Event: "fork"}, want: device.CaptureUnsupported},
		"the join":   {rule: devicetest.Rule{Op: devicetest.Wait, Event: "join"}, want: device.CaptureUnjoined},
		"a record":   {rule: devicetest.Rule{Op: devicetest.Record, Event: "join"}, want: device.CaptureInvalidated},
		"the middle": {rule: devicetest.Rule{Op: devicetest.Wait, Event: "middle"}, after: [][]int{{}, {}, {1}}},
	} {
		t.Run(name, func(t *testing.T) {
			dev, tap := tapped(t, cpu.Options{})
			c.rule.Swallow = true
			armed := tap.Arm(c.rule)
			a, err := dev.NewStream(device.StreamOptions{Name: "a"})
			require.NoError(t, err)
			b, err := dev.NewStream(device.StreamOptions{Name: "b"})
			require.NoError(t, err)
			events := map[string]*device.Event{}
			for _, name := range []string{"fork", "middle", "join"} {
				events[name], err = dev.NewEvent(device.EventOptions{Name: name})
				require.NoError(t, err)
			}
			x, err := dev.Alloc(8)
			require.NoError(t, err)
			g, err := a.Capture(func() error {
				err := errors.Join(a.Record(events["fork"]), b.Wait(events["fork"]),
					a.Memset(x.View(), 1), a.Record(events["middle"]), b.Memset(x.View(), 2),
					b.Wait(events["middle"]), b.Memset(x.View(), 3), b.Record(events["join"]))
				return errors.Join(err, ignore(a.Wait(events["join"])))
			})
			require.Equal(t, c.rule.Event != "no such", armed.Fired() > 0)
			require.ErrorIs(t, err, c.want)
			if err != nil {
				return
			}
			require.Len(t, g.Nodes(), len(c.after))
			for i, n := range g.Nodes() {
				require.ElementsMatch(t, c.after[i], n.After, "node %d", i)
			}
		})
	}
}

// ignore leaves a refusal to the capture's end.
func ignore(err error) error {
	if errors.Is(err, device.ErrCapture) {
		return nil
	}
	return err
}

// The calls of graphs are counted, and each can fail.
func TestTheTapFailsGraphCalls(t *testing.T) {
	own := errors.New("own")
	for _, op := range []devicetest.Op{
		devicetest.BeginCapture, devicetest.EndCapture, devicetest.GraphNodes, devicetest.Instantiate,
		devicetest.LaunchGraph, devicetest.UpdateExec, devicetest.FreeExec, devicetest.FreeGraph, devicetest.Capturing,
	} {
		t.Run(op.String(), func(t *testing.T) {
			dev, tap := tapped(t, cpu.Options{})
			s, err := dev.NewStream(device.StreamOptions{Name: "s"})
			require.NoError(t, err)
			b, err := dev.Alloc(8)
			require.NoError(t, err)
			use := func() error {
				g, err := s.Capture(func() error { return s.Memset(b.View(), 1) })
				if err != nil {
					return err
				}
				x, err := g.Instantiate()
				if err != nil {
					return errors.Join(err, g.Close())
				}
				_, asked := s.Capturing()
				return errors.Join(asked, x.Launch(s), x.Update(g), s.Synchronize(context.Background()), x.Close(), g.Close())
			}
			require.NoError(t, use())
			before := tap.Count(op)
			require.Positive(t, before)
			tap.Arm(devicetest.Rule{Op: op, Err: own})
			require.ErrorIs(t, use(), own)
			require.Greater(t, tap.Count(op), before)
			tap.Disarm()
			if op != devicetest.EndCapture { // the capture goes on
				require.NoError(t, use())
			}
		})
	}
}
