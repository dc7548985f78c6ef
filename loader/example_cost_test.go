package loader_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// scans are volumes of different sizes. Large ones take long to read.
type scans struct{ bytes []int64 }

func (s scans) Len() int { return len(s.bytes) }

func (s scans) Fields() []loader.Field { return []loader.Field{{Name: "scan", DType: dtype.Int64}} }

func (s scans) Read(_ context.Context, i int, row *loader.Row) error {
	return loader.Write(row, "scan", int64(i))
}

// Cost has large scans begun early. Any unit will do.
func (s scans) Cost(i int) float64 { return float64(s.bytes[i]) }

// Samples that cost much are begun before their turn, and delivered in their turn.
func ExampleCoster() {
	data := scans{bytes: []int64{10, 11, 12, 10, 9, 500, 10, 11}}
	ld, err := loader.New(data, 4, loader.Options{Epochs: 1})
	if err != nil {
		log.Fatal(err)
	}
	mem, err := loader.NewHeap(ld.Layout().Size(), 2)
	if err != nil {
		log.Fatal(err)
	}
	run := ld.Start(context.Background(), loader.Cursor{}, mem)
	defer run.Close()
	for {
		batch, err := run.Next(context.Background())
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(dtype.As[int64](batch.Slot.Bytes[:ld.Layout().Size()])[:batch.N])
		mem.Put(batch.Slot)
	}
	// Output:
	// [0 1 2 3]
	// [4 5 6 7]
	// leat: end of epoch
}
