package cpu_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/order"
)

const (
	stepStreams = 4
	stepBuffers = 4
	stepBytes   = 16
)

// A stepOp is one call of a random step: on a stream, from one buffer to another.
type stepOp struct {
	stream, from, to int
	kind             int // 0 memset, 1 copy, 2 and above a kernel that adds
	value            byte
}

// drawStep draws a step of a few calls on a few streams.
func drawStep(t *rapid.T) []stepOp {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) stepOp {
		return stepOp{
			stream: rapid.IntRange(0, stepStreams-1).Draw(t, "stream"),
			from:   rapid.IntRange(0, stepBuffers-1).Draw(t, "from"),
			to:     rapid.IntRange(0, stepBuffers-1).Draw(t, "to"),
			kind:   rapid.IntRange(0, 3).Draw(t, "kind"),
			value:  rapid.Byte().Draw(t, "value"),
		}
	}), 0, 25).Draw(t, "step")
}

var accumulate = &device.Kernel{Name: "accumulate", Go: func(a *device.Args) {
	in, out := a.Bytes(0), a.Bytes(1)
	for i := range out {
		out[i] += in[i] + byte(a.Uint32(2))
	}
}}

// apply is o on plain slices.
func (o stepOp) apply(mem [][]byte) {
	switch {
	case o.kind == 0:
		copy(mem[o.to], filled(o.value, stepBytes))
	case o.from == o.to:
	case o.kind == 1:
		copy(mem[o.to], mem[o.from])
	default:
		for i := range mem[o.to] {
			mem[o.to][i] += mem[o.from][i] + o.value
		}
	}
}

func (o stepOp) submit(s *device.Stream, bufs []device.View) error {
	switch {
	case o.kind == 0:
		return s.Memset(bufs[o.to], o.value)
	case o.from == o.to:
		return nil
	case o.kind == 1:
		return s.CopyD2D(bufs[o.to], bufs[o.from])
	}
	l := device.Launch{Kernel: accumulate, Grid: [3]uint32{1}, Block: [3]uint32{1}}
	bufs[o.from].In(&l.Args)
	bufs[o.to].InOut(&l.Args)
	l.Args.AddUint32(uint32(o.value))
	return s.Launch(&l)
}

// submitStep submits the step: each stream joins when it is first used, waits before each
// call for whoever used the same memory last, and is joined at the end.
func submitStep(step []stepOp, streams []*device.Stream, bufs []device.View, event *device.Event) error {
	edge := func(from, to int) error {
		if from == to {
			return nil
		}
		return errors.Join(streams[from].Record(event), streams[to].Wait(event))
	}
	joined := make([]bool, len(streams))
	joined[0] = true
	var last [stepBuffers]int
	var errs []error
	for _, o := range step {
		if !joined[o.stream] {
			joined[o.stream] = true
			errs = append(errs, edge(0, o.stream))
		}
		for _, b := range []int{o.from, o.to} {
			errs = append(errs, edge(last[b], o.stream))
			last[b] = o.stream
		}
		errs = append(errs, o.submit(streams[o.stream], bufs))
	}
	for i := range streams {
		if joined[i] {
			errs = append(errs, edge(i, 0))
		}
	}
	return errors.Join(errs...)
}

// A random step on several streams, captured and replayed in whatever stream, does what it
// does on plain slices, and nothing in it is unordered.
func TestAReplayDoesWhatTheStepDoes(t *testing.T) {
	adversary := &cpu.Adversary{Seed: 3, Poison: true, LateRead: true, CheckInputs: true, Delay: 100 * time.Microsecond, Reorder: true}
	model := cpu.H200()
	for name, o := range map[string]cpu.Options{
		"plain": {}, "model": {Model: &model}, "adversary": {Adversary: adversary}, "both": {Model: &model, Adversary: adversary},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				step, laps := drawStep(rt), rapid.IntRange(0, 4).Draw(rt, "laps")
				var want [][]byte
				for i := range stepBuffers {
					want = append(want, filled(byte(i), stepBytes))
				}
				for range laps {
					for _, o := range step {
						o.apply(want)
					}
				}
				var got [][]byte
				var unordered error
				synctest.Test(t, func(t *testing.T) { got, unordered = replay(t, o, step, laps) })
				require.Equal(rt, want, got)
				require.NoError(rt, unordered)
			})
		})
	}
}

// replay captures the step and launches it in turn in the stream of its capture and in
// another. It returns what the buffers hold then, and what the order checker found.
func replay(t *testing.T, o cpu.Options, step []stepOp, laps int) (mem [][]byte, unordered error) {
	drv, err := cpu.New(o)
	require.NoError(t, err)
	checker := order.New(order.Options{})
	r := &rig{t: t, Device: device.New(checker.Wrap(drv))}
	var streams []*device.Stream
	var bufs []device.View
	for i := range stepStreams {
		streams = append(streams, r.stream(fmt.Sprint(i)))
	}
	elsewhere, event := r.stream("elsewhere"), r.event("edge")
	for i := range stepBuffers {
		bufs = append(bufs, r.buffer(stepBytes))
		r.do(streams[0].Memset(bufs[i], byte(i)))
	}
	r.do(streams[0].Synchronize(background))
	x := r.exec(streams[0], func() { r.do(submitStep(step, streams, bufs, event)) })
	for i := range laps {
		r.do(x.Launch([]*device.Stream{streams[0], elsewhere}[i%2]))
	}
	r.do(r.Synchronize(background))
	for i := range bufs {
		mem = append(mem, r.hostBuffer(stepBytes))
		r.do(streams[0].CopyD2H(mem[i], bufs[i]))
	}
	r.do(streams[0].Synchronize(background))
	for i := range mem {
		mem[i] = bytes.Clone(mem[i]) // the memory ends with the device
	}
	r.close()
	return mem, checker.Err()
}
