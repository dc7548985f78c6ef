// Command train trains a small network on MNIST through the whole pipeline and
// says who waited for whom. It runs on the first GPU or, without one, on the CPU:
//
//	go run ./examples/train
//	go run ./examples/train -device cpu -depth 1 -workers 1
//	go run ./examples/train -batch 128 -graph
//	go run ./examples/train -devices cuda:0,cuda:1
//	go run ./examples/train -epochs 50 -http localhost:6060
//	go run ./examples/train -checkpoint mnist.state -checkpoint-every 100 -resume
//
// A run that was killed goes on from the newest checkpoint, with other workers and another
// depth too, and ends with the losses of one that was not.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/leat-go/leat/examples/internal/checkpoint"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "train:", err)
		os.Exit(1)
	}
}

// config is what the flags say.
type config struct {
	device, data string
	devices      string
	epochs       int
	graph, json  bool
	trace, http  string
	ceiling      bool
	batchSize    int
	parts        int
	checkpoint   checkpoint.Options
	loader       loader.Options
	prefetch     prefetch.Options
}

// parse reads the flags and reports every mistake at once, by the flag's name.
func parse(args []string) (config, error) {
	c := config{prefetch: prefetch.Options{Timing: true}}
	f := flag.NewFlagSet("train", flag.ContinueOnError)
	f.StringVar(&c.device, "device", "", `"cpu", "cuda:0", or empty for the first GPU if there is one`)
	f.StringVar(&c.devices, "devices", "", "`names` of devices, as in cuda:0,cuda:1: each works on a part of every batch")
	f.IntVar(&c.parts, "parts", 0, "parts of a batch whose gradients are added, with -devices; 0 means one for each device")
	f.StringVar(&c.data, "data", "", "a `folder` with MNIST's four files; empty takes them from the Go module cache")
	f.IntVar(&c.epochs, "epochs", 5, "epochs to train")
	f.IntVar(&c.batchSize, "batch", 256, "samples in a batch")
	f.Var((*workers)(&c.loader.Workers), "workers", "goroutines that read samples; auto begins as many as pay")
	f.Uint64Var(&c.loader.Seed, "seed", 1, "seed of the order and of the first parameters")
	f.IntVar(&c.prefetch.Memory.HostSlots, "host-slots", 0, "pinned host slots; 0 means 8")
	f.IntVar(&c.prefetch.Depth, "depth", 0, "device slots; 0 means 3")
	f.BoolVar(&c.graph, "graph", false, "capture the step as a graph and launch that, instead of every kernel")
	f.StringVar(&c.trace, "trace", "", "write a timeline of the last steps to this `file`, for Perfetto and leat timeline")
	f.StringVar(&c.http, "http", "", "serve a page that shows the pipelines at this `address`, as in localhost:6060")
	f.BoolVar(&c.ceiling, "ceiling", false, "measure at the end how fast the steps are with data for free")
	f.BoolVar(&c.json, "json", false, "print a last line of JSON")
	c.checkpoint.Define(f)
	f.SetOutput(io.Discard) // errors are the caller's to print, once
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		f.SetOutput(os.Stdout)
		f.Usage()
		return c, err
	} else if err != nil {
		return c, err
	}
	c.loader.Shuffle, c.loader.Epochs = true, c.epochs
	var errs []error
	if f.NArg() > 0 {
		errs = append(errs, fmt.Errorf("unexpected argument %q", f.Arg(0)))
	}
	atLeast := func(least int, name string, v int) {
		if v < least {
			errs = append(errs, fmt.Errorf("-%s is %d, want %d or more", name, v, least))
		}
	}
	atLeast(1, "epochs", c.epochs)
	atLeast(1, "batch", c.batchSize)
	atLeast(0, "workers", c.loader.Workers)
	atLeast(0, "host-slots", c.prefetch.Memory.HostSlots)
	atLeast(0, "depth", c.prefetch.Depth)
	atLeast(0, "parts", c.parts)
	if c.devices != "" && (c.device != "" || c.graph) {
		errs = append(errs, errors.New("-devices goes with neither -device nor -graph"))
	}
	if c.devices != "" && (c.trace != "" || c.http != "" || c.ceiling) {
		errs = append(errs, errors.New("-devices goes with none of -trace, -http and -ceiling"))
	}
	if c.devices != "" && c.checkpoint.Path != "" {
		errs = append(errs, errors.New("-checkpoint is for one device, without -devices"))
	}
	errs = append(errs, c.checkpoint.Validate())
	if c.devices == "" && c.parts != 0 {
		errs = append(errs, errors.New("-parts is for -devices"))
	}
	return c, errors.Join(errs...)
}

func run(ctx context.Context, args []string) (err error) {
	c, err := parse(args)
	if err != nil {
		return err
	}
	if c.devices != "" {
		return runParallel(ctx, c)
	}
	t, err := newTraining(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	if c.http != "" {
		url, err := t.watch(c.http)
		if err != nil {
			return fmt.Errorf("-http: %w", err)
		}
		fmt.Printf("watch it at %s\n", url)
	}
	fmt.Println(t.pf.Plan())
	summary, err := t.train(ctx)
	if err != nil {
		return err
	}
	if err := t.report(ctx, c); err != nil {
		return err
	}
	if t.step != nil {
		fmt.Println(t.step.Report())
	}
	return summary.print(c.json)
}

// print prints the end of the output.
func (s summary) print(asJSON bool) error {
	fmt.Printf("test accuracy %.2f%% after %d epochs, %.1f s, %.0f samples/s\n",
		100*s.Accuracy, s.Epochs, s.Seconds, s.SamplesPerSecond)
	if asJSON {
		return json.NewEncoder(os.Stdout).Encode(s)
	}
	return nil
}

// workers is the flag of that name: a number, or auto.
type workers int

func (w *workers) String() string {
	if *w == loader.Auto {
		return "auto"
	}
	return strconv.Itoa(int(*w))
}

func (w *workers) Set(s string) error {
	if s == "auto" {
		*w = loader.Auto
		return nil
	}
	n, err := strconv.Atoi(s)
	*w = workers(n)
	return err
}
