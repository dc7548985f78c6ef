package kernels

import (
	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
)

// Convert turns in, of element type from, into out, of element type to. Both are
// Uint8, Float16, BFloat16 or Float32. Numbers are not scaled: a uint8 of 255
// becomes 255.0. Between the 16-bit types a number goes through float32, which
// holds both exactly. If the types are the same the bytes are copied as they are.
func Convert(s *device.Stream, out, in device.View, to, from dtype.Type) error {
	var m mistakes
	toIndex, fromIndex := convertible(to), convertible(from)
	if fromIndex < 0 {
		m.add("from", from, convertibles)
	}
	if toIndex < 0 {
		m.add("to", to, convertibles)
	}
	if len(m) > 0 {
		return m.err("Convert")
	}
	n := in.Size() / int64(from.Size())
	m.whole("in", in, int64(from.Size()))
	m.length("out", out, n, int64(to.Size()), "to")
	m.apart("out", out, "in", in)
	m.view(s, "out", out, to.Size())
	m.view(s, "in", in, from.Size())
	if err := m.err("Convert"); err != nil || n == 0 {
		return err
	}
	if to == from {
		return s.CopyD2D(out, in)
	}
	l := device.Launch{Kernel: convertKernels[fromIndex][toIndex]}
	grid(&l, n)
	out.Out(&l.Args)
	in.In(&l.Args)
	l.Args.AddInt64(n)
	return s.Launch(&l)
}

// Convertible reports whether Convert and Fill take elements of type t.
func Convertible(t dtype.Type) bool { return convertible(t) >= 0 }

// convertibles are the types that Convert and Fill take, in words.
const convertibles = "uint8, float16, bfloat16 or float32"

// convertible numbers the types of convertKernels: -1 for any other.
func convertible(t dtype.Type) int {
	switch t {
	case dtype.Uint8:
		return 0
	case dtype.Float16:
		return 1
	case dtype.BFloat16:
		return 2
	case dtype.Float32:
		return 3
	}
	return -1
}

// convertKernels are by source, then by destination.
var convertKernels = [4][4]*device.Kernel{
	{
		1: convertKernel("u8_f16", func(v uint8) uint16 { return ToFloat16(float32(v)) }),
		2: convertKernel("u8_bf16", func(v uint8) uint16 { return ToBFloat16(float32(v)) }),
		3: convertKernel("u8_f32", func(v uint8) float32 { return float32(v) }),
	},
	{
		0: convertKernel("f16_u8", func(v uint16) uint8 { return ToUint8(FromFloat16(v)) }),
		2: convertKernel("f16_bf16", func(v uint16) uint16 { return ToBFloat16(FromFloat16(v)) }),
		3: convertKernel("f16_f32", FromFloat16),
	},
	{
		0: convertKernel("bf16_u8", func(v uint16) uint8 { return ToUint8(FromBFloat16(v)) }),
		1: convertKernel("bf16_f16", func(v uint16) uint16 { return ToFloat16(FromBFloat16(v)) }),
		3: convertKernel("bf16_f32", FromBFloat16),
	},
	{
		0: convertKernel("f32_u8", ToUint8),
		1: convertKernel("f32_f16", ToFloat16),
		2: convertKernel("f32_bf16", ToBFloat16),
	},
}

func convertKernel[From, To any](name string, convert func(From) To) *device.Kernel {
	return &device.Kernel{Name: "convert_" + name, Module: module, Go: func(a *device.Args) {
		in := device.Elements[From](a, 1)
		out := device.Elements[To](a, 0)[:len(in)]
		for i, v := range in {
			out[i] = convert(v)
		}
	}}
}
