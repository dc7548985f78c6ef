package main

import (
	"context"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/stream"
	"github.com/leat-go/leat/prefetch"
)

type document struct{ Text string }

// padding reads documents of JSONL files as batches of tokens, here of bytes, and returns the
// share of the padding in them. Each batch is as long as its own longest document, and has
// documents of similar length.
func padding(ctx context.Context, files []source.Source) float64 {
	documents := stream.JSON[document](stream.Lines(files, stream.LinesOptions{Shards: 1}))
	similar := stream.ByLength(documents, 16, 16, func(d document) int { return len(d.Text) })
	tokens := loader.Field{Name: "tokens", DType: dtype.Uint8, Shape: []int{2048}, Ragged: &loader.Ragged{Length: "length"}}
	data := stream.Encode(similar, []loader.Field{tokens}, func(_ context.Context, d document, row *loader.Row) error {
		return loader.Write(row, "tokens", []byte(d.Text)...)
	})
	ld, err := loader.NewStream(data, 16, loader.Options{Seed: 1, Epochs: 1})
	check(err)
	pf, err := prefetch.NewHost(ld, prefetch.Options{})
	check(err)
	defer pf.Close()
	all, own := 0, 0
	for batch, err := range pf.All(ctx) {
		check(err)
		lengths, err := prefetch.Column[int32](batch, "length")
		check(err)
		for _, n := range lengths {
			own += int(n)
		}
		all += len(batch.Field("tokens").Bytes)
	}
	return 1 - float64(own)/float64(all)
}
