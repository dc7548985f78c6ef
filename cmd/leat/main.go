// Command leat shows what hiding copies behind compute brings, measures what a machine
// can do, and looks at data:
//
//	go run ./cmd/leat demo       the classic lesson on a modelled card, drawn
//	go run ./cmd/leat probe      what this machine can do, and what that means
//	go run ./cmd/leat bench      whether the library reaches its targets here
//	go run ./cmd/leat timeline   what a pipeline did in its last steps, drawn
//	go run ./cmd/leat inspect    what there is in files, and the program that loads it
//	go run ./cmd/leat pack       many small files into shards, shuffled once for all
//	go run ./cmd/leat which      which samples are in the batches behind a saved state
//	go run ./cmd/leat fleet      which of several ranks holds up the others
//
// Each command has -h.
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
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "leat:", err)
		os.Exit(1)
	}
}

// A command is a first argument and what it does.
type command struct {
	name, line string
	run        func(ctx context.Context, args []string, out io.Writer) error
}

var commands = []command{
	{"demo", "the classic lesson on a modelled card: what hiding copies brings", demo},
	{"probe", "what this machine can do: copies, calls, overlap, and what that means", runProbe},
	{"bench", "whether the library reaches its targets here", runBench},
	{"timeline", "what a pipeline's workers, slots and engines did, drawn", runTimeline},
	{"fleet", "which of several ranks holds up the others, and what it waits for", runFleet},
	{"inspect", "what there is in files: samples, types, statistics, problems, and the program that loads it", runInspect},
	{"pack", "many small files into shards, shuffled once for all, with checksums", runPack},
	{"which", "which samples are in the batches behind a saved state", runWhich},
}

// run is the command that args begin with. A call for help is no error.
func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 || args[0] == "-h" || args[0] == "-help" || args[0] == "--help" || args[0] == "help" {
		return usage(out)
	}
	for _, c := range commands {
		if c.name != args[0] {
			continue
		}
		if err := c.run(ctx, args[1:], out); !errors.Is(err, flag.ErrHelp) {
			return err
		}
		return nil
	}
	return fmt.Errorf("no command %q; leat -h lists them", args[0])
}

func usage(out io.Writer) error {
	if _, err := fmt.Fprint(out, "usage: leat command [flags]\n\n"); err != nil {
		return err
	}
	for _, c := range commands {
		if _, err := fmt.Fprintf(out, "  %-8s %s\n", c.name, c.line); err != nil {
			return err
		}
	}
	_, err := fmt.Fprint(out, "\nleat command -h describes a command and its flags.\n")
	return err
}
