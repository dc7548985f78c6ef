package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/probe"
	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/auto"
	"github.com/leat-go/leat/device/cuda"
)

const aboutProbe = `
leat probe measures the machine it stands on, the first GPU or else the CPU device:
copies in and out by size, from pinned and from pageable memory, and both ways at
once; what pinning and the calls of a pipeline cost; a copy beside a kernel; two
matrix products on one stream and on two; kernels and copies on up to eight; what a
stream's priority does; a graph's replay; a kernel that reads pinned memory; copies to
another device; and a pipeline of a stated batch and step at every depth. It says in
plain words what that means. All data is random, and what arrives is compared with
what was sent.

	leat probe
	leat probe -device cpu
	leat probe -compute 12ms -bytes 77MB
	leat probe -json
	leat probe -device cuda:0 -peer cuda:1

On the CPU device the stated compute occupies the device and not the cores, as an
accelerator's would.`

func runProbe(ctx context.Context, args []string, out io.Writer) (err error) {
	var o probe.Options
	var c common
	f := newFlags("probe", aboutProbe, out)
	c.define(f)
	f.DurationVar(&o.Compute, "compute", 3*time.Millisecond, "`time` that a step computes")
	o.Bytes = 256 * 3 * 224 * 224
	f.Var(&o.Bytes, "bytes", "`size` of a batch, as in 38MB or 64MiB")
	o.MaxBytes = 256 << 20
	f.Var(&o.MaxBytes, "max-bytes", "largest `size` copied")
	o.RunBytes = 64 << 20
	f.Var(&o.RunBytes, "run-bytes", "`size` that copies back to back move in a run at least")
	o.PinBytes = 1 << 30
	f.Var(&o.PinBytes, "pin-bytes", "`size` pinned to find what it costs")
	f.DurationVar(&o.Time, "time", 15*time.Second, "`time` that the probe may take: what there is no time for is left out, and named")
	peer := f.String("peer", "", "`name` of another device to copy to; empty for the next GPU, if there is one")
	sides := numbers{256, 1024}
	f.Var(&sides, "sides", "`sides` of the square matrices multiplied, multiples of 16")
	err = parse(f, args)
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	o.Runs, o.Sides = c.runs, sides
	if err := errors.Join(err, o.Validate()); err != nil {
		return err
	}
	dev, err := auto.Open(c.device)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	if o.Peer, err = openPeer(dev, *peer); err != nil {
		return err
	}
	if o.Peer != nil {
		defer func() { err = errors.Join(err, o.Peer.Close()) }()
	}
	report, err := probe.Run(ctx, dev, time.Now(), o)
	if err != nil {
		return err
	}
	return c.print(out, report)
}

// openPeer opens the device of that name, or else the GPU behind dev, nil if there is none.
func openPeer(dev *device.Device, name string) (*device.Device, error) {
	if p := dev.Properties(); name == "" && p.Kind == "cuda" {
		if gpus, err := cuda.List(); err == nil && len(gpus) > 1 {
			name = fmt.Sprintf("cuda:%d", gpus[(p.Index+1)%len(gpus)].Index)
		}
	}
	if name == "" {
		return nil, nil
	}
	return auto.Open(name)
}

// common are the flags of the commands that measure.
type common struct {
	device string
	runs   int
	json   bool
}

func (c *common) define(f *flag.FlagSet) {
	f.StringVar(&c.device, "device", "", "`name` of the device: cpu, cuda:0, or empty for the first GPU if there is one")
	f.IntVar(&c.runs, "runs", 5, "`number` of runs that a median is taken of")
	f.BoolVar(&c.json, "json", false, "print one JSON document: times in nanoseconds, rates in bytes a second")
}

// print writes the report as text, or as JSON.
func (c *common) print(out io.Writer, report interface{ String() string }) error {
	if c.json {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(report)
	}
	_, err := io.WriteString(out, report.String())
	return err
}
