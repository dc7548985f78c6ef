// Package drain reads datasets to their end, for tests of formats.
package drain

import (
	"bytes"
	"context"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// Sample is the bytes of each field of a sample, of a ragged one those that count.
type Sample map[string][]byte

// Samples are all of a dataset in their order, read through a Loader. Where one fails it
// returns those before it, and the *loader.Error.
func Samples(ctx context.Context, ds loader.Dataset) (all []Sample, err error) {
	ld, err := loader.New(ds, 1, loader.Options{Epochs: 1, Workers: 3})
	if err != nil {
		return nil, err
	}
	mem, err := loader.NewHeap(ld.Layout().Size(), 4)
	if err != nil {
		return nil, err
	}
	run := ld.Start(ctx, loader.Cursor{}, mem)
	for {
		batch, err := run.Next(ctx)
		if err != nil {
			if err == loader.ErrEpochEnd {
				err = nil
			}
			if closed := run.Close(); err == nil {
				err = closed
			}
			return all, err
		}
		sample := Sample{}
		for i, f := range ld.Layout().Fields() {
			sample[f.Name] = bytes.Clone(ld.Layout().Rows(i, batch))
		}
		all = append(all, sample)
		mem.Put(batch.Slot)
	}
}

// Field is the elements of a field of all samples, one behind the other.
func Field[T dtype.Element](samples []Sample, name string) []T {
	var all []byte
	for _, s := range samples {
		all = append(all, s[name]...)
	}
	return dtype.As[T](all)
}
