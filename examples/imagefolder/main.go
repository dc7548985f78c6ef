// Command imagefolder trains a small network on a folder of pictures, with a folder for each class,
// and says at the end which share of the time each stage took: reading, decoding, scaling, copying to
// the device, training.
//
//	go run ./examples/imagefolder                     on pictures that it draws itself
//	go run ./examples/imagefolder -folder pictures/train -size 64
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/images"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "imagefolder:", err)
		os.Exit(1)
	}
}

// config is what the flags say.
type config struct {
	folder, device      string
	size, batch, epochs int
	loader              loader.Options
}

func parse(args []string, out io.Writer) (config, error) {
	var c config
	f := flag.NewFlagSet("imagefolder", flag.ContinueOnError)
	f.SetOutput(out)
	f.StringVar(&c.folder, "folder", "", "a `folder` with a folder of pictures for each class; empty draws some")
	f.StringVar(&c.device, "device", "", `"cpu", "cuda:0", or empty for the first GPU if there is one`)
	f.IntVar(&c.size, "size", 32, "height and width of the pictures that the network sees")
	f.IntVar(&c.batch, "batch", 16, "pictures in a batch")
	f.IntVar(&c.epochs, "epochs", 8, "epochs to train")
	f.IntVar(&c.loader.Workers, "workers", 0, "goroutines that decode; 0 means two fewer than there are processors, at least one")
	f.Uint64Var(&c.loader.Seed, "seed", 1, "seed of the order, the crops and the first parameters")
	if err := f.Parse(args); err != nil {
		return c, err
	}
	if f.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if c.epochs < 1 {
		return c, fmt.Errorf("-epochs is %d, want 1 or more", c.epochs)
	}
	c.loader.Shuffle, c.loader.Epochs = true, c.epochs
	return c, nil
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	c, err := parse(args, out)
	if err != nil {
		return err
	}
	if c.folder == "" {
		if c.folder, err = os.MkdirTemp("", "imagefolder"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(c.folder)) }()
		if err := drawFolder(c.folder, 60); err != nil {
			return err
		}
	}
	var clock stages
	pictures, err := images.Open(ctx, c.folder, clock.watch(images.Options{
		Height: c.size, Width: c.size, Crop: images.Random(0.4, 4.0/3), Flip: 0.5,
	}))
	if err != nil {
		return err
	}
	fmt.Fprint(out, pictures.Plan())
	ld, err := loader.New(pictures, c.batch, c.loader)
	if err != nil {
		return err
	}
	t, err := newTraining(c, ld, len(pictures.Classes()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	for epoch, batches := range t.pf.Epochs(ctx) {
		report, err := t.epoch(ctx, batches)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "epoch %d: loss %.3f, %.0f%% right\n", epoch+1, report.Loss, 100*report.Accuracy)
	}
	_, err = fmt.Fprint(out, clock.report(t.pf.Stats()))
	return err
}
