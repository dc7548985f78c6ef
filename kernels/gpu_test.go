package kernels

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels/kerneltest"
)

// TestGoAndPTXAgree needs a GPU. Odd sizes and odd starts exercise the ways around
// the vectorised loops.
func TestGoAndPTXAgree(t *testing.T) {
	var cases []kerneltest.Case
	add := func(name string, run func(r *kerneltest.Rig) []device.View) {
		cases = append(cases, kerneltest.Case{Name: name, Run: run})
	}
	for _, layout := range []Layout{Interleaved, ToPlanar, Planar} {
		for _, out := range []dtype.Type{dtype.Float32, dtype.Float16, dtype.BFloat16} {
			for channels := 1; channels <= MaxChannels; channels++ {
				add(fmt.Sprintf("Normalize/layout=%v/out=%v/channels=%d", layout, out, channels), normalizeCase(layout, out, channels))
			}
		}
	}
	for _, from := range convertibleTypes {
		for _, to := range convertibleTypes {
			add(fmt.Sprintf("Convert/from=%v/to=%v", from, to), func(r *kerneltest.Rig) []device.View {
				in := every(from)
				out := r.Alloc(len(in) / from.Size() * to.Size())
				require.NoError(r.T, Convert(r.Stream, out, r.Upload(in), to, from))
				return []device.View{out}
			})
		}
	}
	for _, labels := range []dtype.Type{dtype.Uint8, dtype.Int32, dtype.Int64} {
		add(fmt.Sprintf("OneHot/labels=%v", labels), oneHotCase(labels))
	}
	add("Checksum", checksumCase)
	for _, index := range []dtype.Type{dtype.Int32, dtype.Int64} {
		for _, row := range []int{1, 7, 784, 1000, 4096, 150_528} {
			add(fmt.Sprintf("Gather/index=%v/row=%d", index, row), gatherCase(index, row))
		}
	}
	for _, pixel := range []int{1, 3, 4, 12} {
		for _, centre := range []bool{false, true} {
			add(fmt.Sprintf("Crop/pixel=%d/centre=%v", pixel, centre), cropCase(pixel, centre))
		}
	}
	for _, typ := range convertibleTypes {
		add(fmt.Sprintf("Fill/type=%v", typ), func(r *kerneltest.Rig) []device.View {
			out := r.Alloc(100_001 * typ.Size())
			require.NoError(r.T, Fill(r.Stream, out, typ, 0.1))
			return []device.View{out}
		})
	}
	kerneltest.Agree(t, cases)
}

func normalizeCase(layout Layout, out dtype.Type, channels int) func(r *kerneltest.Rig) []device.View {
	return func(r *kerneltest.Rig) []device.View {
		random := rand.New(rand.NewPCG(5, uint64(channels)))
		p := NormalizeParams{Layout: layout, Out: out}
		for range channels {
			p.Mean = append(p.Mean, random.Float32())
			p.Std = append(p.Std, random.Float32()+0.1)
		}
		var views []device.View
		for _, pixels := range []int{1, 63, 4096, 50_176} {
			p.Pixels = int64(pixels)
			n := 3 * pixels * channels
			in := r.Upload(randomBytes(uint64(n), n+1))
			for start := range int64(2) {
				v := r.Alloc(n * out.Size())
				require.NoError(r.T, Normalize(r.Stream, v, in.Slice(start, int64(n)), p))
				views = append(views, v)
			}
		}
		return views
	}
}

func oneHotCase(labels dtype.Type) func(r *kerneltest.Rig) []device.View {
	return func(r *kerneltest.Rig) []device.View {
		var views []device.View
		for _, classes := range []int{1, 10, 300} {
			const n = 1001
			random := rand.New(rand.NewPCG(6, 6))
			raw := make([]int64, n)
			for i := range raw {
				raw[i] = random.Int64N(int64(classes)+4) - 2
			}
			raw[0], raw[1] = 1<<32, -1<<40
			var b []byte
			for _, label := range raw {
				b = append(b, dtype.Bytes([]int64{label})[:labels.Size()]...)
			}
			out := r.Alloc(n * classes * 4)
			require.NoError(r.T, OneHot(r.Stream, out, r.Upload(b), OneHotParams{Labels: labels, Classes: classes}))
			views = append(views, out)
		}
		return views
	}
}

func checksumCase(r *kerneltest.Rig) []device.View {
	var views []device.View
	for _, n := range []int{0, 1, 7, 8, 9, 63, 4096, 1<<22 + 5} {
		in := r.Upload(randomBytes(uint64(n), n+1))
		for start := range int64(2) {
			out := r.Alloc(8)
			require.NoError(r.T, Checksum(r.Stream, out, in.Slice(start, int64(n))))
			views = append(views, out)
		}
	}
	return views
}

func gatherCase(index dtype.Type, row int) func(r *kerneltest.Rig) []device.View {
	return func(r *kerneltest.Rig) []device.View {
		const count, n = 37, 50
		table := r.Host(row * count)
		copy(table.Bytes(), randomBytes(uint64(row), row*count))
		host, err := table.View()
		require.NoError(r.T, err)
		random := rand.New(rand.NewPCG(8, 8))
		var b []byte
		for range n {
			b = append(b, dtype.Bytes([]int64{random.Int64N(count+2) - 1})[:index.Size()]...)
		}
		var views []device.View
		for _, from := range []device.View{host, r.Upload(table.Bytes())} {
			out := r.Alloc(row * n)
			require.NoError(r.T, Gather(r.Stream, out, from, r.Upload(b), GatherParams{RowBytes: int64(row), Index: index}))
			views = append(views, out)
		}
		return views
	}
}

func cropCase(pixel int, centre bool) func(r *kerneltest.Rig) []device.View {
	return func(r *kerneltest.Rig) []device.View {
		const images = 33
		p := CropParams{
			Height: 40, Width: 48, OutHeight: 33, OutWidth: 47, PixelBytes: pixel, Pad: 5, FlipProbability: 0.3, Centre: centre,
			Seed: 1<<63 + 5, Epoch: 7, Position: 1 << 40,
		}
		in := r.Upload(randomBytes(uint64(pixel), images*p.Height*p.Width*pixel))
		out := r.Alloc(images * p.OutHeight * p.OutWidth * pixel)
		require.NoError(r.T, Crop(r.Stream, out, in, p))
		return []device.View{out}
	}
}

func TestSpinTakesItsTimeOnTheGPU(t *testing.T) {
	r := kerneltest.CUDA(t)
	start, end := timer(r), timer(r)
	const d = 20 * time.Millisecond
	require.NoError(t, r.Stream.Record(start))
	require.NoError(t, Spin(r.Stream, d))
	require.NoError(t, r.Stream.Record(end))
	require.NoError(t, r.Stream.Synchronize(t.Context()))
	took, err := device.Elapsed(start, end)
	require.NoError(t, err)
	require.InDelta(t, d, took, float64(time.Millisecond))
}

func timer(r *kerneltest.Rig) *device.Event {
	e, err := r.Device.NewEvent(device.EventOptions{Timing: true})
	require.NoError(r.T, err)
	r.T.Cleanup(func() { require.NoError(r.T, e.Close()) })
	return e
}
