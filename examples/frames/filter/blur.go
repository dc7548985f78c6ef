package filter

import (
	"math"

	"github.com/leat-go/leat/device"
)

// MaxRadius is how far a blur reaches at most, in pixels to each side.
const MaxRadius = 8

// channels of a pixel: red, green and blue lie together.
const channels = 3

// weights are those of a pixel and of its neighbours at each distance, which count
// on both sides. With all of both sides they sum up to one.
type weights [MaxRadius + 1]uint32

// one is 1 in the weights' unit.
const one = 1 << 16

// gaussian is a bell that reaches two standard deviations to each side.
func gaussian(radius int) weights {
	var bell [MaxRadius + 1]float64
	total := 0.0
	for k := range radius + 1 {
		x := 2 * float64(k) / float64(radius)
		bell[k] = math.Exp(-x * x / 2)
		total += bell[k]
		if k > 0 {
			total += bell[k]
		}
	}
	w := weights{one}
	for k := 1; k <= radius; k++ {
		w[k] = uint32(math.Round(one * bell[k] / total))
		w[0] -= 2 * w[k] // what rounding leaves over is the centre's
	}
	return w
}

// Between the two ways a value has 8 more bits, 65280 for 255, so that a blur
// rounds but once to a byte. The largest sum of the second way and the half that
// rounds it just fit 32 bits.
var (
	horizontal = &device.Kernel{Name: "blur_horizontal", Module: module, Go: blurHorizontal}
	vertical   = &device.Kernel{Name: "blur_vertical", Module: module, Go: blurVertical}
)

// blurWay submits one way of a blur of the picture in.
func (f *Filter) blurWay(s *device.Stream, kernel *device.Kernel, out, in device.View) error {
	l := device.Launch{Kernel: kernel}
	perRow(&l, f.options.Height)
	out.Out(&l.Args)
	in.In(&l.Args)
	l.Args.AddInt32(int32(f.options.Width))
	l.Args.AddInt32(int32(f.options.Height))
	for _, w := range f.weights {
		l.Args.AddUint32(w)
	}
	return s.Launch(&l)
}

func argWeights(a *device.Args) (w weights) {
	for k := range w {
		w[k] = a.Uint32(4 + k)
	}
	return w
}

func blurHorizontal(a *device.Args) {
	out, in := device.Elements[uint16](a, 0), a.Bytes(1)
	row, height, w := channels*int(a.Int32(2)), int(a.Int32(3)), argWeights(a)
	const side = channels * MaxRadius
	wide := make([]byte, side+row+side) // a row that goes on beyond its ends
	sum := make([]uint32, row)
	for y := range height {
		src, dst := in[y*row:][:row], out[y*row:][:row]
		copy(wide[side:], src)
		for i := 0; i < side; i += channels {
			copy(wide[i:], src[:channels])
			copy(wide[side+row+i:], src[row-channels:])
		}
		weigh(sum, &w, func(k int) (before, after []byte) {
			return wide[side-k*channels:], wide[side+k*channels:]
		})
		for i, v := range sum {
			dst[i] = uint16((v + 1<<7) >> 8)
		}
	}
}

func blurVertical(a *device.Args) {
	out, in := a.Bytes(0), device.Elements[uint16](a, 1)
	row, height, w := channels*int(a.Int32(2)), int(a.Int32(3)), argWeights(a)
	sum := make([]uint32, row)
	for y := range height {
		weigh(sum, &w, func(k int) (before, after []uint16) {
			return in[max(y-k, 0)*row:], in[min(y+k, height-1)*row:]
		})
		for i, v := range sum {
			out[y*row+i] = uint8((v + 1<<23) >> 24)
		}
	}
}

// weigh adds up a row's neighbours: at gives those at distance k on both sides, at
// 0 the row itself twice.
func weigh[T uint8 | uint16](sum []uint32, w *weights, at func(k int) (before, after []T)) {
	centre, _ := at(0)
	for i, v := range centre[:len(sum)] {
		sum[i] = w[0] * uint32(v)
	}
	for k := 1; k <= MaxRadius && w[k] > 0; k++ {
		before, after := at(k)
		before, after = before[:len(sum)], after[:len(sum)]
		for i := range sum {
			sum[i] += w[k] * (uint32(before[i]) + uint32(after[i]))
		}
	}
}
