package kernels

import (
	"fmt"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
)

// MaxChannels is how many channels Normalize takes at most.
const MaxChannels = 8

// Layout is how a batch of images lies in memory before and after Normalize.
type Layout uint8

const (
	// Interleaved: a pixel's channels lie together, before and after (NHWC). It is
	// also the layout of flat data, which has one channel.
	Interleaved Layout = iota
	// ToPlanar: interleaved before (NHWC), one plane a channel after (NCHW).
	ToPlanar
	// Planar: one plane a channel, before and after (NCHW).
	Planar
	layouts
)

// String names the layout as its axes are named.
func (l Layout) String() string {
	return [...]string{"NHWC", "NHWC to NCHW", "NCHW", "unknown layout"}[min(l, layouts)]
}

// NormalizeParams says what Normalize does. The zero value takes 0…255 to 0…1 in
// float32.
type NormalizeParams struct {
	// Mean and Std are per channel, in units of the full range: with them a
	// byte v of channel c becomes (v/255 - Mean[c]) / Std[c]. A list of one
	// value is for every channel. A nil Mean is all 0, a nil Std all 1.
	Mean, Std []float32
	// Channels is the number of channels. 0 means as many as the longer of Mean and
	// Std has values, and at least 1.
	Channels int
	// Out is the element type of the result: Float32 (also if left out), Float16 or
	// BFloat16.
	Out dtype.Type
	// Layout says where the channels are.
	Layout Layout
	// Pixels is the number of pixels in a sample (height times width). Interleaved
	// has no need of it: 0.
	Pixels int64
}

func (p *NormalizeParams) channels() int {
	if p.Channels != 0 {
		return p.Channels
	}
	return max(1, len(p.Mean), len(p.Std))
}

func (p *NormalizeParams) out() dtype.Type {
	if p.Out == dtype.Invalid {
		return dtype.Float32
	}
	return p.Out
}

// coefficients of channel c: a byte v becomes v*scale, rounded, plus bias, rounded.
func (p *NormalizeParams) coefficients(c int) (scale, bias float32) {
	mean, deviation := channelValue(p.Mean, c, 0), channelValue(p.Std, c, 1)
	return float32(1 / (255 * deviation)), float32(-mean / deviation)
}

// channelValue is channel c's of values, which has none, one for all or one for each.
func channelValue(values []float32, c int, none float64) float64 {
	switch {
	case c < len(values):
		return float64(values[c])
	case len(values) == 1:
		return float64(values[0])
	}
	return none
}

// Normalize turns the uint8 images in into floating point of p.Out in out, which
// has as many elements as in has bytes. The arithmetic is float32; a 16-bit
// result is rounded once more.
func Normalize(s *device.Stream, out, in device.View, p NormalizeParams) error {
	if err := p.check(s, out, in); err != nil {
		return err
	}
	n := in.Size()
	if n == 0 {
		return nil
	}
	channels := p.channels()
	l := device.Launch{Kernel: normalizeKernels[p.Layout][half(p.out())]}
	switch p.Layout {
	case Interleaved:
		grid(&l, (n+3)/4)
	case ToPlanar:
		rows(&l, p.Pixels, n/p.Pixels/int64(channels))
	case Planar:
		rows(&l, p.Pixels, n/p.Pixels)
	}
	out.Out(&l.Args)
	in.In(&l.Args)
	l.Args.AddInt64(n)
	l.Args.AddInt64(p.Pixels)
	l.Args.AddUint32(uint32(channels))
	var bias [MaxChannels]float32
	for c := range bias {
		var scale float32
		if c < channels {
			scale, bias[c] = p.coefficients(c)
		}
		l.Args.AddFloat32(scale)
	}
	for _, b := range bias {
		l.Args.AddFloat32(b)
	}
	return s.Launch(&l)
}

// Validate reports every mistake in p itself, before there is memory to work on.
func (p *NormalizeParams) Validate() error { return p.mistakes().err("Normalize") }

func (p *NormalizeParams) mistakes() (m mistakes) {
	channels := p.channels()
	if channels < 1 || channels > MaxChannels {
		m.add("Channels", channels, "1 to %d", MaxChannels)
	}
	for _, f := range [...]struct {
		name string
		n    int
	}{{"Mean", len(p.Mean)}, {"Std", len(p.Std)}} {
		if f.n > 1 && f.n != channels {
			m.add("len("+f.name+")", f.n, "0, 1 or %d (Channels)", channels)
		}
	}
	for c := range min(channels, MaxChannels) {
		scale, bias := p.coefficients(c)
		if scale-scale != 0 || bias-bias != 0 { // infinite or NaN
			m.add(fmt.Sprintf("1/Std[%d] and -Mean[%[1]d]/Std[%[1]d]", c), [2]float32{scale * 255, bias}, "finite numbers")
		}
	}
	if p.Layout >= layouts {
		m.add("Layout", int(p.Layout), "Interleaved, ToPlanar or Planar")
	}
	if p.Pixels < 0 || p.Layout != Interleaved && p.Pixels == 0 {
		m.add("Pixels", p.Pixels, "more than 0 for layout %v", p.Layout)
	}
	if half(p.out()) < 0 {
		m.add("Out", p.Out, "float32, float16 or bfloat16")
	}
	return m
}

func (p *NormalizeParams) check(s *device.Stream, out, in device.View) error {
	m := p.mistakes()
	if sample, ok := multiply(int64(max(1, p.channels())), max(1, p.Pixels)); ok {
		m.whole("in", in, sample)
	} else {
		m.add("in.Size()", in.Size(), "a multiple of %d times %d (Pixels), which is more than 2^63", p.channels(), p.Pixels)
	}
	if t := p.out(); half(t) >= 0 {
		m.length("out", out, in.Size(), int64(t.Size()), "Out")
		m.view(s, "out", out, t.Size())
	}
	m.apart("out", out, "in", in)
	m.view(s, "in", in, 1)
	return m.err("Normalize")
}

// half numbers the floating-point types: -1 for any other.
func half(t dtype.Type) int {
	switch t {
	case dtype.Float32:
		return 0
	case dtype.Float16:
		return 1
	case dtype.BFloat16:
		return 2
	}
	return -1
}

// normalizeKernels are by layout and by half.
var normalizeKernels = [layouts][3]*device.Kernel{
	Interleaved: normalizeSet("normalize_nhwc", interleaved[float32], interleaved[uint16]),
	ToPlanar:    normalizeSet("normalize_nhwc_nchw", toPlanar[float32], toPlanar[uint16]),
	Planar:      normalizeSet("normalize_nchw", planar[float32], planar[uint16]),
}

func normalizeSet(name string, f32 func(*device.Args, func(float32) float32), f16 func(*device.Args, func(float32) uint16)) [3]*device.Kernel {
	same := func(f float32) float32 { return f }
	return [3]*device.Kernel{
		{Name: name + "_f32", Module: module, Go: func(a *device.Args) { f32(a, same) }},
		{Name: name + "_f16", Module: module, Go: func(a *device.Args) { f16(a, ToFloat16) }},
		{Name: name + "_bf16", Module: module, Go: func(a *device.Args) { f16(a, ToBFloat16) }},
	}
}

// A byte has only 256 values a channel, so the Go versions look results up. What
// is left is bound by memory.
type lookup[T any] [MaxChannels][256]T

func (t *lookup[T]) fill(a *device.Args, channels int, round func(float32) T) {
	for c := range channels {
		scale, bias := a.Float32(5+c), a.Float32(5+MaxChannels+c)
		for v := range t[c] {
			t[c][v] = round(float32(float32(v)*scale) + bias)
		}
	}
}

func interleaved[T any](a *device.Args, round func(float32) T) {
	out, in, channels := device.Elements[T](a, 0), a.Bytes(1), int(a.Uint32(4))
	var t lookup[T]
	t.fill(a, channels, round)
	out = out[:len(in)]
	switch channels {
	case 1:
		for i, v := range in {
			out[i] = t[0][v]
		}
	case 3:
		for len(in) >= 3 && len(out) >= 3 {
			out[0], out[1], out[2] = t[0][in[0]], t[1][in[1]], t[2][in[2]]
			in, out = in[3:], out[3:]
		}
	default:
		for i := 0; i < len(in); i += channels {
			pixel := out[i:][:channels]
			for c, v := range in[i:][:channels] {
				pixel[c] = t[c][v]
			}
		}
	}
}

func toPlanar[T any](a *device.Args, round func(float32) T) {
	out, in, pixels, channels := device.Elements[T](a, 0), a.Bytes(1), int(a.Int64(3)), int(a.Uint32(4))
	var t lookup[T]
	t.fill(a, channels, round)
	for sample := pixels * channels; len(in) > 0; in, out = in[sample:], out[sample:] {
		for c := range channels {
			plane := out[c*pixels:][:pixels]
			for p, i := 0, c; p < len(plane); p, i = p+1, i+channels {
				plane[p] = t[c][in[i]]
			}
		}
	}
}

func planar[T any](a *device.Args, round func(float32) T) {
	out, in, pixels, channels := device.Elements[T](a, 0), a.Bytes(1), int(a.Int64(3)), int(a.Uint32(4))
	var t lookup[T]
	t.fill(a, channels, round)
	for c := 0; len(in) > 0; in, out = in[pixels:], out[pixels:] {
		plane := out[:pixels]
		for p, v := range in[:pixels] {
			plane[p] = t[c][v]
		}
		if c++; c == channels {
			c = 0
		}
	}
}
