package chain_test

import (
	"context"
	"fmt"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/chain"
)

// brightness writes the mean of each image of bytes: a Go function for the CPU device.
// For a GPU the Kernel would name a Module of PTX too.
var brightness = &device.Kernel{
	Name: "brightness",
	Go: func(a *device.Args) {
		out, in := device.Elements[float32](a, 0), device.Elements[uint8](a, 1)
		size := len(in) / len(out)
		for row := range out {
			sum := 0
			for _, v := range in[row*size:][:size] {
				sum += int(v)
			}
			out[row] = float32(sum) / float32(size)
		}
	},
}

// Brightness is an operation of one's own: images of bytes, of any shape, become one
// float32 each.
func Brightness(field string) chain.Op {
	return chain.Op{
		Name:  "Brightness",
		Field: field,
		Output: func(in loader.Field) (loader.Field, error) {
			if in.DType != dtype.Uint8 {
				return in, &chain.OptionError{Option: "DType", Value: in.DType, Want: "uint8"}
			}
			return loader.Field{DType: dtype.Float32}, nil
		},
		Apply: func(s *device.Stream, out, in prefetch.Field, _ prefetch.Fields) error {
			launch := device.Launch{Kernel: brightness, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
			out.View.Out(&launch.Args)
			in.View.In(&launch.Args)
			return s.Launch(&launch)
		},
	}
}

// For a host consumer the same kernels run in their Go form.
func ExampleOp() {
	transform, err := chain.New(Photos{}.Fields(),
		chain.Crop("image", 4, 4, chain.CropOptions{Centre: true}),
		Brightness("image"))
	check(err)
	ld, err := loader.New(Photos{}, 5, loader.Options{})
	check(err)
	pf, err := prefetch.NewHost(ld, prefetch.Options{Transform: transform})
	check(err)
	defer pf.Close()
	for batch, err := range pf.Batches(context.Background()) {
		check(err)
		fmt.Println(batch.Field("image").DType, batch.Field("image").Shape)
	}

	_, err = chain.New(Photos{}.Fields(), Brightness("label"))
	fmt.Println(err)
	// Output:
	// float32 [5]
	// float32 [5]
	// chain: operation 0, Brightness of label int64: DType is int64, want uint8
}
