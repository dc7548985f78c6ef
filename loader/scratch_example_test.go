package loader_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// sums is a dataset of the sums of another one's samples.
type sums struct {
	of      loader.Dataset
	samples int
	fields  []loader.Field
	memory  loader.Local[*loader.Scratch]
}

func newSums(of loader.Dataset) (*sums, error) {
	samples, fields, err := loader.Describe(of)
	if err != nil {
		return nil, err
	}
	return &sums{of: of, samples: samples, fields: fields}, nil
}

func (s *sums) Len() int { return s.samples }

func (s *sums) Fields() []loader.Field { return []loader.Field{{Name: "sum", DType: dtype.Int64}} }

func (s *sums) Read(ctx context.Context, i int, row *loader.Row) error {
	scratch, err := s.scratch(row)
	if err != nil {
		return err
	}
	sample := scratch.Begin(row)
	if err := errors.Join(s.of.Read(ctx, i, sample), scratch.Written()); err != nil {
		return err
	}
	sum := int64(0)
	for _, x := range loader.Value[int64](sample, "x") {
		sum += x
	}
	return loader.Write(row, "sum", sum)
}

// scratch is the memory of the worker that has the row: made once, and used for all of its
// samples.
func (s *sums) scratch(row *loader.Row) (*loader.Scratch, error) {
	mine := s.memory.Of(row)
	if *mine == nil {
		made, err := loader.NewScratch(s.fields)
		if err != nil {
			return nil, err
		}
		*mine = made
	}
	return *mine, nil
}

// A dataset that is made of another one reads its samples into memory of its own. compose.Map
// is the short form.
func ExampleScratch() {
	pairs := loader.FromFunc(3, []loader.Field{{Name: "x", DType: dtype.Int64, Shape: []int{2}}},
		func(_ context.Context, i int, row *loader.Row) error {
			return loader.Write(row, "x", int64(i), int64(10*i))
		})
	ds, err := newSums(pairs)
	if err != nil {
		log.Fatal(err)
	}
	row, err := loader.NewScratch(ds.Fields())
	if err != nil {
		log.Fatal(err)
	}
	for i := range ds.Len() {
		sample := row.Begin(new(loader.Row))
		if err := ds.Read(context.Background(), i, sample); err != nil {
			log.Fatal(err)
		}
		fmt.Println(loader.Value[int64](sample, "sum"))
	}
	// Output:
	// [0]
	// [11]
	// [22]
}

// A sample is kept as bytes, and written to another row.
func ExampleCodec() {
	fields := []loader.Field{
		{Name: "id", DType: dtype.Int32},
		{Name: "tokens", DType: dtype.Uint16, Shape: []int{100}, Ragged: &loader.Ragged{}},
	}
	codec, err := loader.NewCodec(fields)
	if err != nil {
		log.Fatal(err)
	}
	scratch, err := loader.NewScratch(fields)
	if err != nil {
		log.Fatal(err)
	}
	row := scratch.Begin(new(loader.Row))
	err = errors.Join(loader.Write(row, "id", int32(7)), loader.Write(row, "tokens", uint16(1), 2, 3), scratch.Written())
	if err != nil {
		log.Fatal(err)
	}
	kept := codec.Append(nil, row)
	fmt.Println(len(kept), "of at most", codec.Most(), "bytes")

	other := scratch.Begin(new(loader.Row))
	if err := codec.Load(other, kept); err != nil {
		log.Fatal(err)
	}
	fmt.Println(loader.Value[int32](other, "id"), loader.Value[uint16](other, "tokens"))
	// Output:
	// 14 of at most 208 bytes
	// [7] [1 2 3]
}
