package main

import (
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/compose"
	"github.com/leat-go/leat/prefetch"
)

// validated trains on nine tenths of the data, and looks at the rest behind each epoch.
func validated(ctx context.Context, w io.Writer, samples int) {
	data := loader.FromFunc(samples, []loader.Field{{Name: "x", DType: dtype.Int64}}, func(_ context.Context, i int, row *loader.Row) error {
		return loader.Write(row, "x", int64(i))
	})
	parts, err := compose.SplitN(data, 7, samples*9/10, samples/10)
	check(err)
	open := func(part loader.Dataset, o loader.Options) *prefetch.Prefetcher {
		ld, err := loader.New(part, 4, o)
		check(err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{})
		check(err)
		return pf
	}
	train, validation := open(parts[0], loader.Options{Shuffle: true, Seed: 1, Epochs: 3}), open(parts[1], loader.Options{})
	defer train.Close()
	defer validation.Close()
	for epoch, batches := range train.Epochs(ctx) {
		fmt.Fprintln(w, "epoch", epoch, "of", count(batches), "samples, then", count(validation.Pass(ctx)), "others")
	}
}

// count stands for what is done with batches.
func count(batches iter.Seq2[prefetch.Batch, error]) (samples int) {
	for batch, err := range batches {
		check(err)
		samples += batch.Len()
	}
	return samples
}
