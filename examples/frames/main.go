// Command frames brings a film through the device, frame by frame: made on the
// host, uploaded, blurred and changed in colour, downloaded and checked. It does so
// three ways and compares their times, how busy each kept the device's engines, and
// their results, which must be the same to the last bit.
//
//	synchronous   one frame, one operation at a time: the host waits for each
//	one stream    everything is queued on one stream, and the host makes frames meanwhile
//	pipelined     prefetch.Map: upload, compute and download side by side
//
// All three use pinned memory and as many goroutines to make and to check a frame,
// so what they differ in is overlap alone.
//
//	go run ./examples/frames
//	go run ./examples/frames -frames 300 -passes 6 -out /tmp/frames
//
// The frames come from three photographs of the Go module golang.org/x/image,
// scaled, moved and tinted. On the CPU device, where the engines are the
// machine's own processors and there is little to win, they are fewer and smaller
// unless flags say otherwise.
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
	"runtime"
	"syscall"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/auto"
	"github.com/leat-go/leat/examples/frames/film"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "frames:", err)
		}
		os.Exit(1)
	}
}

// config is what the flags say.
type config struct {
	device, photographs, out string
	frames, width, height    int
	radius, passes, workers  int
	json                     bool
}

func parse(args []string) (config, error) {
	var c config
	f := flag.NewFlagSet("frames", flag.ContinueOnError)
	f.StringVar(&c.device, "device", "", `"cpu", "cuda:0", or empty for the first GPU if there is one`)
	f.StringVar(&c.photographs, "photographs", "", "a `folder` with the photographs; empty takes them from the Go module cache")
	f.IntVar(&c.frames, "frames", 0, "length of the film; 0 means 60, and 24 on the CPU device")
	f.IntVar(&c.width, "width", 0, "width of a frame in pixels; 0 means 3840, and 640 on the CPU device")
	f.IntVar(&c.height, "height", 0, "height of a frame in pixels; 0 means 2160, and 360 on the CPU device")
	f.IntVar(&c.radius, "radius", 0, "reach of the blur in pixels; 0 means 8, the most there is")
	f.IntVar(&c.passes, "passes", 4, "how often each frame is blurred: it sets how long the device computes")
	f.IntVar(&c.workers, "workers", 0, "goroutines that make frames, and as many that check; 0 means all processors but two")
	f.StringVar(&c.out, "out", "", "a `folder` to write a few frames to, before and after, as PNG")
	f.BoolVar(&c.json, "json", false, "print a last line of JSON")
	if err := f.Parse(args); err != nil {
		return c, err
	}
	if f.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	return c, c.validate()
}

// validate checks what neither the film nor the filter does.
func (c config) validate() error {
	var errs []error
	for _, f := range []struct {
		name         string
		value, least int
	}{
		{"frames", c.frames, 0}, {"width", c.width, 0}, {"height", c.height, 0},
		{"radius", c.radius, 0}, {"passes", c.passes, 1}, {"workers", c.workers, 0},
	} {
		if f.value < f.least {
			errs = append(errs, fmt.Errorf("-%s is %d, want %d or more", f.name, f.value, f.least))
		}
	}
	return errors.Join(errs...)
}

// withDefaults is c with its zero values replaced by what suits the device.
func (c config) withDefaults(dev *device.Device) config {
	def := func(v *int, cpu, gpu int) {
		if *v != 0 {
			return
		}
		if *v = gpu; dev.Properties().Kind == "cpu" {
			*v = cpu
		}
	}
	def(&c.frames, 24, 60)
	def(&c.width, 640, 3840)
	def(&c.height, 360, 2160)
	workers := max(1, runtime.GOMAXPROCS(0)-2)
	def(&c.workers, workers, workers)
	return c
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	c, err := parse(args)
	if err != nil {
		return err
	}
	photographs, err := film.Photographs(ctx, c.photographs)
	if err != nil {
		return err
	}
	dev, err := auto.Open(c.device)
	if err != nil {
		return err
	}
	for _, note := range dev.Notes() {
		fmt.Fprintln(stdout, note)
	}
	c = c.withDefaults(dev)
	f, err := film.New(photographs, film.Options{Width: c.width, Height: c.height, Frames: c.frames})
	if err != nil {
		return errors.Join(err, dev.Close())
	}
	s, err := show(ctx, dev, f, c, stdout)
	if err == nil && c.json {
		err = json.NewEncoder(stdout).Encode(s)
	}
	return err
}

// show runs the film all three ways on dev, which it takes, and prints what came of
// it.
func show(ctx context.Context, dev *device.Device, f *film.Film, c config, stdout io.Writer) (s summary, err error) {
	b, err := newBench(dev, f, c)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	s = newSummary(b, c)
	fmt.Fprintln(stdout, s.heading())
	var all [][]digest
	for _, w := range ways {
		figures, digests, err := b.measure(ctx, w.name, w.open)
		if err != nil {
			return s, fmt.Errorf("%s: %w", w.name, err)
		}
		s.add(figures)
		all = append(all, digests)
	}
	fmt.Fprint(stdout, s.table())
	if err := compare(all); err != nil {
		return s, err
	}
	s.Equal = true
	fmt.Fprintln(stdout, "the results of all three ways are equal, bit for bit")
	if c.out != "" {
		return s, b.writePNGs(ctx, c.out)
	}
	return s, nil
}
