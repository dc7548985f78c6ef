package main

import (
	"context"
	"errors"
	"io/fs"
	"strconv"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/statefile"
	"github.com/leat-go/leat/loader/stream"
	"github.com/leat-go/leat/prefetch"
)

// resumed trains on the lines of files, in an order that a buffer of 100 makes random, and
// goes on where the last call was stopped: after so many steps, or at the end of two epochs.
func resumed(ctx context.Context, files []source.Source, path string, steps int) (seen []int64) {
	lines := stream.Shuffle(stream.Lines(files, stream.LinesOptions{}), 100)
	data := stream.Encode(lines, []loader.Field{{Name: "n", DType: dtype.Int64}}, func(_ context.Context, line []byte, row *loader.Row) error {
		n, err := strconv.ParseInt(string(line), 10, 64)
		return errors.Join(err, loader.Write(row, "n", n))
	})
	ld, err := loader.NewStream(data, 10, loader.Options{Seed: 1, Epochs: 2})
	check(err)
	pf, err := prefetch.NewHost(ld, prefetch.Options{})
	check(err)
	defer pf.Close()
	if state, err := statefile.Load(path); !errors.Is(err, fs.ErrNotExist) {
		check(errors.Join(err, pf.Restore(state)))
	}
	for batch, err := range pf.All(ctx) {
		check(err)
		n, err := prefetch.Column[int64](batch, "n")
		check(err)
		seen = append(seen, n...) // the step
		if steps--; steps == 0 {
			break
		}
	}
	check(statefile.Save(path, pf.State()))
	return seen
}
