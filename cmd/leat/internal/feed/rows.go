package feed

import (
	"context"
	"slices"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/loader"
)

// Rows is a loader.Dataset of random uint8 samples in ordinary memory. A sample is
// copied once, into its place in the batch.
type Rows struct {
	data  []byte
	shape []int
	bytes int // of a sample
}

// NewRows makes so many samples of the given shape.
func NewRows(samples int, shape ...int) *Rows {
	r := &Rows{shape: slices.Clone(shape), bytes: 1}
	for _, dim := range shape {
		r.bytes *= dim
	}
	r.data = make([]byte, samples*r.bytes)
	Random(r.data)
	return r
}

// Len implements loader.Dataset.
func (r *Rows) Len() int { return len(r.data) / r.bytes }

// Fields implements loader.Dataset.
func (r *Rows) Fields() []loader.Field {
	return []loader.Field{{Name: "batch", DType: dtype.Uint8, Shape: r.shape}}
}

// Read implements loader.Dataset.
func (r *Rows) Read(_ context.Context, index int, row *loader.Row) error {
	return loader.Write(row, "batch", r.sample(index)...)
}

func (r *Rows) sample(index int) []byte { return r.data[index*r.bytes : (index+1)*r.bytes] }

// Sum is the checksum of the batch of so many rows whose first is at a position of
// the order, as kernels.Checksum finds it on the device. mem is scratch of at least
// the batch's size.
func (r *Rows) Sum(order *loader.Order, position int64, rows int, mem []byte) uint64 {
	mem = mem[:0]
	for i := range rows {
		mem = append(mem, r.sample(int(order.At(position+int64(i))))...)
	}
	return kernels.ChecksumOf(mem)
}
