package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/fleet"
)

const aboutFleet = `
leat fleet reads the pages of several ranks, as package observe/ui serves them, and names
the rank that the others wait for, what it waits for itself, and its node if that is what
its slow ranks share.

	leat fleet node1:6060 node2:6060
	leat fleet http://node1:6060/debug/leat/ http://node1:6061/debug/leat/

A page answers on localhost, and under the names that its program gave to ui.Options.Hosts.
It needs an observe.Recorder to tell the device's part of a step from the loop's.`

func runFleet(ctx context.Context, args []string, out io.Writer) error {
	var o fleet.Options
	f := newFlags("fleet", aboutFleet, out)
	f.DurationVar(&o.Interval, "interval", 2*time.Second, "`time` that the figures are of")
	f.DurationVar(&o.Timeout, "timeout", 5*time.Second, "`time` that a page may take to answer")
	asJSON := f.Bool("json", false, "print one JSON document")
	pages, err := parseArgs(f, args, "URL…")
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	errs := []error{err}
	for _, p := range pages {
		_, err := fleet.Address(p)
		errs = append(errs, err)
	}
	for name, d := range map[string]time.Duration{"interval": o.Interval, "timeout": o.Timeout} {
		if d <= 0 {
			errs = append(errs, fmt.Errorf("-%s is %v, want more than 0", name, d))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	read, err := fleet.Read(ctx, pages, o)
	if err != nil {
		return err
	}
	verdicts := fleet.Compare(read)
	if *asJSON {
		err = json.NewEncoder(out).Encode(struct {
			Pages    []fleet.Page    `json:"pages"`
			Verdicts []fleet.Verdict `json:"verdicts"`
		}{read, verdicts})
	} else {
		err = fleet.Write(out, read, verdicts)
	}
	for _, p := range read {
		if p.Report == nil {
			err = errors.Join(err, fmt.Errorf("%s: %s", p.URL, p.Error))
		}
	}
	return err
}
