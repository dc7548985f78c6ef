package nn

import (
	"fmt"
	"testing"

	"github.com/leat-go/leat/kernels/kerneltest"
)

// BenchmarkStep trains the network for MNIST on one batch over and over.
func BenchmarkStep(b *testing.B) {
	for _, on := range []struct {
		name string
		open func(testing.TB) *kerneltest.Rig
	}{{"cpu", kerneltest.Plain}, {"cuda", kerneltest.CUDA}} {
		for _, n := range []int{64, 256, 1024} {
			b.Run(fmt.Sprintf("device=%s/batch=%d", on.name, n), func(b *testing.B) {
				r := on.open(b)
				net := newNetwork(b, r, Options{Inputs: 784, Classes: 10, MaxBatch: n})
				pixels, labels := samples(1, n, 784, 10)
				images, labelView := r.Upload(pixels), r.Upload(labels)
				b.ReportAllocs()
				for b.Loop() {
					if err := net.Step(r.Stream, images, labelView, n); err != nil {
						b.Fatal(err)
					}
					// The loop must not run ahead of the device without end.
					if net.used == 256 {
						if _, err := net.Report(b.Context(), r.Stream); err != nil {
							b.Fatal(err)
						}
					}
				}
				if _, err := net.Report(b.Context(), r.Stream); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
