// Command serve trains a small network on MNIST and answers requests over HTTP: the digit
// that is drawn in an image of 28×28 grey pixels. Requests that come together are computed
// together. At http://localhost:8080 there is a page to draw on. POST /digit takes the 784
// bytes of an image, GET /stats has the queue's statistics, and GET /healthz says whether it
// is well.
//
//	go run -C examples/serve .
//	go run -C examples/serve . -load http   # how much it carries, with batches and without
//	go run -C examples/serve . -load do     # the same without HTTP
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

// config is what the flags say.
type config struct {
	address, device, data string
	hidden                []int
	batch, inFlight       int
	maxWait, grace        time.Duration
	load                  string
	loadFor               time.Duration
}

// parse reads the flags and reports every mistake at once, by the flag's name.
func parse(args []string, out io.Writer) (config, error) {
	c := config{hidden: []int{128}}
	f := flag.NewFlagSet("serve", flag.ContinueOnError)
	f.StringVar(&c.address, "address", "localhost:8080", "where to listen")
	f.StringVar(&c.device, "device", "", `"cpu", "cuda:0", or empty for the first GPU if there is one`)
	f.StringVar(&c.data, "data", "", "a `folder` with MNIST's four files; empty takes them from the Go module cache")
	f.Func("hidden", "`widths` of the hidden layers (default 128)", func(s string) (err error) {
		c.hidden, err = widths(s)
		return err
	})
	f.IntVar(&c.batch, "batch", 64, "requests in a batch, at most")
	f.IntVar(&c.inFlight, "in-flight", 0, "batches under way at once; 0 leaves it to package serve")
	f.DurationVar(&c.maxWait, "wait", 0, "how long a request waits for others while a batch can begin")
	f.DurationVar(&c.grace, "grace", 10*time.Second, "how long requests may take after an interrupt")
	f.StringVar(&c.load, "load", "", `measure instead of serving: "http" requests to this program, "do" calls of Queue.Do`)
	f.DurationVar(&c.loadFor, "load-for", time.Second, "how long to measure each rate")
	f.SetOutput(io.Discard) // errors are the caller's to print, once
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		f.SetOutput(out)
		f.Usage()
		return c, err
	} else if err != nil {
		return c, err
	}
	var errs []error
	if f.NArg() > 0 {
		errs = append(errs, fmt.Errorf("unexpected argument %q", f.Arg(0)))
	}
	if c.load != "" && c.load != "http" && c.load != "do" {
		errs = append(errs, fmt.Errorf(`-load is %q, want "http" or "do"`, c.load))
	}
	if c.batch < 1 {
		errs = append(errs, fmt.Errorf("-batch is %d, want 1 or more", c.batch))
	}
	if c.loadFor <= 0 {
		errs = append(errs, fmt.Errorf("-load-for is %v, want more than 0", c.loadFor))
	}
	return c, errors.Join(errs...)
}

// widths reads "128,64".
func widths(s string) (widths []int, err error) {
	for part := range strings.SplitSeq(s, ",") {
		w, err := strconv.Atoi(part)
		if err != nil || w < 1 {
			return nil, fmt.Errorf("%q is no width", part)
		}
		widths = append(widths, w)
	}
	return widths, nil
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	c, err := parse(args, out)
	if err != nil {
		return err
	}
	m, err := newModel(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	if c.load == "do" { // any parameters take the same time
		return m.loadDo(ctx, out)
	}
	accuracy, err := m.train(ctx, c.data)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: trained, and right about %.1f%% of the test images\n", m.dev.Name(), 100*accuracy)
	if c.load == "http" {
		return m.loadHTTP(ctx, out)
	}
	return m.serve(ctx, out)
}
