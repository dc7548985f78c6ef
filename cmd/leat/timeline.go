package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/leat-go/leat/observe/timeline"
)

const aboutTimeline = `
leat timeline draws what a pipeline's workers, slots and engines did in its last steps,
one lane each, and why they had nothing to do, from a file that a program wrote by
observe's Timeline and WriteJSON, as examples/train does with -trace. The same file
can be opened in Perfetto (ui.perfetto.dev) and in chrome://tracing.

	leat timeline run.json                drawn in the terminal
	leat timeline run.json -o run.svg     as a picture
	leat timeline run.json -steps 0       all of it, not the last 16 steps`

func runTimeline(_ context.Context, args []string, out io.Writer) (err error) {
	f := newFlags("timeline", aboutTimeline, out)
	to := f.String("o", "", "`file` to draw to, with the ending .svg or .txt; empty draws in the terminal")
	steps := f.Int("steps", 16, "`number` of the last steps to draw; 0 draws all")
	columns := f.Int("columns", 120, "`width` of text, in columns")
	var name string
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") { // the file may come before the flags
		name, args = args[0], args[1:]
	}
	if err := f.Parse(args); err != nil {
		return err
	}
	if name == "" {
		name, args = f.Arg(0), f.Args()
		args = args[min(1, len(args)):]
	} else {
		args = f.Args()
	}
	switch {
	case name == "":
		return errors.New("timeline: name the file that a program wrote; leat timeline -h tells how")
	case len(args) > 0:
		return fmt.Errorf("timeline: unexpected argument %q", args[0])
	case *steps < 0 || *columns < 40:
		return fmt.Errorf("timeline: -steps is %d and -columns %d, want 0 or more and 40 or more", *steps, *columns)
	case *to != "" && !strings.HasSuffix(*to, ".svg") && !strings.HasSuffix(*to, ".txt"):
		return fmt.Errorf("timeline: -o is %q, want a name that ends in .svg or .txt", *to)
	}
	t, err := readTimeline(name)
	if err != nil {
		return err
	}
	if *steps > 0 {
		t = t.Last(*steps)
	}
	if *to == "" {
		_, err := io.WriteString(out, t.Text(*columns))
		return err
	}
	return writeTimeline(*to, t, *columns)
}

func readTimeline(name string) (*timeline.Timeline, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	t, err := timeline.Read(bufio.NewReader(file))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

func writeTimeline(name string, t *timeline.Timeline, columns int) (err error) {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if strings.HasSuffix(name, ".txt") {
		_, err = io.WriteString(file, t.Text(columns))
		return err
	}
	return t.WriteSVG(file)
}
