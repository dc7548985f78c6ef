package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/lesson"
)

const aboutDemo = `
leat demo shows on a modelled card what hiding copies behind compute brings: the
same batches with a host that waits for every call, in one stream without waiting,
and in several streams. Other lessons are on a graph's replay and on unequal cards. It
draws each engine's timeline, and prints total times, speed-ups, cycle times and
bubbles, all read off what ran on the modelled card.

	leat demo
	leat demo -h2d 1.8ms -compute 3ms -d2h 20us -batches 20
	leat demo -engines 1          one copy engine for both directions
	leat demo -depth 2            two batches on the card at once
	leat demo -lesson graph       a step of short kernels, launched and replayed
	leat demo -lesson devices     two cards, one of half the speed

The card's times are exact. It runs in real time, or up to some powers of ten
faster or slower where that would be too long or too short to watch.`

func demo(ctx context.Context, args []string, out io.Writer) error {
	batches := numbers{3, 10}
	var o lesson.Options
	f := newFlags("demo", aboutDemo, out)
	name := f.String("lesson", "copies", "`lesson` to give: copies, which the other flags are for, graph or devices")
	f.DurationVar(&o.H2D, "h2d", 10*time.Millisecond, "`time` to copy a batch in")
	f.DurationVar(&o.Compute, "compute", 30*time.Millisecond, "`time` to compute a batch")
	f.DurationVar(&o.D2H, "d2h", 10*time.Millisecond, "`time` to copy a batch out")
	f.Var(&batches, "batches", "`numbers` of batches to run, as in 3,10")
	f.IntVar(&o.Engines, "engines", 2, "copy engines: 1 for both directions, 2 for one each")
	f.IntVar(&o.Depth, "depth", 3, "streams, each with memory for a batch: so many batches are on the card at once")
	err := parse(f, args)
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	o.Batches = batches
	give, known := map[string]func() (fmt.Stringer, error){
		"copies":  func() (fmt.Stringer, error) { return lesson.Give(ctx, o) },
		"graph":   func() (fmt.Stringer, error) { return lesson.GiveGraph(ctx, lesson.GraphOptions{}) },
		"devices": func() (fmt.Stringer, error) { return lesson.GiveDevices(ctx, lesson.DevicesOptions{}) },
	}[*name]
	if !known {
		err = errors.Join(err, fmt.Errorf("there is no lesson %q, have copies, graph and devices", *name))
	}
	if err := errors.Join(err, o.Validate()); err != nil {
		return err
	}
	l, err := give()
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, l.String())
	return err
}
