package cpu_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
)

// instruction is one operation of a random program: it computes slot dst from slot
// src (or a constant) on one of several streams.
type instruction struct {
	Op       string
	Stream   int
	Dst, Src int
	Value    byte
}

const slotBytes = 48

// blend is a kernel whose result depends on both of its ranges.
var blend = &device.Kernel{
	Name: "blend",
	Go: func(a *device.Args) {
		in, out := a.Bytes(0), a.Bytes(1)
		for i := range out {
			out[i] = out[i]*3 + in[i] + 1
		}
	},
}

// interpret runs a program one instruction after the other.
func interpret(program []instruction, slots int) [][]byte {
	mem := make([][]byte, slots)
	for i := range mem {
		mem[i] = make([]byte, slotBytes)
	}
	for _, x := range program {
		switch x.Op {
		case "set", "upload":
			copy(mem[x.Dst], filled(x.Value, slotBytes))
		case "copy", "through the host":
			copy(mem[x.Dst], mem[x.Src])
		case "blend":
			for i := range slotBytes {
				mem[x.Dst][i] = mem[x.Dst][i]*3 + mem[x.Src][i] + 1
			}
		}
	}
	return mem
}

// execute submits a program to devices, with an event for each instruction that a
// later one of another stream conflicts with, and no more. Slots and streams are
// dealt to the devices in turn.
func execute(rigs []*rig, program []instruction, streams, slots int) [][]byte {
	var queues []*device.Stream
	on := func(i int) *rig { return rigs[i%len(rigs)] }
	for i := range streams {
		queues = append(queues, on(i).stream(fmt.Sprint(i)))
	}
	mem := make([]device.View, slots)
	for i := range mem {
		r := on(i)
		mem[i] = r.buffer(slotBytes)
		clear := r.stream("clear")
		r.do(clear.Memset(mem[i], 0), clear.Synchronize(background))
	}
	events := make([]*device.Event, len(program))
	for i, x := range program {
		s, r := queues[x.Stream], on(x.Stream)
		for j, earlier := range program[:i] {
			if earlier.Stream != x.Stream && (earlier.Dst == x.Dst || earlier.Dst == x.Src || earlier.Src == x.Dst) {
				r.do(s.Wait(events[j]))
			}
		}
		switch x.Op {
		case "set":
			r.do(s.Memset(mem[x.Dst], x.Value))
		case "upload":
			host := r.hostBuffer(slotBytes)
			copy(host, filled(x.Value, slotBytes))
			r.do(s.CopyH2D(mem[x.Dst], host))
		case "copy":
			r.do(s.CopyPeer(mem[x.Dst], mem[x.Src]))
		case "through the host":
			host := r.hostBuffer(slotBytes)
			r.do(s.CopyD2H(host, mem[x.Src]), s.HostFunc(func() {}), s.CopyH2D(mem[x.Dst], host))
		case "blend":
			l := &device.Launch{Kernel: blend, Grid: [3]uint32{1}, Block: [3]uint32{1}}
			mem[x.Src].In(&l.Args)
			mem[x.Dst].InOut(&l.Args)
			r.do(s.Launch(l))
		}
		events[i] = r.event(fmt.Sprint(i))
		r.do(s.Record(events[i]))
	}
	for _, r := range rigs {
		r.do(r.Synchronize(background))
	}
	result := make([][]byte, slots)
	for i := range mem {
		result[i] = make([]byte, slotBytes)
		r := on(i)
		read := r.stream("read")
		r.do(read.CopyD2H(result[i], mem[i]), read.Synchronize(background))
	}
	return result
}

// deal gives each instruction to a device that can run it: a copy to that of either
// slot, all else to the one that has both.
func deal(program []instruction, devices int) {
	for i := range program {
		x := &program[i]
		to, from, at := x.Dst%devices, x.Src%devices, x.Stream%devices
		if to != from && (x.Op == "blend" || x.Op == "through the host") {
			x.Op = "copy"
		}
		if at != to && (x.Op != "copy" || at != from) {
			x.Stream += to - at
		}
	}
}

// A program whose conflicts are ordered by events gives the same bytes as one run
// in order, on any device or several, however unkind.
func TestAnyProgramGivesItsResult(t *testing.T) {
	const streams, slots = 6, 5 // streams can be dealt evenly to up to three devices
	anyInstruction := rapid.Custom(func(rt *rapid.T) instruction {
		x := instruction{
			Op:     rapid.SampledFrom([]string{"set", "upload", "copy", "through the host", "blend"}).Draw(rt, "op"),
			Stream: rapid.IntRange(0, streams-1).Draw(rt, "stream"),
			Dst:    rapid.IntRange(0, slots-1).Draw(rt, "dst"),
			Src:    rapid.IntRange(0, slots-1).Draw(rt, "src"),
			Value:  rapid.Byte().Draw(rt, "value"),
		}
		if x.Src == x.Dst {
			x.Src = (x.Dst + 1) % slots
		}
		return x
	})
	link := cpu.Link{BytesPerSecond: slotBytes * 1000}
	models := []*cpu.Model{nil, {}, {
		H2D: link, D2H: link, D2D: link, Peer: link, ComputeEngines: 2,
		KernelTime: func(*device.Launch) time.Duration { return ms },
	}, {H2D: link, SharedCopyEngines: true}, {Peer: cpu.Link{Latency: ms}}}
	rapid.Check(t, func(rt *rapid.T) {
		program := rapid.SliceOfN(anyInstruction, 1, 40).Draw(rt, "program")
		devices := rapid.IntRange(1, 3).Draw(rt, "devices")
		deal(program, devices)
		o := cpu.Options{Model: rapid.SampledFrom(models).Draw(rt, "model")}
		if rapid.Bool().Draw(rt, "unkind") {
			o.Adversary = &cpu.Adversary{
				Seed: rapid.Uint64().Draw(rt, "seed"), Poison: true, CheckInputs: true,
				LateRead: rapid.Bool().Draw(rt, "late"), Reorder: rapid.Bool().Draw(rt, "reorder"),
				Delay: time.Duration(rapid.IntRange(0, 3).Draw(rt, "delay")) * ms,
			}
		}
		var got [][]byte
		synctest.Test(t, func(t *testing.T) {
			rigs := openAll(t, devices, o)
			got = execute(rigs, program, streams, slots)
			closeAll(rigs)
		})
		require.Equal(rt, interpret(program, slots), got)
	})
}
