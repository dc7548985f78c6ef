package order_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/order"
)

// A capturedOp is a call of a random step: a use of memory, or an edge between streams.
type capturedOp struct {
	edge         bool
	stream, from int // an edge is from one stream to the other
	memory       int
	write        bool
}

func drawCaptured(t *rapid.T) []capturedOp {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) capturedOp {
		return capturedOp{
			edge:   rapid.Bool().Draw(t, "edge"),
			stream: rapid.IntRange(0, 2).Draw(t, "stream"),
			from:   rapid.IntRange(0, 2).Draw(t, "from"),
			memory: rapid.IntRange(0, 2).Draw(t, "memory"),
			write:  rapid.Bool().Draw(t, "write"),
		}
	}), 0, 20).Draw(t, "step")
}

// unordered reports whether two uses of one memory, one of them a write, have no way from
// one to the other: along streams and edges, from all before it to each call. Streams 1
// and 2 come behind what stream 0 was given before it joined them, at the start.
func unordered(step []capturedOp) bool {
	var behind [3][]int // what each stream's next use comes after
	for i, op := range step {
		if op.edge {
			for _, n := range behind[op.from] {
				if !slices.Contains(behind[op.stream], n) {
					behind[op.stream] = append(behind[op.stream], n)
				}
			}
			continue
		}
		for k, other := range step[:i] {
			if !other.edge && other.memory == op.memory && (other.write || op.write) && !slices.Contains(behind[op.stream], k) {
				return true
			}
		}
		behind[op.stream] = append(behind[op.stream], i)
	}
	return false
}

// In a capture two calls are reported exactly if nothing orders them, and a launch adds no
// report of its own.
func TestCapturesAreReportedExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		step := drawCaptured(t)
		drv, err := cpu.New(cpu.Options{})
		require.NoError(t, err)
		c := order.New(order.Options{ListOnly: true})
		dev := device.New(c.Wrap(drv))
		defer func() { _ = dev.Close() }()
		var streams [3]*device.Stream
		var memory [3]*device.Buffer
		for i := range streams {
			streams[i], err = dev.NewStream(device.StreamOptions{Name: fmt.Sprint(i)})
			require.NoError(t, err)
			memory[i], err = dev.Alloc(8)
			require.NoError(t, err)
		}
		e, err := dev.NewEvent(device.EventOptions{})
		require.NoError(t, err)
		g, err := streams[0].Capture(func() error {
			errs := []error{fork(e, streams[0], streams[1]), streams[2].Wait(e)}
			for _, op := range step {
				a := device.In
				if op.write {
					a = device.Out
				}
				if op.edge {
					errs = append(errs, fork(e, streams[op.from], streams[op.stream]))
				} else {
					l := device.Launch{Kernel: anyKernel, Grid: [3]uint32{1}, Block: [3]uint32{1}}
					if v := memory[op.memory].View(); a == device.In {
						v.In(&l.Args)
					} else {
						v.Out(&l.Args)
					}
					errs = append(errs, streams[op.stream].Launch(&l))
				}
			}
			return errors.Join(append(errs, fork(e, streams[1], streams[0]), fork(e, streams[2], streams[0]))...)
		})
		require.NoError(t, err)
		reports := len(c.Reports())
		require.Equal(t, unordered(step), reports > 0)
		x, err := g.Instantiate()
		require.NoError(t, err)
		require.NoError(t, errors.Join(x.Launch(streams[0]), x.Launch(streams[1]), g.Close(), dev.Synchronize(ctx), x.Close()))
		require.Len(t, c.Reports(), reports)
	})
}
