package kernels

import (
	"math"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
)

// Fill sets every element of out, of element type t, to value, rounded to t as
// Convert rounds. t is Uint8, Float16, BFloat16 or Float32.
func Fill(s *device.Stream, out device.View, t dtype.Type, value float32) error {
	var m mistakes
	pattern, ok := fillPattern(t, value)
	if !ok {
		m.add("t", t, convertibles)
	} else {
		m.whole("out", out, int64(t.Size()))
		m.view(s, "out", out, t.Size())
	}
	if err := m.err("Fill"); err != nil || out.Size() == 0 {
		return err
	}
	if t == dtype.Uint8 {
		return s.Memset(out, byte(pattern))
	}
	l := device.Launch{Kernel: fill16}
	if t == dtype.Float32 {
		l.Kernel = fill32
	}
	n := out.Size() / int64(t.Size())
	grid(&l, n)
	out.Out(&l.Args)
	l.Args.AddInt64(n)
	l.Args.AddUint32(pattern)
	return s.Launch(&l)
}

func fillPattern(t dtype.Type, value float32) (pattern uint32, ok bool) {
	switch t {
	case dtype.Uint8:
		return uint32(ToUint8(value)), true
	case dtype.Float16:
		return uint32(ToFloat16(value)), true
	case dtype.BFloat16:
		return uint32(ToBFloat16(value)), true
	case dtype.Float32:
		return math.Float32bits(value), true
	}
	return 0, false
}

var (
	fill16 = &device.Kernel{Name: "fill_16", Module: module, Go: fill[uint16]}
	fill32 = &device.Kernel{Name: "fill_32", Module: module, Go: fill[uint32]}
)

func fill[T uint16 | uint32](a *device.Args) {
	out, pattern := device.Elements[T](a, 0), T(a.Uint32(2))
	for i := range out {
		out[i] = pattern
	}
}
