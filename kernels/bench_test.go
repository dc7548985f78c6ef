package kernels

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels/kerneltest"
)

// A batch of 256 images of 224×224 pixels in three channels.
const (
	benchImages = 256
	benchPixels = 224 * 224
	benchBytes  = benchImages * benchPixels * 3
)

// launches are how many an iteration waits for at once, so that a GPU is not idle
// while the host wakes.
const launches = 8

// onEach runs a benchmark on the CPU device and on a GPU. moved is the number of
// bytes that a launch reads and writes.
func onEach(b *testing.B, moved int64, prepare func(r *kerneltest.Rig) func() error) {
	for _, on := range []struct {
		name string
		open func(testing.TB) *kerneltest.Rig
	}{{"cpu", kerneltest.Plain}, {"cuda", kerneltest.CUDA}} {
		b.Run("device="+on.name, func(b *testing.B) {
			r := on.open(b)
			launch := prepare(r)
			b.SetBytes(launches * moved)
			b.ReportAllocs()
			for b.Loop() {
				for range launches {
					if err := launch(); err != nil {
						b.Fatal(err)
					}
				}
				if err := r.Stream.Synchronize(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCopy is what memory itself allows.
func BenchmarkCopy(b *testing.B) {
	onEach(b, 2*benchBytes, func(r *kerneltest.Rig) func() error {
		in, out := r.Alloc(benchBytes), r.Alloc(benchBytes)
		return func() error { return r.Stream.CopyD2D(out, in) }
	})
}

func BenchmarkNormalize(b *testing.B) {
	for _, layout := range []Layout{Interleaved, ToPlanar, Planar} {
		for _, out := range []dtype.Type{dtype.Float32, dtype.BFloat16} {
			p := NormalizeParams{
				Mean: []float32{0.485, 0.456, 0.406}, Std: []float32{0.229, 0.224, 0.225},
				Layout: layout, Pixels: benchPixels, Out: out,
			}
			b.Run(fmt.Sprintf("layout=%v/out=%v", layout, out), func(b *testing.B) {
				onEach(b, int64(benchBytes*(1+out.Size())), func(r *kerneltest.Rig) func() error {
					in, to := r.Alloc(benchBytes), r.Alloc(benchBytes*out.Size())
					return func() error { return Normalize(r.Stream, to, in, p) }
				})
			})
		}
	}
}

func BenchmarkChecksum(b *testing.B) {
	onEach(b, benchBytes, func(r *kerneltest.Rig) func() error {
		in, out := r.Alloc(benchBytes), r.Alloc(8)
		return func() error { return Checksum(r.Stream, out, in) }
	})
}

func BenchmarkConvert(b *testing.B) {
	for _, c := range []struct{ from, to dtype.Type }{{dtype.Float32, dtype.BFloat16}, {dtype.Float16, dtype.Float32}} {
		b.Run(fmt.Sprintf("from=%v/to=%v", c.from, c.to), func(b *testing.B) {
			const n = benchBytes / 4
			onEach(b, int64(n*(c.from.Size()+c.to.Size())), func(r *kerneltest.Rig) func() error {
				in, out := r.Alloc(n*c.from.Size()), r.Alloc(n*c.to.Size())
				return func() error { return Convert(r.Stream, out, in, c.to, c.from) }
			})
		})
	}
}

func BenchmarkCrop(b *testing.B) {
	p := CropParams{Height: 256, Width: 256, OutHeight: 224, OutWidth: 224, PixelBytes: 3, FlipProbability: 0.5}
	onEach(b, 2*benchBytes, func(r *kerneltest.Rig) func() error {
		in, out := r.Alloc(benchImages*256*256*3), r.Alloc(benchBytes)
		return func() error { return Crop(r.Stream, out, in, p) }
	})
}

// BenchmarkGather reads rows in random order from pinned host memory, a batch of
// about 32 MiB at a time.
func BenchmarkGather(b *testing.B) {
	for _, row := range []int{784, 4096, 150_528} {
		b.Run(fmt.Sprintf("row=%d", row), func(b *testing.B) {
			n := 32 << 20 / row
			onEach(b, int64(n*row), func(r *kerneltest.Rig) func() error {
				table, err := r.Host(4 * n * row).View()
				if err != nil {
					b.Fatal(err)
				}
				out, index := r.Alloc(n*row), r.Upload(randomIndex(n, 4*n))
				p := GatherParams{RowBytes: int64(row), Index: dtype.Int32}
				return func() error { return Gather(r.Stream, out, table, index, p) }
			})
		})
	}
}

func randomIndex(n, count int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	index := make([]int32, n)
	for i := range index {
		index[i] = random.Int32N(int32(count))
	}
	return dtype.Bytes(index)
}
