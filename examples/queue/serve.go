package main

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// request is a number, as a text, whose square is asked for.
type request struct {
	text string
	to   chan<- answer // has room for one
}

type answer struct {
	y   float64
	err error
}

// serve answers the requests of the queue until it is closed. None waits for others longer than
// stated.
func serve(ctx context.Context, queue <-chan request, wait time.Duration) error {
	var asking sync.Map // who waits, by the number of the request
	var last atomic.Int64
	fields := []loader.Field{{Name: "number", DType: dtype.Int64}, {Name: "x", DType: dtype.Float64}}
	data := loader.FromSeq(fields, loader.Channel(queue, wait), func(_ context.Context, r request, row *loader.Row) error {
		x, err := strconv.ParseFloat(r.text, 64)
		if err != nil {
			r.to <- answer{err: err}
			return err
		}
		number := last.Add(1) // not its position, which one behind a malformed request takes again
		asking.Store(number, r.to)
		return errors.Join(loader.Write(row, "number", number), loader.Write(row, "x", x))
	})
	ld, err := loader.NewIterable(data, 4, loader.Options{})
	if err != nil {
		return err
	}
	pf, err := prefetch.NewHost(ld, prefetch.Options{})
	if err != nil {
		return err
	}
	defer pf.Close()
	for {
		err := compute(ctx, pf, &asking)
		var failed *loader.Error
		if !errors.As(err, &failed) || failed.Stage != loader.StageEncode {
			return err
		}
		// A malformed request has its answer. The next range goes on behind it.
	}
}

// compute answers batches until a request is malformed, or there are no more.
func compute(ctx context.Context, pf *prefetch.Prefetcher, asking *sync.Map) error {
	for batch, err := range pf.All(ctx) {
		if err != nil {
			return err
		}
		numbers, err := prefetch.Column[int64](batch, "number")
		if err != nil {
			return err
		}
		x, err := prefetch.Column[float64](batch, "x")
		if err != nil {
			return err
		}
		for i, number := range numbers {
			to, _ := asking.LoadAndDelete(number)
			to.(chan<- answer) <- answer{y: x[i] * x[i]} // the model
		}
	}
	return nil
}
