package probe

import (
	_ "embed"

	"github.com/leat-go/leat/device"
)

//go:generate ./generate.sh

//go:embed product.ptx
var ptx string

var product = &device.Kernel{
	Name:   "product",
	Module: device.RegisterModule(&device.Module{Name: "product", PTX: ptx}),
	Go: func(a *device.Args) {
		n := int(a.Int32(3))
		out := device.Elements[float32](a, 0)
		multiply(out, device.Elements[float32](a, 1), device.Elements[float32](a, 2), n, 0, n)
	},
}

// tile is the side of what a block of threads computes. A matrix's side is a
// multiple of it.
const tile = 16

// submitProduct submits out = a·b, all n×n float32, row-major.
func submitProduct(s *device.Stream, out, a, b device.View, n int) error {
	blocks := uint32(n / tile)
	l := device.Launch{Kernel: product, Grid: [3]uint32{blocks, blocks, 1}, Block: [3]uint32{tile, tile, 1}}
	out.Out(&l.Args)
	a.In(&l.Args)
	b.In(&l.Args)
	l.Args.AddInt32(int32(n))
	return s.Launch(&l)
}

// multiply computes rows from to to of out = a·b into out. Each element is summed in
// order, each product rounded by itself.
func multiply(out, a, b []float32, n, from, to int) {
	clear(out[from*n : to*n])
	for i := from; i < to; i++ {
		row := out[i*n:][:n]
		for k, f := range a[i*n:][:n] {
			for j, g := range b[k*n:][:n] {
				row[j] += float32(f * g)
			}
		}
	}
}
