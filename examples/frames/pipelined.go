package main

import (
	"context"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/examples/frames/filter"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// pipelined is the library's way. The loader's workers write strips of frames
// straight into pinned slots, a batch of strips is a frame, and Map keeps one frame
// each on the way up, in compute and on the way down.
type pipelined struct {
	*bench
	pf     *prefetch.Prefetcher
	output prefetch.Output
}

func newPipelined(b *bench) (way, error) {
	ld, err := loader.New(b.film, b.film.Strips(), loader.Options{Workers: b.workers})
	if err != nil {
		return nil, err
	}
	pf, err := prefetch.New(b.compute, ld, prefetch.Options{})
	if err != nil {
		return nil, err
	}
	strip := []int{b.film.Height / b.film.Strips(), b.film.Width}
	return &pipelined{bench: b, pf: pf, output: prefetch.Output{Fields: []loader.Field{
		{Name: "luma", DType: dtype.Uint8, Shape: strip},
		{Name: "blue", DType: dtype.Uint8, Shape: strip},
		{Name: "red", DType: dtype.Uint8, Shape: strip},
	}}}, nil
}

func (w *pipelined) run(ctx context.Context, n int, check func(int, planes)) error {
	if err := w.pf.Seek(0, 0); err != nil {
		return err
	}
	for r, err := range w.pf.Map(ctx, w.output, w.step) {
		if err != nil {
			return err
		}
		frame := r.Position().Batch
		check(frame, planes{r.Field("luma").Bytes, r.Field("blue").Bytes, r.Field("red").Bytes})
		if frame == n-1 {
			break
		}
	}
	return nil
}

func (w *pipelined) step(b prefetch.Batch, out prefetch.Fields) error {
	result := filter.Planes{out.Field("luma").View, out.Field("blue").View, out.Field("red").View}
	return w.filter.Apply(b.Stream(), result, b.Field("frame").View)
}

func (w *pipelined) close() error { return w.pf.Close() }
