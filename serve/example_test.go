package serve_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/serve"
)

// A Queue on a device: pixels become floating-point numbers.
func Example() {
	dev, err := cpu.Open(cpu.Options{}) // auto.Open takes a GPU where there is one
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	compute, err := dev.NewStream(device.StreamOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer compute.Close()

	model := serve.Model[[]uint8, []float32]{
		In: []loader.Field{{Name: "pixels", DType: dtype.Uint8, Shape: []int{4}}},
		Encode: func(_ context.Context, pixels []uint8, row *loader.Row) error {
			return loader.Write(row, "pixels", pixels...) // an error if there are not 4
		},
		Out:    []loader.Field{{Name: "numbers", DType: dtype.Float32, Shape: []int{4}}},
		Decode: func(a serve.Answer) ([]float32, error) { return serve.Values[float32](a, "numbers") },
	}
	step := func(b prefetch.Batch, out prefetch.Fields) error {
		return kernels.Convert(b.Stream(), out.Field("numbers").View, b.Field("pixels").View, dtype.Float32, dtype.Uint8)
	}
	q, err := serve.New(compute, 32, model, step, serve.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	fmt.Println(q.Do(context.Background(), []uint8{0, 51, 102, 255}))
	fmt.Println(q.Do(context.Background(), []uint8{0, 51, 102}))
	// Output:
	// [0 51 102 255] <nil>
	// [] serve: encode: a value of 3 elements for field pixels uint8[4], want 4
}
