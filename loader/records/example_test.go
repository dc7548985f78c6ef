package records_test

import (
	"context"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/records"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/prefetch"
)

// Each record is a label of one byte and a text of three.
func ExampleOpen() {
	ctx := context.Background()
	files, err := source.GlobFS(fstest.MapFS{
		"part-0.bin": {Data: []byte("\x01cow\x00bee\x01elk")},
		"part-1.bin": {Data: []byte("\x01doe\x00ant")},
	}, "part-{0..1}.bin")
	if err != nil {
		log.Fatal(err)
	}
	data, err := records.Open(ctx, files, []loader.Field{
		{Name: "hoofed", DType: dtype.Uint8},
		{Name: "name", DType: dtype.Uint8, Shape: []int{3}},
	}, records.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer data.Close()
	ld, err := loader.New(data, 3, loader.Options{Shuffle: true, Seed: 1, Epochs: 1})
	if err != nil {
		log.Fatal(err)
	}
	pf, err := prefetch.NewHost(ld, prefetch.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer pf.Close()
	for batch, err := range pf.All(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%q %v\n", batch.Field("name").Bytes, batch.Field("hoofed").Bytes)
	}
	fmt.Println("the fourth record is at", data.Origin(3))
	// Output:
	// "cowdoeelk" [1 1 1]
	// "antbee" [0 0]
	// the fourth record is at part-1.bin, record 0 at offset 0
}
