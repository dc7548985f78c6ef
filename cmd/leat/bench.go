package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"strings"
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/bench"
	"github.com/leat-go/leat/device/auto"
)

const aboutBench = `
leat bench measures whether the library reaches its targets on this machine, each
figure against what the same run measured of the machine itself:

	overlap    a run's total against N·max(copy, compute) + fill + drain
	stages     the same with results back, and both directions of the bus at once
	images     shuffled 3×224×224 images in memory, against the bus's own rate, and
	           the step with 3 ms of compute
	samples    the same with 28×28 samples, in batches of 128, 512 and 4096
	next       from Next to launchable, without waiting; allocations a batch
	recycler   its share of a core when copies take a millisecond
	pinning    1 GiB of slots against cuMemHostAlloc

	leat bench
	leat bench -only overlap,images -json

Contents are verified by checksums that the device computes. The goals are stated for
a data-centre GPU; on the CPU device, whose copies and workers share the cores, they
are for comparison.`

func runBench(ctx context.Context, args []string, out io.Writer) (err error) {
	var o bench.Options
	var c common
	f := newFlags("bench", aboutBench, out)
	c.define(f)
	f.Func("only", "`parts` to measure, as in overlap,images; all by default", func(s string) error {
		o.Only = strings.Split(s, ",")
		return nil
	})
	f.IntVar(&o.Images, "images", 20_000, "`number` of images in memory")
	f.IntVar(&o.ImageBatch, "image-batch", 256, "images in a batch")
	f.IntVar(&o.Samples, "samples", 60_000, "`number` of 28×28 samples in memory")
	f.IntVar(&o.Workers, "workers", 0, "goroutines that read samples; 0 leaves it to the loader")
	f.IntVar(&o.Depth, "depth", 0, "batches resident on the device; 0 leaves it to the prefetcher")
	err = parse(f, args)
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	o.Runs = c.runs
	if err := errors.Join(err, o.Validate()); err != nil {
		return err
	}
	dev, err := auto.Open(c.device)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	report, err := bench.Run(ctx, dev, time.Now(), o)
	if err != nil {
		return err
	}
	return c.print(out, report)
}
