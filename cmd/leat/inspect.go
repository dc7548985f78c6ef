package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/leat-go/leat/cmd/leat/internal/found"
	"github.com/leat-go/leat/cmd/leat/internal/inspect"
	"github.com/leat-go/leat/dtype"
)

const aboutInspect = `
leat inspect PATH says what there is at a path: a file, a folder, or a pattern in quotes.
It finds out the format, opens the data, draws the first samples, and prints the lines of
Go that load it. With -stats it reads all samples: means and deviations, how many of each
label there are, lengths, and every sample that can't be read, with file and offset.

	leat inspect train.npy
	leat inspect -stats 'shards/*.tar'
	leat inspect pictures -side 48 -color
	leat inspect corpus.bin -dtype uint32 -window 256
	leat inspect table.csv -go >main.go`

// opening are the flags of commands that open data of which they know the path.
type opening struct {
	found.Options
	dtype string
}

func (o *opening) define(f *flag.FlagSet) {
	f.StringVar(&o.Format, "format", "", "`name` of the format, where it can't be told: "+strings.Join(found.Formats(), ", "))
	f.StringVar(&o.dtype, "dtype", "uint16", "`type` of tokens in files that don't say it")
	f.IntVar(&o.Window, "window", 0, "`tokens` of a window; 0 means 1024")
	f.IntVar(&o.Side, "side", 0, "`pixels` that encoded pictures are scaled to; 0 means 64")
}

// open opens the data at a path.
func (o *opening) open(ctx context.Context, path string) (*found.Set, error) {
	for t := dtype.Bool; t <= dtype.Float64; t++ {
		if t.String() == o.dtype {
			o.DType = t
		}
	}
	if o.DType == dtype.Invalid {
		return nil, fmt.Errorf("there is no type %q", o.dtype)
	}
	return found.Open(ctx, path, o.Options)
}

func runInspect(ctx context.Context, args []string, out io.Writer) (err error) {
	var at opening
	var o inspect.Options
	f := newFlags("inspect", aboutInspect, out)
	at.define(f)
	f.IntVar(&o.Samples, "samples", 3, "`number` of samples that are drawn")
	f.IntVar(&o.From, "from", 0, "`number` of the first of them")
	f.BoolVar(&o.Statistics, "stats", false, "read all samples, for statistics and problems")
	f.IntVar(&o.Limit, "limit", 0, "`samples` that -stats reads, spread over all; 0 means all")
	f.BoolVar(&o.Color, "color", false, "draw pictures in colours")
	f.IntVar(&o.Batch, "batch", 32, "batch `size` in the program")
	program := f.Bool("go", false, "print the program alone")
	paths, err := parseArgs(f, args, "PATH")
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	if err := errors.Join(err, o.Validate()); err != nil {
		return err
	}
	set, err := at.open(ctx, paths[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	if *program {
		_, err = io.WriteString(out, set.Program(o.Batch))
		return err
	}
	report, err := inspect.Run(ctx, set, o)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, report.String())
	return err
}
