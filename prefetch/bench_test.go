package prefetch_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// nothing is a dataset without bytes: what is left is the machinery.
type nothing struct{}

func (nothing) Len() int { return min(1<<40, math.MaxInt) }
func (nothing) Fields() []loader.Field {
	return []loader.Field{{Name: "none", DType: dtype.Uint8, Shape: []int{1}}}
}
func (nothing) Read(_ context.Context, _ int, row *loader.Row) error {
	row.Bytes("none")[0] = 1
	return nil
}

// BenchmarkMachinery is the cost of a batch of one sample, with a model that does
// nothing: from the workers over both rings to Release.
func BenchmarkMachinery(b *testing.B) {
	for _, depth := range []int{1, 3} {
		b.Run(fmt.Sprintf("device=cpu/depth=%d", depth), func(b *testing.B) {
			dev, err := cpu.Open(cpu.Options{})
			if err != nil {
				b.Fatal(err)
			}
			compute, err := dev.NewStream(device.StreamOptions{})
			if err != nil {
				b.Fatal(err)
			}
			pf, err := prefetch.New(compute, machinery(b), prefetch.Options{Depth: depth})
			if err != nil {
				b.Fatal(err)
			}
			benchmark(b, pf)
		})
	}
	b.Run("device=none", func(b *testing.B) {
		pf, err := prefetch.NewHost(machinery(b), prefetch.Options{})
		if err != nil {
			b.Fatal(err)
		}
		benchmark(b, pf)
	})
}

func machinery(b *testing.B) *loader.Loader {
	ld, err := loader.New(nothing{}, 1, loader.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return ld
}

func benchmark(b *testing.B, pf *prefetch.Prefetcher) {
	defer pf.Close()
	b.ReportAllocs()
	rd, err := pf.Open(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	defer rd.Close()
	for b.Loop() {
		batch, err := rd.Next(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		batch.Release()
	}
}
