package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// newFlags are the flags of a command whose -h prints about.
func newFlags(name, about string, out io.Writer) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(io.Discard) // parse reports the errors, all at once
	f.Usage = func() {
		fmt.Fprintf(out, "%s\n\nFlags:\n", strings.TrimSpace(about))
		f.SetOutput(out)
		f.PrintDefaults()
		f.SetOutput(io.Discard)
	}
	return f
}

// parse sets f's flags and reports every mistake at once, where f.Parse stops at
// the first. After -h the error is flag.ErrHelp alone.
func parse(f *flag.FlagSet, args []string) error {
	_, err := parseArgs(f, args)
	return err
}

// parseArgs is parse for a command with arguments of these names, between which and behind
// which flags may stand. Of the last there may be several, if its name ends in "…".
func parseArgs(f *flag.FlagSet, args []string, names ...string) (values []string, err error) {
	usage := f.Usage
	f.Usage = func() {} // of a mistake
	defer func() { f.Usage = usage }()
	var errs []error
	for {
		err := f.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			usage()
			return nil, flag.ErrHelp
		}
		if args = f.Args(); err != nil {
			errs = append(errs, err)
			continue
		}
		if len(args) == 0 {
			break
		}
		if n := len(names); len(values) < n || n > 0 && strings.HasSuffix(names[n-1], "…") {
			values = append(values, args[0])
		} else {
			errs = append(errs, fmt.Errorf("unexpected argument %q", args[0]))
		}
		args = args[1:]
	}
	for _, missing := range names[min(len(values), len(names)):] {
		errs = append(errs, fmt.Errorf("%s is missing", missing))
	}
	return values, errors.Join(errs...)
}

// numbers is a flag of several numbers: 3,10.
type numbers []int

func (n *numbers) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]int(*n)), " ", ","), "[]")
}

func (n *numbers) Set(s string) error {
	*n = nil
	for part := range strings.SplitSeq(s, ",") {
		v, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil {
			return fmt.Errorf("%q is not a number", part)
		}
		*n = append(*n, v)
	}
	return nil
}
