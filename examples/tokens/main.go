// Command tokens trains a model that says which byte follows a byte, on windows of a text: the
// files of Go's own package strings, which it writes to a file of tokens first. The model has an
// embedding for each byte, and one layer behind it. It runs on the first GPU or, without one, on
// the CPU:
//
//	go run ./examples/tokens
//	go run ./examples/tokens -text ~/src/mymodule -window 256
//	go run ./examples/tokens -checkpoint tokens.state -checkpoint-every 50 -resume
//
// A run that was killed goes on from the newest checkpoint, with other workers and another depth
// too, and ends with the losses of one that was not.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/leat-go/leat/examples/internal/checkpoint"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "tokens:", err)
		os.Exit(1)
	}
}

// config is what the flags say.
type config struct {
	device, text, file string
	window, batch      int
	width              int
	checkpoint         checkpoint.Options
	loader             loader.Options
	prefetch           prefetch.Options
}

// parse reads the flags and reports every mistake at once, by the flag's name.
func parse(args []string, out io.Writer) (config, error) {
	var c config
	f := flag.NewFlagSet("tokens", flag.ContinueOnError)
	f.StringVar(&c.device, "device", "", `"cpu", "cuda:0", or empty for the first GPU if there is one`)
	f.StringVar(&c.text, "text", "", "`folder` with files of Go to learn; empty means package strings of this machine's Go")
	f.StringVar(&c.file, "tokens", "", "`file` that the tokens are written to; empty means one in the folder for temporary files")
	f.IntVar(&c.window, "window", 64, "`tokens` of a window")
	f.IntVar(&c.batch, "batch", 16, "windows in a batch")
	f.IntVar(&c.width, "width", 32, "numbers in an embedding")
	f.IntVar(&c.loader.Epochs, "epochs", 3, "epochs to train")
	f.IntVar(&c.loader.Workers, "workers", 0, "goroutines that read samples; 0 leaves it to the loader")
	f.Uint64Var(&c.loader.Seed, "seed", 1, "seed of the order and of the first parameters")
	f.IntVar(&c.prefetch.Depth, "depth", 0, "device slots; 0 means 3")
	c.checkpoint.Define(f)
	f.SetOutput(io.Discard) // errors are the caller's to print, once
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		f.SetOutput(out)
		f.Usage()
		return c, err
	} else if err != nil {
		return c, err
	}
	c.loader.Shuffle = true
	var errs []error
	if f.NArg() > 0 {
		errs = append(errs, fmt.Errorf("unexpected argument %q", f.Arg(0)))
	}
	for _, n := range []struct {
		name     string
		v, least int
	}{{"window", c.window, 1}, {"batch", c.batch, 1}, {"width", c.width, 1}, {"epochs", c.loader.Epochs, 1},
		{"workers", c.loader.Workers, 0}, {"depth", c.prefetch.Depth, 0}} {
		if n.v < n.least {
			errs = append(errs, fmt.Errorf("-%s is %d, want %d or more", n.name, n.v, n.least))
		}
	}
	return c, errors.Join(append(errs, c.checkpoint.Validate())...)
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	c, err := parse(args, out)
	if err != nil {
		return err
	}
	if c.text == "" {
		if c.text, err = standardLibrary(ctx); err != nil {
			return err
		}
	}
	if c.file == "" {
		folder, err := os.MkdirTemp("", "leat-tokens-")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
		c.file = filepath.Join(folder, "text.bin")
	}
	if err := tokenize(c.text, c.file); err != nil {
		return err
	}
	t, err := newTraining(ctx, c, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	return t.train(ctx)
}
